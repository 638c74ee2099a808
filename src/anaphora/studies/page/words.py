"""Display names of cells, factors, groups of items and measures on the pages of studies, in the language of the page.

A cell is a training configuration; a factor is an aspect in which cells differ, such as the position encoding; a pool
is several cells summarised together. Question, prediction and conditions of a study are written in English, with an
optional Chinese version for Chinese pages.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from anaphora.analysis.results.scores import Spread
from anaphora.base.translation import _, pgettext, spoken_language
from anaphora.report.numbers import NOT_MEASURED, format_number, format_spread, with_minus
from anaphora.report.wording import (
    factor_value_names,
    kind_names,
    label,
    language_name,
    language_names,
    level_names,
    measure_names,
    mention_type_names,
)
from anaphora.studies.plan import ALIGNMENT_MEASURES, BASE_CELL, is_share
from anaphora.studies.schema import GroupSummary, RuleOutcome, Study
from anaphora.studies.summary import rule_condition


def in_page_language(text: str, chinese: str | None) -> str:
    """Return a text that a study gives in English and perhaps in Chinese, in the language of the page if possible."""
    return chinese if chinese and spoken_language() == "zh" else text


def question_of(study: Study) -> str:
    """Return the question of a study in the page's language."""
    return in_page_language(study.question, study.question_zh)


def prediction_of(study: Study) -> str:
    """Return the prediction of a study in the page's language."""
    return in_page_language(study.prediction, study.prediction_zh)


def names_of(study: Study) -> dict[str, str]:
    """Return the display names that a study's settings define for its configurations (cells), pools and factors.

    A pool is several cells summarised together; a factor is an aspect in which cells differ.
    """
    return study.names_zh if spoken_language() == "zh" else study.names


def cell_label(cell: str, study: Study) -> str:
    """Return the display name of a cell (configuration of a study).

    If the cell combines the changes of several cells, the display names of these cells are joined by " + ".
    """
    known = {BASE_CELL: _("base")} | names_of(study)
    return " + ".join(known.get(part, plain_label(part)) for part in cell.split("+"))


def plain_label(cell: str) -> str:
    """Derive a configuration's display name from its folder name: "_" becomes " ", and "+" becomes " + "."""
    return cell.replace("+", " + ").replace("_", " ")


def factor_label(factor: str, study: Study) -> str:
    """Return the display name of a factor, an aspect in which the configurations of a study differ."""
    return names_of(study).get(factor) or (
        pgettext("factor", "pairs") if factor == "pairs" else factor.replace("_", " ")
    )


def items_label(group: str) -> str:
    """Return the display name of a group of items, such as "set cues" or "query permuted, role cues"."""
    intervention, _comma, kind = group.rpartition(", ")
    if intervention:
        return _("{intervention}, {kind}").format(
            intervention=label(_study_group_names(), intervention), kind=items_label(kind)
        )
    axis, _blank, value = group.rpartition(" ")
    axes = {"distance": _("distance {value}"), "tokens": _("tokens {value}"), "d_k": _("d_k {value}")}
    if axis in axes:
        return axes[axis].format(value=value)
    tables = (_study_group_names, kind_names, mention_type_names, level_names, factor_value_names)
    return next((names[group] for names in (table() for table in tables) if group in names), group)


def axis_value(group: str) -> tuple[str, float] | None:
    """Split a group name such as "distance 8" into quantity and number, ("distance", 8.0); None if it has no number."""
    axis, _, number = group.rpartition(" ")
    try:
        return (axis, float(number)) if axis else None
    except ValueError:
        return None


def measure_label(measure: str) -> str:
    """Return the display name of a measure (column of study.csv), with the layer if it is the measure of one layer."""
    of_layer = re.fullmatch(r"(?P<before>.*)layer_(?P<layer>\d+)_(?P<after>.*)", measure)
    if of_layer:
        name = f"{of_layer['before']}layer_{of_layer['after']}"
        return _study_measure_names()[name].format(layer=of_layer["layer"])
    return label(_study_measure_names(), measure)


def is_of_route(measure: str) -> bool:
    """Return whether a measure in study.csv is computed by `accuracy_by_route`.

    Such a measure is the candidate accuracy of a head in one layer, or the task accuracy with some attention to the
    candidates removed.
    """
    return measure.startswith(("without_", "layer_"))


def has_alignment(study: Study) -> bool:
    """Return whether a study measures alignment, that is, how well attention weights identify the antecedent.

    Studies of recurrent networks, and of models that predict labels, measure no alignment.
    """
    groups = (summary for cell in study.cells for groups in cell.groups.values() for summary in groups.values())
    return any(_is_alignment(measure) for summary in groups for measure in summary.measures)


def _is_alignment(measure: str) -> bool:
    return measure in ALIGNMENT_MEASURES or measure.endswith("_candidate_accuracy")


def measure_text(group: GroupSummary, measure: str) -> str:
    """Format a measure of a group of items: the median over seeds and, in brackets, the range; shares in percent.

    A tilde precedes a measure of how well attention identifies the antecedent if the runs do not solve the task. The
    number of runs with the measure follows if some runs lack it, for instance because they have no third layer.
    """
    spread = group.measures.get(measure)
    if spread is None:
        return NOT_MEASURED
    if is_share(measure):
        text = ("~" if _is_alignment(measure) and group.is_solved is False else "") + format_spread(spread)
    else:
        text = spread_text(spread, lambda value: with_minus(f"{value:.3g}"))
    with_measure = sum(value is not None for value in spread.values)
    if with_measure < group.runs:
        return _("{spread}, {count} of {all:run|runs}").format(spread=text, count=with_measure, all=group.runs)
    return text


def spread_text(spread: Spread, number_text: Callable[[float], str]) -> str:
    """Return the median over seeds and, in brackets, minimum and maximum, formatted by `number_text`."""
    median, low, high = map(number_text, (spread.median, spread.lowest, spread.highest))
    return _("{median} ({low} to {high})").format(median=median, low=low, high=high)


def _rule_unit(row: RuleOutcome) -> str:
    """Return the unit of a rule's values: "share", "points" (percentage points, for differences) or "number"."""
    if is_share(row.measure):
        return "points" if row.baseline_cell or row.baseline_group else "share"
    return "points" if row.measure.endswith("_points") else "number"


def judged_languages(row: RuleOutcome) -> list[str]:
    """Return the languages in which a rule is checked: those that the rule lists, by default all measured languages."""
    return list(row.languages or row.spreads)


def judged_value(row: RuleOutcome, spread: Spread | None) -> str:
    """Format the value that a rule (a condition) compares with its bounds in one language, with the unit.

    Args:
        row: outcome of the rule.
        spread: median, minimum and maximum of the measure over seeds in this language; the rule's `seed_statistic`
            selects one of them. None if nothing was measured.
    """
    if spread is None:
        return NOT_MEASURED
    return _with_unit(row, _judged_number(row, spread, getattr(spread, row.seed_statistic)))


def judged_spread(row: RuleOutcome, spread: Spread | None) -> str:
    """Format median, minimum and maximum over seeds of the measure that a rule compares with its threshold.

    Args:
        row: outcome of the rule.
        spread: the three values in one language; None if nothing was measured.
    """
    if spread is None:
        return NOT_MEASURED
    median, low, high = (_judged_number(row, spread, value) for value in (spread.median, spread.lowest, spread.highest))
    return _("{median} ({low} to {high})").format(median=_with_unit(row, median), low=low, high=high)


def condition_text(row: RuleOutcome) -> str:
    """Return the condition of a rule, such as "lowest ≥ 90 %", in the language and units of the page."""
    return rule_condition(row, lambda bound: _with_unit(row, with_minus(f"{_scaled(row, bound):g}")))


def _with_unit(row: RuleOutcome, number: str) -> str:
    unit = _rule_unit(row)
    if unit == "number":
        return number
    return (_("{value} %") if unit == "share" else _("{value} points")).format(value=number)


def _scaled(row: RuleOutcome, value: float) -> float:
    """Convert a share to percent, and round to six decimals like the values in `study.json`."""
    return round(100 * value if is_share(row.measure) else value, 6)


def _judged_number(row: RuleOutcome, spread: Spread, value: float) -> str:
    """Format a value with one decimal, or with three if its unit is "number".

    More decimals are added if rounding would move the compared value across a bound: 46.86 %, which is below the bound
    46.9 %, is not shown as 46.9 %.
    """
    judged = _scaled(row, getattr(spread, row.seed_statistic))

    def sides(number: float) -> list[bool]:
        least = [number >= _scaled(row, row.at_least)] if row.at_least is not None else []
        return least + ([number <= _scaled(row, row.at_most)] if row.at_most is not None else [])

    fewest = 3 if _rule_unit(row) == "number" else 1
    digits = next((digits for digits in range(fewest, 6) if sides(float(f"{judged:.{digits}f}")) == sides(judged)), 6)
    return format_number(_scaled(row, value), digits)


def status_text(status: str, error: str) -> str:
    """Return the status of a run as text, with the reason for a failure."""
    states = {
        "failed": _("failed: {error}").format(error=error),
        "finished": _("finished"),
        "unfinished": _("unfinished"),
        "not begun": _("not begun"),
    }
    return states[status]


def value_in(language: str, value: str) -> str:
    """Put the name of the language before a formatted value; measures of settings have no language and no prefix."""
    if language not in language_names():
        return value
    return _("{spoken} {value}").format(spoken=language_name(language), value=value)


def table_title(language: str) -> str:
    """Return the title of a table with the measures of one language."""
    if language not in language_names():
        return _("Shares in %")
    return _("{spoken}, shares in %").format(spoken=language_name(language))


def _study_group_names() -> dict[str, str]:
    """Return the display names of groups of items: of "all", and of groups such as "query permuted" (interventions)."""
    return {
        "all": _("all items"),
        "candidates knocked out": _("edges from pronoun to candidates knocked out"),
        "all knocked out": _("edges from pronoun to all words knocked out"),
        "pronoun knocked out": _("edges from candidates to pronoun knocked out"),
        "query permuted": _("query permuted"),
        "key permuted": _("key permuted"),
        "value permuted": _("value permuted"),
    }


def _study_measure_names() -> dict[str, str]:
    """Return the display name of each measure in study.csv.

    A measure of every layer has one entry, without the layer number in the key and with {layer} in the display name.
    """
    return measure_names() | {
        "antecedent_points": _("antecedent’s edge value-zeroed, points lost"),
        "other_edges_points": _("all its other edges value-zeroed, points lost"),
        "patch_flips": _("row patched, flipped"),
        "exchange_flips": _("names exchanged, flipped"),
        "pronoun_specificity": _("pronoun to best other word, ratio"),
        "entropy_bits": _("entropy (bits)"),
        "without_layer_accuracy": _("task accuracy without the pronoun’s edges to candidates, layer {layer}"),
        "without_relay_accuracy": _("task accuracy without other words’ edges to candidates"),
        "layer_candidate_accuracy": _("candidate accuracy, best head of layer {layer}"),
        "octad_accuracy": _("octad accuracy"),
        "antecedent_heads": _("antecedent heads"),
        "predicate_heads": _("predicate heads"),
        "neighbour_heads": _("neighbour heads"),
        "relations": _("relations"),
        "score_variance": _("score variance"),
        "gradient_norm": _("gradient norm"),
        "permutation_change": _("permutation change"),
        "shift_change": _("shift change"),
        "seconds_per_step": _("seconds per step"),
    }


def axis_names() -> dict[str, str]:
    """Return the display name of each quantity that a figure may have on its x axis."""
    return {"distance": _("distance (words)"), "tokens": _("tokens per sentence"), "d_k": _("d_k (features per head)")}


def verdict_names() -> dict[str, str]:
    """Return the display name of each verdict ("holds", "not so" or "open") in lower case."""
    return {"holds": _("holds"), "not so": _("not so"), "open": _("open")}

"""Tables of measures, shared by the terminal and the page."""

from __future__ import annotations

from anaphora.analysis.evidence.evidence import VERDICT_SCOPE, Evidence, every_group
from anaphora.analysis.results.causal import Knockout
from anaphora.analysis.scores.measures.levels import Level
from anaphora.base.locale.translation import _
from anaphora.report.numbers import NOT_MEASURED, format_count, format_number, format_percent, format_points
from anaphora.report.page.elements import TableElement
from anaphora.report.wording import (
    baseline_names,
    group_label,
    kind_groups,
    label,
    language_name,
    level_names,
    shortcut_names,
)


def causal_table(evidence: Evidence) -> TableElement:
    """Return a table of the causal tests, with rows for each language as a whole and for each of its kinds of cue.

    The columns are the number of items, task accuracy, its losses from knockout in the chosen head and its layer and
    from value-zeroing in the layer, and the share of answers flipped by patching the layer.
    """
    columns = [
        _("language, cue"),
        _("items"),
        _("answers right"),
        _("lost: edge to the antecedent cut, chosen head"),
        _("lost: the same in its layer"),
        _("lost: nothing taken along it, layer"),
        _("flipped by the other sentence's row, layer"),
    ]
    rows = []
    for code, kind, cell in every_group(evidence.causal_cells):
        layer = cell.knockout[VERDICT_SCOPE]
        flipped = cell.pattern_patching.of_layer
        rows.append(
            [
                group_label(code, kind),
                format_count(cell.items),
                format_percent(cell.task_accuracy),
                _lost(cell.knockout["head"], "gold"),
                _lost(layer, "gold"),
                _lost(layer, "value_zeroing"),
                format_percent(flipped.flipped, flipped.interval),
            ]
        )
    return TableElement(title=_("Causal tests: answers right and lost, in %"), columns=columns, rows=rows)


def _lost(knockout: Knockout, edge: str) -> str:
    loss = knockout.edges.get(edge)
    return NOT_MEASURED if loss is None else format_percent(loss.drop, loss.interval)


def one_head_table(evidence: Evidence) -> TableElement:
    """Return a table of the causal tests of the single chosen head, one row per language and kind of cue with tests."""
    columns = [
        _("language, cue"),
        _("antecedent’s edge\nvalue-zeroed, points"),
        _("all its others\nvalue-zeroed, points"),
        _("row patched,\n% flipped"),
        _("items\npatched"),
        _("names exchanged,\n% flipped"),
    ]
    rows = [
        [
            group.label,
            format_points(alone.antecedent_points, alone.antecedent_interval),
            format_points(alone.other_edges_points, alone.other_edges_interval),
            format_percent(alone.patch_flips, alone.patch_interval),
            format_count(alone.pairs),
            format_percent(alone.exchange_flips, alone.exchange_interval),
        ]
        for group in kind_groups(evidence.causal_cells)
        if (alone := group.cell.head_level) is not None
    ]
    return TableElement(title=_("The chosen head alone"), columns=columns, rows=rows)


def specificity_table(evidence: Evidence) -> TableElement:
    """Return a table that compares the pronoun's weight on the antecedent with that of the best other word.

    There is one row per language and kind of cue.
    """
    rows = [
        [
            group.label,
            format_percent(group.cell.pronoun_mass),
            format_percent(group.cell.best_other_mass),
            format_number(group.cell.ratio, 2),
        ]
        for group in kind_groups(evidence.pronoun_specificity)
    ]
    return TableElement(
        title=_("Weight on the antecedent from the pronoun, and from the other word that gives it most"),
        columns=[_("language, cue"), _("weight from the\npronoun, %"), _("best other\nword, %"), _("ratio")],
        rows=rows,
    )


def dose_table(evidence: Evidence) -> TableElement:
    """Return a table of the points lost when equal weight is removed from the antecedent's edge and all other edges.

    There is one row per language, kind of cue and removed weight.
    """
    columns = [
        _("language, cue"),
        _("weight\nremoved, %"),
        _("items"),
        _("from the antecedent’s\nedge, points"),
        _("from all its other\nedges, points"),
    ]
    rows = [
        [
            group.label,
            format_percent(dose.mass),
            format_count(dose.items),
            format_points(dose.antecedent_points, dose.antecedent_interval),
            format_points(dose.other_edges_points, dose.other_edges_interval),
        ]
        for group in kind_groups(evidence.causal_cells)
        for dose in (group.cell.head_level.doses if group.cell.head_level else ())
    ]
    title = _("Points of task accuracy lost when the same weight is taken away on either side")
    return TableElement(title=title, columns=columns, rows=rows)


def freed_table(evidence: Evidence) -> TableElement:
    """Return a table of where the weight freed by masking the antecedent's edge goes, in % by kind of word.

    There is one row per language and kind of cue with such a measurement.
    """
    names = {
        "distractors": _("distractors"),
        "cue": _("cue"),
        "pronoun": _("pronoun itself"),
        "special": _("special tokens"),
        "other_words": _("other words"),
    }
    freed = {
        group.label: group.cell.head_level.freed_mass
        for group in kind_groups(evidence.causal_cells)
        if group.cell.head_level and group.cell.head_level.freed_mass
    }
    parts = next(iter(freed.values()), {})
    return TableElement(
        title=_("Where the weight goes when the antecedent’s edge is forbidden, %"),
        columns=[_("language, cue"), *(names[part] for part in parts)],
        rows=[[group, *map(format_percent, shares.values())] for group, shares in freed.items()],
    )


def level_table(evidence: Evidence, shortcut: str = "{name} {accuracy}") -> TableElement:
    """Return a table of the scores on compositions by language and level, empty if the corpus has no compositions.

    Args:
        evidence: measurements of the run.
        shortcut: format string of the best shortcut's cell, with the placeholders {name} and {accuracy}.
    """
    columns = [
        _("language"),
        _("what training showed"),
        _("items"),
        _("task accuracy"),
        _("candidate accuracy"),
        _("octads right"),
        _("weight on the antecedent"),
        _("best shortcut"),
        _("untrained models"),
    ]
    rows = [
        [language_name(code), label(level_names(), name), *_level_cells(level, shortcut)]
        for code, levels in (evidence.levels or {}).items()
        for name, level in levels.items()
    ]
    return TableElement(
        title=_("Compositions: shares in %, 95 % intervals in brackets"), columns=columns, rows=rows, texts=2
    )


def _level_cells(level: Level, shortcut: str) -> list[str]:
    best = level.best_shortcut
    # Levels of compositions have their own shortcuts, the level of set cues the baselines of every corpus.
    names = baseline_names() | shortcut_names()
    return [
        format_count(level.items),
        format_percent(level.task_accuracy, level.intervals.task_accuracy),
        format_percent(level.candidate_accuracy, level.intervals.candidate_accuracy),
        format_percent(level.octad_accuracy),
        format_percent(level.antecedent_mass),
        ""
        if best is None
        else shortcut.format(name=names.get(best.name, best.name), accuracy=format_percent(best.accuracy)),
        format_percent(level.random_init),
    ]

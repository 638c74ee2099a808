"""Rows of what was measured, with the heads of their columns: for tables of the terminal and of the page."""

from __future__ import annotations

from collections.abc import Iterator

from anaphora.analysis.evidence.evidence import VERDICT_SCOPE, Evidence, every_group
from anaphora.analysis.results.causal import Knockout
from anaphora.analysis.scores.measures.levels import Level
from anaphora.base.locale.translation import _, pgettext
from anaphora.report.groups import kind_groups
from anaphora.report.numbers import NOT_MEASURED, format_count, format_number, format_percent, format_points
from anaphora.report.wording import baseline_names, group_label, label, language_name, level_names, shortcut_names


def causal_columns() -> list[str]:
    """The heads of the columns of `causal_rows`, the first for language and kind."""
    return [
        _("language, cue"),
        _("items"),
        _("answers right"),
        _("lost: edge to the antecedent cut, chosen head"),
        _("lost: the same in its layer"),
        _("lost: nothing taken along it, layer"),
        _("flipped by the other sentence's row, layer"),
    ]


def causal_rows(evidence: Evidence) -> Iterator[list[str]]:
    """A row for each language and kind: answers right, and points lost by edits in the head or in its layer."""
    for code, kind, cell in every_group(evidence.causal_cells):
        layer = cell.knockout[VERDICT_SCOPE]
        flipped = cell.pattern_patching.of_layer
        yield [
            group_label(code, kind),
            format_count(cell.items),
            format_percent(cell.task_accuracy),
            _lost(cell.knockout["head"], "gold"),
            _lost(layer, "gold"),
            _lost(layer, "value_zeroing"),
            format_percent(flipped.flipped, flipped.interval),
        ]


def _lost(knockout: Knockout, edge: str) -> str:
    loss = knockout.edges.get(edge)
    return NOT_MEASURED if loss is None else format_percent(loss.drop, loss.interval)


def one_head_columns() -> list[str]:
    """The heads of the columns of `one_head_rows`, the first for the group."""
    return [
        _("language, cue"),
        _("antecedent’s edge\nvalue-zeroed, points"),
        _("all its others\nvalue-zeroed, points"),
        _("row patched,\n% flipped"),
        _("items\npatched"),
        _("names exchanged,\n% flipped"),
    ]


def one_head_rows(evidence: Evidence) -> Iterator[list[str]]:
    """A row for every language and kind of cue of which it was measured."""
    for group in kind_groups(evidence.causal_cells):
        alone = group.cell.head_level
        if alone is not None:
            yield [
                group.label,
                format_points(alone.antecedent_points, alone.antecedent_interval),
                format_points(alone.other_edges_points, alone.other_edges_interval),
                format_percent(alone.patch_flips, alone.patch_interval),
                format_count(alone.pairs),
                format_percent(alone.exchange_flips, alone.exchange_interval),
            ]


def specificity_columns() -> list[str]:
    """The heads of the columns of `specificity_rows`, the first for the group."""
    return [_("language, cue"), _("mass from the\npronoun, %"), _("best other\nword, %"), _("ratio")]


def specificity_rows(evidence: Evidence) -> Iterator[list[str]]:
    """A row for every language and kind of cue: does the pronoun attend there more than any other word?"""
    for group in kind_groups(evidence.pronoun_specificity):
        yield [
            group.label,
            format_percent(group.cell.pronoun_mass),
            format_percent(group.cell.best_other_mass),
            format_number(group.cell.ratio, 2),
        ]


def dose_columns() -> list[str]:
    """The heads of the columns of `dose_rows`, the first for the group."""
    return [
        _("language, cue"),
        _("weight\nremoved, %"),
        _("items"),
        _("from the antecedent’s\nedge, points"),
        _("from all its other\nedges, points"),
    ]


def dose_rows(evidence: Evidence) -> Iterator[list[str]]:
    """A row for every language, kind of cue and weight that was removed on either side."""
    for group in kind_groups(evidence.causal_cells):
        for dose in group.cell.head_level.doses if group.cell.head_level else ():
            yield [
                group.label,
                format_percent(dose.mass),
                format_count(dose.items),
                format_points(dose.antecedent_points, dose.antecedent_interval),
                format_points(dose.other_edges_points, dose.other_edges_interval),
            ]


def freed_columns(evidence: Evidence) -> list[str]:
    """The heads of the columns of `freed_rows`, the first for the group."""
    parts = next((shares for _, shares in _freed(evidence)), {})
    names = {
        "distractors": _("distractors"),
        "cue": _("cue"),
        "pronoun": _("pronoun itself"),
        "special": _("special tokens"),
        "other_words": _("other words"),
    }
    return [_("language, cue"), *(names[part] for part in parts)]


def freed_rows(evidence: Evidence) -> Iterator[list[str]]:
    """A row for every language and kind of cue: where the weight of a forbidden edge goes."""
    for group, shares in _freed(evidence):
        yield [group, *map(format_percent, shares.values())]


def _freed(evidence: Evidence) -> Iterator[tuple[str, dict[str, float | None]]]:
    for group in kind_groups(evidence.causal_cells):
        if group.cell.head_level and group.cell.head_level.freed_mass:
            yield group.label, group.cell.head_level.freed_mass


def level_columns() -> list[str]:
    """The heads of the columns of `level_rows`, the first two for language and level."""
    return [
        _("language"),
        _("level"),
        _("items"),
        pgettext("compositions", "task"),
        pgettext("compositions", "candidate"),
        _("octads, head"),
        pgettext("compositions", "mass"),
        _("best shortcut"),
        _("untrained"),
    ]


def level_rows(evidence: Evidence, shortcut: str = "{name} {accuracy}") -> Iterator[list[str]]:
    """A row for every language and level; `shortcut` is how the best one is written."""
    for code, levels in (evidence.levels or {}).items():
        for name, level in levels.items():
            cells = _level_cells(level, shortcut)
            yield [language_name(code), label(level_names(), name), *cells]


def _level_cells(level: Level, shortcut: str) -> list[str]:
    best = level.best_shortcut
    # Compositions have shortcuts of their own; set cues, the baselines of every corpus.
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

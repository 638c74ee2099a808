"""What the chosen head carries by itself, and whether it does so for the pronoun alone: rows of a table."""

from __future__ import annotations

from collections.abc import Iterator

from anaphora.analysis.results.evidence import Evidence
from anaphora.report.groups import kind_groups
from anaphora.report.numbers import format_count, format_number, format_percent, format_points
from anaphora.report.wording import phrase

_COLUMNS = ("antecedent", "other_edges", "flipped", "pairs", "exchanged")
_SPECIFICITY = ("pronoun_mass", "best_other", "ratio")


def one_head_columns() -> list[str]:
    """The heads of the columns of `one_head_rows`, the first for the group."""
    return [phrase("columns", "group"), *(phrase("one_head", f"column_{name}") for name in _COLUMNS)]


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
    return [phrase("columns", "group"), *(phrase("one_head", f"column_{name}") for name in _SPECIFICITY)]


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
        phrase("columns", "group"),
        *(phrase("one_head", f"dose_{name}") for name in ("mass", "items", "antecedent", "other_edges")),
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
    return [phrase("columns", "group"), *(phrase("one_head", f"freed_{name}") for name in parts)]


def freed_rows(evidence: Evidence) -> Iterator[list[str]]:
    """A row for every language and kind of cue: where the weight of a forbidden edge goes."""
    for label, shares in _freed(evidence):
        yield [label, *map(format_percent, shares.values())]


def _freed(evidence: Evidence) -> Iterator[tuple[str, dict[str, float | None]]]:
    for group in kind_groups(evidence.causal_cells):
        if group.cell.head_level and group.cell.head_level.freed_mass:
            yield group.label, group.cell.head_level.freed_mass

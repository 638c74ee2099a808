"""The verdict, row by row."""

from __future__ import annotations

from collections.abc import Callable

from anaphora.analysis.evidence.verdict import UNITS
from anaphora.analysis.results.causal import CausalCell
from anaphora.analysis.results.evidence import VERDICT_SCOPE, Evidence, Verdict, in_group
from anaphora.analysis.results.scores import Cell, Groups
from anaphora.report.groups import kind_groups
from anaphora.report.numbers import NOT_MEASURED, format_in_unit, format_percent, format_points
from anaphora.report.page.elements import GroupVerdict, NoteElement, PageElement, RuleResult, Section, VerdictElement
from anaphora.report.wording import label, phrase, translated

_COLUMNS = ("candidate", "chance", "knockout", "flipped")
_SIGNS = {"supported": "yes", "not supported": "no", "not yet controlled": "open"}
_HEAD_COLUMNS = ("candidate", "chance", "antecedent_edge", "flipped_by_head")


def verdict_section(evidence: Evidence) -> Section:
    """The verdict of every language and kind of cue, at the head's layer and at the head, with every rule applied."""
    elements: list[PageElement] = [
        VerdictElement(columns=[phrase("verdict", name) for name in columns], rows=rows)
        for columns, rows in (
            (_COLUMNS, _group_verdicts(evidence, evidence.verdict, phrase("verdict", "at_layer"), _layer_numbers)),
            (
                _HEAD_COLUMNS,
                _group_verdicts(evidence, evidence.verdict_at_head, phrase("verdict", "at_head"), _head_numbers),
            ),
        )
        if rows
    ]
    if evidence.protocol:
        protocol = evidence.protocol
        text = phrase(
            "verdict",
            "protocol",
            metric=label("measures", protocol.metric),
            map=label("maps", protocol.map),
            direction=label("directions", protocol.direction),
            split=label("splits", protocol.split),
            alpha=protocol.alpha,
            hash=protocol.hash,
        )
        elements.append(NoteElement(text=text))
    return Section(
        name="verdict",
        title=phrase("verdict", "title"),
        explanation=phrase("verdict", "explanation"),
        elements=elements,
    )


def _group_verdicts(
    evidence: Evidence,
    verdicts: Groups[Verdict] | None,
    scope: str,
    causal_numbers: Callable[[CausalCell | None], tuple[str, str]],
) -> list[GroupVerdict]:
    return [
        GroupVerdict(
            phrase("joined", "of_group", group=group.label, text=scope),
            label("verdicts", group.cell.verdict),
            _SIGNS[group.cell.verdict],
            [
                *_score_numbers(in_group(evidence.scores, group.language, group.kind)),
                *causal_numbers(in_group(evidence.causal_cells, group.language, group.kind)),
            ],
            [
                RuleResult(
                    translated("verdict_rules", row.rule),
                    translated("verdict_questions", row.question),
                    format_in_unit(row.value, row.interval, UNITS[row.rule]),
                    translated("verdict_needed", row.needed),
                    row.passed,
                )
                for row in group.cell.rows
            ],
        )
        for group in kind_groups(verdicts)
    ]


def _score_numbers(cell: Cell | None) -> tuple[str, str]:
    if cell is None:
        return NOT_MEASURED, NOT_MEASURED
    return format_percent(cell.candidate_accuracy, cell.intervals.candidate_accuracy), format_percent(cell.chance)


def _layer_numbers(cell: CausalCell | None) -> tuple[str, str]:
    knockout = cell.knockout.get(VERDICT_SCOPE) if cell else None
    if cell is None or knockout is None:
        return NOT_MEASURED, NOT_MEASURED
    difference, patched = knockout.gold_minus_matched, cell.pattern_patching.of_layer
    return format_percent(difference.value, difference.interval), format_percent(patched.flipped, patched.interval)


def _head_numbers(cell: CausalCell | None) -> tuple[str, str]:
    alone = cell.head_level if cell else None
    if alone is None:
        return NOT_MEASURED, NOT_MEASURED
    return (
        format_points(alone.antecedent_points, alone.antecedent_interval),
        format_percent(alone.patch_flips, alone.patch_interval),
    )

"""Section of the report on the verdicts, with a table row for each criterion (rule) of a verdict.

A verdict says whether pronouns attend to their antecedents and the model's answers depend on this attention.
"""

from __future__ import annotations

from collections.abc import Callable

from anaphora.analysis.evidence.evidence import VERDICT_SCOPE, Evidence, Verdict, in_group
from anaphora.analysis.evidence.verdict import UNITS
from anaphora.analysis.results.causal import CausalCell
from anaphora.analysis.results.scores import Cell, Groups
from anaphora.base.translation import _, stored
from anaphora.report.numbers import NOT_MEASURED, format_in_unit, format_percent, format_points
from anaphora.report.page.elements import (
    GroupVerdict,
    NoteElement,
    PlacedSections,
    ReportRun,
    RuleResult,
    Section,
    VerdictElement,
    with_rows,
)
from anaphora.report.stored import stored_sentence
from anaphora.report.wording import kind_groups, label, map_names, measure_names, split_names

_SIGNS = {"supported": "yes", "not supported": "no", "not yet controlled": "open"}


def _verdict_section(run: ReportRun) -> Section:
    evidence = run.evidence
    columns = [_("candidate accuracy, %"), _("chance, %")]
    of_layer = [*columns, _("lost without the edge to the antecedent, points"), _("answers flipped, %")]
    of_head = [*columns, _("lost when nothing flows along it, points"), _("answers flipped, %")]
    elements = with_rows(
        VerdictElement(
            title=_("The layer of the chosen head"),
            note=_(
                "Lost: how much more task accuracy is lost when the pronoun cannot attend to the antecedent "
                "in this layer than when a matched edge is cut, one that is as strong or as far away and "
                "leads elsewhere. Flipped: answers that change to the other candidate when the pronoun gets "
                "its weights from the sentence in which that candidate is meant."
            ),
            columns=of_layer,
            rows=_group_verdicts(evidence, evidence.verdict, _layer_numbers),
        ),
        VerdictElement(
            title=_("The chosen head alone"),
            note=_(
                "Lost: task accuracy, when nothing flows along the head’s edge from the pronoun to the antecedent. "
                "Flipped: as above, with the weights of this head alone."
            ),
            columns=of_head,
            rows=_group_verdicts(evidence, evidence.verdict_at_head, _head_numbers),
        ),
    )
    if evidence.protocol:
        protocol = evidence.protocol
        text = _(
            "Fixed before the test: measure ({metric}), map ({map}), direction ({direction}), split ({split}) and "
            "significance level ({alpha:g}). Hash of this protocol and the run’s settings: {hash}."
        ).format(
            metric=label(measure_names(), protocol.metric),
            map=label(map_names(), protocol.map),
            direction=label({"pronoun_to_candidate": _("pronoun to candidate")}, protocol.direction),
            split=label(split_names(), protocol.split),
            alpha=protocol.alpha,
            hash=protocol.hash,
        )
        elements.append(NoteElement(text=text))
    return Section(
        name="verdict",
        title=_("The answer"),
        explanation=_(
            "Do pronouns attend to their antecedents, and does the model’s answer depend on it? “Supported” "
            "needs every rule to hold; open a line to see them all, failed ones too. The question is asked "
            "twice: about the layer of the chosen head, and about that head alone."
        ),
        elements=elements,
    )


def _group_verdicts(
    evidence: Evidence, verdicts: Groups[Verdict] | None, causal_numbers: Callable[[CausalCell | None], tuple[str, str]]
) -> list[GroupVerdict]:
    return [
        GroupVerdict(
            group.label,
            _(group.cell.verdict),
            _SIGNS[group.cell.verdict],
            [
                *_score_numbers(in_group(evidence.scores, group.language, group.kind)),
                *causal_numbers(in_group(evidence.causal_cells, group.language, group.kind)),
            ],
            [
                RuleResult(
                    stored(row.rule),
                    stored(row.question),
                    format_in_unit(row.value, row.interval, UNITS[row.rule]),
                    stored_sentence(row.needed),
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
    difference, patched = knockout.gold_minus_matched, cell.pattern_patching.used.layer
    return format_percent(difference.value, difference.interval), format_percent(patched.flipped, patched.interval)


def _head_numbers(cell: CausalCell | None) -> tuple[str, str]:
    alone = cell.head_level if cell else None
    if alone is None:
        return NOT_MEASURED, NOT_MEASURED
    return (
        format_points(alone.antecedent_points, alone.antecedent_interval),
        format_percent(alone.patch_flips, alone.patch_interval),
    )


SECTIONS: PlacedSections = {10: _verdict_section}

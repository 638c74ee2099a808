"""The sections on interventions, controls and changed inputs."""

from __future__ import annotations

from collections.abc import Mapping

from anaphora.analysis.evidence.verdict import NONE_TRAINED
from anaphora.analysis.results.causal import CausalCell
from anaphora.analysis.results.evidence import VERDICT_SCOPE, Evidence
from anaphora.analysis.results.scores import Groups, PerturbedCell, Spread
from anaphora.report.figures import causal, measures
from anaphora.report.groups import kind_groups
from anaphora.report.numbers import NOT_MEASURED, format_count, format_number, format_percent, format_range
from anaphora.report.page.elements import FigureElement, PageElement, Section, TableElement
from anaphora.report.page.sections.cells import column_names, head_list
from anaphora.report.wording import clauses, label, labels, phrase, translated


def knockout_section(cells: Groups[CausalCell]) -> Section:
    """What attention knockout costs."""
    figure = causal.knockout_figure(cells)
    elements: list[PageElement] = []
    if figure:
        summary: list[str] = []
        rows: list[list[str]] = []
        for group in kind_groups(cells):
            for scope in labels("scopes"):
                summary += _knockout_summary(group.label, group.cell, scope)
                rows += _knockout_rows(group.label, group.cell, scope)
        columns = column_names("group", "scope", "edge", "items", "task_lost", "mass_removed")
        elements = [
            FigureElement(name="knockout", figure=figure, alt=clauses(summary)),
            TableElement(title=phrase("knockout", "table"), columns=columns, rows=rows, texts=3, folded=True),
        ]
    return _section("knockout", "knockout", elements)


def _knockout_summary(group: str, cell: CausalCell, scope: str) -> list[str]:
    """What the figure shows of the scopes that the verdict names, in words."""
    knockout = cell.knockout.get(scope)
    gold = knockout.edges.get("gold") if knockout else None
    if knockout is None or gold is None or gold.drop is None or scope not in ("head", VERDICT_SCOPE):
        return []
    return [
        phrase(
            "knockout",
            "alt",
            group=group,
            scope=label("scopes", scope),
            points=format_percent(gold.drop),
            more=format_percent(knockout.gold_minus_matched.value),
        )
    ]


def _knockout_rows(group: str, cell: CausalCell, scope: str) -> list[list[str]]:
    knockout = cell.knockout.get(scope)
    if knockout is None:
        return []
    where = label("scopes", scope)
    rows = [
        [
            group,
            where,
            label("edges", edge),
            format_count(loss.items),
            format_percent(loss.drop, loss.interval),
            format_percent(loss.mass_removed),
        ]
        for edge in causal.EDGES
        if (loss := knockout.edges.get(edge)) is not None
    ]
    difference = knockout.gold_minus_matched
    if difference.value is not None:
        lost = format_percent(difference.value, difference.interval)
        rows.append([group, where, label("edges", "gold_minus_matched"), "", lost, ""])
    return rows


def _spread_cells(spread: Spread | None) -> tuple[str, str]:
    """The median, and the lowest and highest, as cells of a table."""
    if spread is None:
        return NOT_MEASURED, NOT_MEASURED
    return format_percent(spread.median), format_range(spread.lowest, spread.highest)


def ablation_section(cells: Groups[CausalCell]) -> Section:
    """What ablating heads costs."""
    figure = causal.ablation_figure(cells)
    elements: list[PageElement] = []
    groups = list(kind_groups(cells))
    if figure:
        summary = [
            phrase(
                "ablation",
                "alt" if last.random else "alt_alone",
                group=group.label,
                points=format_percent(last.drop),
                count=last.k,
                random=format_percent(last.random.median if last.random else None),
            )
            for group in groups
            for last in group.cell.head_ablation.cumulative[-1:]
        ]
        rows = [
            [
                group.label,
                format_count(step.k),
                head_list(step.heads),
                format_percent(step.drop),
                *_spread_cells(step.random),
            ]
            for group in groups
            for step in group.cell.head_ablation.cumulative
        ]
        columns = column_names("group", "heads_ablated", "head", "lost", "random_median", "random_range")
        elements = [
            FigureElement(name="ablation", figure=figure, alt=clauses(summary)),
            TableElement(title=phrase("page", "numbers"), columns=columns, rows=rows, folded=True),
        ]
    singles = [
        [
            group.label,
            f"{step.layer}.{step.head}",
            label("ablation_modes", step.mode),
            format_percent(step.drop, step.interval),
        ]
        for group in groups
        for step in group.cell.head_ablation.single
    ]
    if singles:
        columns = column_names("group", "head", "replaced_by", "task_lost")
        title = phrase("ablation", "singles")
        elements.append(TableElement(title=title, columns=columns, rows=singles, texts=3, folded=True))
    return _section("ablation", "ablation", elements)


def patching_section(cells: Groups[CausalCell]) -> Section:
    """Which answers follow a patched row."""
    figure = causal.patching_figure(cells)
    elements: list[PageElement] = []
    if figure:
        rows = []
        for group in kind_groups(cells):
            patching = group.cell.pattern_patching
            flipped = [
                format_percent(patched.flipped, patched.interval)
                for patched in (patching.of_head, patching.of_layer, patching.all_layers)
            ]
            left_out = patching.pairs + patching.skipped - patching.pairs_used
            rows.append([group.label, format_count(patching.pairs_used), format_count(left_out), *flipped])
        summary = clauses(
            [
                phrase("patching", "alt", group=group, head=head, layer=layer, every=every)
                for group, _, _, head, layer, every in rows
            ]
        )
        flipped_by = [phrase("columns", "flipped_by", heads=heads) for heads in labels("patched").values()]
        columns = [*column_names("group", "patched", "left_out"), *flipped_by]
        elements = [
            FigureElement(name="pattern_patching", figure=figure, alt=summary),
            TableElement(title=phrase("page", "numbers"), columns=columns, rows=rows, folded=True),
        ]
    return _section("pattern-patching", "patching", elements)


def dose_response_section(cells: Groups[CausalCell]) -> Section:
    """Whether the score of an edge tells what knocking it out costs."""
    figure = causal.dose_response_figure(cells)
    elements: list[PageElement] = []
    if figure:
        rows = [
            [group.label, label("maps", name), format_number(correlation.rho, 2, correlation.interval)]
            for group in kind_groups(cells)
            for name, correlation in group.cell.dose_response.items()
        ]
        summary = clauses(
            [phrase("dose_response", "alt", group=group, map=name, rho=value) for group, name, value in rows]
        )
        columns = column_names("group", "map", "rho")
        elements = [
            FigureElement(name="dose_response", figure=figure, alt=summary),
            TableElement(title=phrase("page", "numbers"), columns=columns, rows=rows, texts=2, folded=True),
        ]
    return _section("dose-response", "dose_response", elements)


def controls_section(evidence: Evidence) -> Section:
    """The controls that were trained."""
    controls = evidence.controls or {}
    rows = []
    for name in dict.fromkeys([*NONE_TRAINED, *controls]):
        control, title = controls.get(name), label("controls", name)
        if control is None:
            rows.append([title, phrase("expectations", "not_run"), "", ""])
            continue
        result = {True: phrase("expectations", "yes"), False: phrase("expectations", "no"), None: NOT_MEASURED}
        expected, observed = (translated("control_statements", text) for text in (control.expected, control.observed))
        rows.append([title, result[control.as_expected], expected, observed])
    elements: list[PageElement] = []
    figure = measures.controls_figure(evidence)
    if figure:
        summary = clauses(
            [phrase("joined", "of_group", group=name, text=observed or result) for name, result, _, observed in rows]
        )
        elements.append(FigureElement(name="controls", figure=figure, alt=summary))
    columns = column_names("control", "result", "expected", "observed")
    elements.append(TableElement(title=phrase("controls_section", "table"), columns=columns, rows=rows, texts=4))
    elements += _perturbation_tables(evidence.perturbations)
    return _section("controls", "controls_section", elements)


def _perturbation_tables(part: Mapping[str, Groups[PerturbedCell]] | None) -> list[PageElement]:
    """The same trained model on sentences from which something was taken."""
    rows = [
        [
            label("perturbations", name),
            group.label,
            format_percent(group.cell.task_accuracy),
            format_percent(group.cell.candidate_accuracy, group.cell.interval),
            format_percent(group.cell.chance),
        ]
        for name, languages in (part or {}).items()
        for group in kind_groups(languages)
    ]
    columns = column_names("taken_away", "group", "task", "candidate", "chance")
    title = phrase("controls_section", "perturbed")
    return [TableElement(title=title, columns=columns, rows=rows, texts=2)] if rows else []


def _section(name: str, words: str, elements: list[PageElement]) -> Section:
    return Section(name=name, title=phrase(words, "title"), explanation=phrase(words, "explanation"), elements=elements)

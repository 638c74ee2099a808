"""The sections on what the chosen head scores, and on what it is compared with."""

from __future__ import annotations

from collections.abc import Iterator

from anaphora.analysis.results.evidence import Evidence, in_group
from anaphora.analysis.results.scores import AccuracyCell, Cell, Effect, Effects, FactorValue, Groups
from anaphora.analysis.results.typed_json import Interval
from anaphora.report.figures import measures, pictures
from anaphora.report.groups import all_groups, kind_groups
from anaphora.report.numbers import (
    NOT_MEASURED,
    format_count,
    format_number,
    format_p_value,
    format_percent,
)
from anaphora.report.page.elements import FigureElement, PageElement, Section, TableElement
from anaphora.report.page.sections.cells import column_names
from anaphora.report.wording import clauses, head_name, label, labels, language_name, phrase, value_label

_WORST_TEMPLATES = 5
"""Templates of each language that are listed."""


def scoreboard_section(evidence: Evidence) -> Section:
    """Head, chance and shortcuts side by side."""
    elements: list[PageElement] = []
    groups = list(all_groups(evidence.scores))
    if groups:
        summary = clauses(
            [
                phrase(
                    "scoreboard",
                    "alt",
                    group=group.label,
                    task=format_percent(group.cell.task_accuracy),
                    candidate=format_percent(group.cell.candidate_accuracy),
                    chance=format_percent(group.cell.chance),
                )
                for group in groups
            ]
        )
        elements.append(FigureElement(name="scoreboard", figure=pictures.scores_figure(evidence), alt=summary))
        scores = [[group.label, *_score_row(group.cell)] for group in groups]
        further = [[group.label, *_further_row(evidence, group.language, group.kind)] for group in groups]
        columns = list(labels("score_columns").values())
        split = len(scores[0]) - 1
        elements += [
            TableElement(
                title=phrase("scoreboard", name), columns=[*column_names("group"), *of_table], rows=rows, folded=True
            )
            for name, of_table, rows in (
                ("table", columns[:split], scores),
                ("further_table", columns[split:], further),
            )
        ]
    return Section(
        name="scoreboard",
        title=phrase("scoreboard", "title"),
        explanation=phrase("scoreboard", "explanation"),
        elements=elements,
    )


def _score_row(cell: Cell) -> list[str]:
    names = ("task_accuracy", "candidate_accuracy", "quad_accuracy", "open_accuracy", "antecedent_mass")
    shares = [format_percent(getattr(cell, name), getattr(cell.intervals, name)) for name in names]
    return [format_count(cell.items), *shares, format_number(cell.lift, 1)]


def _further_row(evidence: Evidence, language: str, kind: str) -> list[str]:
    further = in_group(evidence.further_scores, language, kind)
    significance = in_group(evidence.significance, language, kind)
    measured = [NOT_MEASURED] * 5
    if further is not None:
        measured = [
            format_percent(further.mass_per_token),
            format_number(further.mrr, 2),
            format_number(further.mas, 2),
            format_number(further.agreement.kappa, 2),
            format_percent(further.reverse_candidate_accuracy),
        ]
    return [*measured, format_p_value(significance.p_holm if significance else None)]


def effects_section(part: Groups[Effects] | None) -> Section:
    """Meaning, position and entity."""
    figure = measures.effects_figure(part)
    elements: list[PageElement] = []
    if figure:
        names = labels("effects")
        summary = [
            phrase(
                "joined",
                "of_group",
                group=group.label,
                text=phrase("joined", "comma").join(
                    f"{name} {format_number(getattr(group.cell, key).value, 2)}" for key, name in names.items()
                ),
            )
            for group in kind_groups(part)
        ]
        rows = [
            [
                group.label,
                *(format_number(effect.value, 2, effect.interval) for effect in _effects(group.cell)),
                format_count(group.cell.meaning.quads),
            ]
            for group in all_groups(part)
        ]
        columns = [*column_names("group"), *names.values(), phrase("effects_section", "quads")]
        elements = [
            FigureElement(name="effects", figure=figure, alt=clauses(summary)),
            TableElement(title=phrase("page", "numbers"), columns=columns, rows=rows, folded=True),
        ]
    return Section(
        name="effects",
        title=phrase("effects_section", "title"),
        explanation=phrase("effects_section", "explanation"),
        elements=elements,
    )


def _effects(cell: Effects) -> list[Effect]:
    return [getattr(cell, name) for name in labels("effects")]


def baselines_section(evidence: Evidence) -> Section:
    """The strongest shortcuts."""
    elements: list[PageElement] = []
    groups = list(all_groups(evidence.scores))
    names = list(dict.fromkeys(name for group in groups for name in group.cell.baselines))
    if names:
        ours = [format_percent(group.cell.candidate_accuracy) for group in groups]
        rows = [[phrase("baselines_section", "head"), *ours]]
        rows += [
            [label("baselines", name), *(format_percent(group.cell.baselines.get(name)) for group in groups)]
            for name in names
        ]
        columns = [*column_names("candidate_accuracy"), *(group.label for group in groups)]
        elements.append(TableElement(title=phrase("baselines_section", "table"), columns=columns, rows=rows))
    return Section(
        name="baselines",
        title=phrase("baselines_section", "title"),
        explanation=phrase("baselines_section", "explanation"),
        elements=elements,
    )


def maps_section(evidence: Evidence) -> Section:
    """The other kinds of map."""
    figure = measures.maps_figure(evidence.maps)
    elements: list[PageElement] = []
    if figure:
        rows = []
        for name, scores in (evidence.maps or {}).items():
            unit = phrase("maps_section", "whole_model")
            if scores.head is not None:
                unit = head_name(scores.head.layer, scores.head.head)
            rows += [
                [
                    label("maps", name),
                    unit,
                    group.label,
                    format_percent(group.cell.candidate_accuracy, group.cell.interval),
                    format_percent(group.cell.antecedent_mass),
                ]
                for group in kind_groups(scores.languages)
            ]
        summary = clauses(
            [phrase("maps_section", "alt", map=name, group=group, candidate=value) for name, _, group, value, _ in rows]
        )
        columns = column_names("map", "unit", "group", "candidate_accuracy", "mass")
        elements = [
            FigureElement(name="maps", figure=figure, alt=summary),
            TableElement(title=phrase("page", "numbers"), columns=columns, rows=rows, texts=3, folded=True),
        ]
    return Section(
        name="maps",
        title=phrase("maps_section", "title"),
        explanation=phrase("maps_section", "explanation"),
        elements=elements,
    )


def factors_section(evidence: Evidence) -> Section:
    """Accuracy by stratum and by factor."""
    elements: list[PageElement] = []
    for name, figure, rows in (
        ("strata", measures.strata_figure(evidence.strata), list(_stratum_rows(evidence))),
        ("factors", measures.factors_figure(evidence.factors), list(_factor_rows(evidence))),
    ):
        if figure:
            summary = clauses(
                [
                    phrase("strata", "alt", factor=factor, spoken=spoken, value=value, candidate=candidate)
                    for factor, spoken, value, _, _, candidate, *_ in rows
                ]
            )
            columns = column_names("factor", "language", "value", "items", "task", "candidate", "mass", "chance")
            elements += [
                FigureElement(name=name, figure=figure, alt=summary),
                TableElement(title=phrase("page", "numbers"), columns=columns, rows=rows, texts=3, folded=True),
            ]
    worst = [row for language in evidence.languages for row in _worst_templates(evidence, language)]
    if worst:
        columns = column_names("template", "language", "items", "task", "candidate")
        elements.append(TableElement(title=phrase("strata", "worst"), columns=columns, rows=worst, texts=2))
    return Section(
        name="strata",
        title=phrase("strata", "title"),
        explanation=phrase("strata", "explanation"),
        elements=elements,
    )


def _stratum_rows(evidence: Evidence) -> Iterator[list[str]]:
    for language, cells in evidence.strata.items():
        for name, cell in cells.items():
            where = [label("factors", "stratum"), language_name(language), value_label(name)]
            yield [*where, *_accuracies(cell, cell.intervals.candidate_accuracy)]


def _factor_rows(evidence: Evidence) -> Iterator[list[str]]:
    for factor, languages in (evidence.factors or {}).items():
        for language, cells in languages.items():
            for cell in cells if factor != "template" else ():
                where = [label("factors", factor), language_name(language), value_label(cell.value)]
                yield [*where, *_accuracies(cell, cell.interval)]


def _accuracies(cell: Cell | FactorValue, ends: Interval | None) -> list[str]:
    return [
        format_count(cell.items),
        format_percent(cell.task_accuracy),
        format_percent(cell.candidate_accuracy, ends),
        format_percent(cell.antecedent_mass),
        format_percent(cell.chance),
    ]


def _worst_templates(evidence: Evidence, language: str) -> list[list[str]]:
    cells = (evidence.factors or {}).get("template", {}).get(language, ())
    known = [(cell.candidate_accuracy, cell) for cell in cells if cell.candidate_accuracy is not None]
    known.sort(key=lambda pair: pair[0])
    rows = [_template_row(cell.value, language, cell.items, cell) for _, cell in known[:_WORST_TEMPLATES]]
    alone = evidence.languages[language].worst_template
    if rows or alone is None:
        return rows
    accuracies = AccuracyCell(
        task_accuracy=alone.task_accuracy, candidate_accuracy=alone.candidate_accuracy, interval=None, chance=None
    )
    return [_template_row(alone.template, language, alone.items, accuracies)]


def _template_row(template: str, language: str, items: int, cell: AccuracyCell) -> list[str]:
    return [
        template,
        language_name(language),
        format_count(items),
        format_percent(cell.task_accuracy),
        format_percent(cell.candidate_accuracy, cell.interval),
    ]

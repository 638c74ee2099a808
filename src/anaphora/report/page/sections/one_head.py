"""The section on what one head carries, and on other words of the sentence that attend to the antecedent too."""

from __future__ import annotations

from anaphora.analysis.results.evidence import Evidence
from anaphora.report.figures import causal
from anaphora.report.one_head import (
    dose_columns,
    dose_rows,
    freed_columns,
    freed_rows,
    one_head_columns,
    one_head_rows,
    specificity_columns,
    specificity_rows,
)
from anaphora.report.page.elements import FigureElement, PageElement, Section, TableElement
from anaphora.report.wording import clauses, phrase


def one_head_section(evidence: Evidence) -> Section:
    """What it carries, what equal doses cost and where cut weight goes; each where it was measured."""
    tables = (
        ("table", one_head_columns(), list(one_head_rows(evidence))),
        ("specificity", specificity_columns(), list(specificity_rows(evidence))),
        ("doses", dose_columns(), list(dose_rows(evidence))),
        ("freed", freed_columns(evidence), list(freed_rows(evidence))),
    )
    elements: list[PageElement] = []
    for name, columns, rows in tables:
        figure = causal.equal_doses_figure(evidence.causal_cells) if name == "doses" else None
        if figure:
            summary = [
                phrase("one_head", "alt", group=group, mass=mass, antecedent=antecedent, others=others)
                for group, mass, _, antecedent, others in rows
            ]
            elements.append(FigureElement(name="equal_doses", figure=figure, alt=clauses(summary)))
        if rows:
            title = phrase("one_head", name)
            elements.append(TableElement(title=title, columns=columns, rows=rows, folded=figure is not None))
    return Section(
        name="one-head",
        title=phrase("one_head", "title"),
        explanation=phrase("one_head", "explanation"),
        elements=elements,
    )

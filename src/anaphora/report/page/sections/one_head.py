"""The section on what one head carries, and on other words of the sentence that attend to the antecedent too."""

from __future__ import annotations

from anaphora.analysis.evidence.schema.evidence import Evidence
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
from anaphora.report.page.elements import PageElement, Section, TableElement
from anaphora.report.wording import phrase


def one_head_section(evidence: Evidence) -> Section:
    """What it carries, what equal doses cost and where cut weight goes; each table where it was measured."""
    tables = (
        ("table", one_head_columns(), list(one_head_rows(evidence))),
        ("specificity", specificity_columns(), list(specificity_rows(evidence))),
        ("doses", dose_columns(), list(dose_rows(evidence))),
        ("freed", freed_columns(evidence), list(freed_rows(evidence))),
    )
    elements: list[PageElement] = [
        TableElement(title=phrase("one_head", name), columns=columns, rows=rows)
        for name, columns, rows in tables
        if rows
    ]
    return Section(
        name="one-head",
        title=phrase("one_head", "title"),
        explanation=phrase("one_head", "explanation"),
        elements=elements,
    )

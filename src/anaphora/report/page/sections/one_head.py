"""The section on what one head carries, and on other words of the sentence that attend to the antecedent too."""

from __future__ import annotations

from anaphora.analysis.evidence.schema.evidence import Evidence
from anaphora.report.one_head import one_head_columns, one_head_rows
from anaphora.report.page.elements import PageElement, Section, TableElement
from anaphora.report.wording import phrase


def one_head_section(evidence: Evidence) -> Section:
    """One table; it is empty where neither was measured."""
    rows = list(one_head_rows(evidence))
    table = TableElement(title=phrase("one_head", "table"), columns=one_head_columns(), rows=rows)
    elements: list[PageElement] = [table] if rows else []
    return Section(
        name="one-head",
        title=phrase("one_head", "title"),
        explanation=phrase("one_head", "explanation"),
        elements=elements,
    )

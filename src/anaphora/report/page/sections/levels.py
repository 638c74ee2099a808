"""The section on compositions: by how much of each training showed, beside the shortcuts of the closed list."""

from __future__ import annotations

from anaphora.analysis.results.evidence import Evidence
from anaphora.report.levels import level_columns, level_rows
from anaphora.report.numbers import format_percent
from anaphora.report.page.elements import Section, TableElement
from anaphora.report.wording import label, language_name, phrase


def levels_sections(evidence: Evidence) -> list[Section]:
    """One section; none where the corpus has no compositions."""
    if not evidence.levels:
        return []
    shortcuts = [
        [language_name(language), label("level_names", name), label("shortcuts", shortcut), format_percent(accuracy)]
        for language, levels in evidence.levels.items()
        for name, level in levels.items()
        if name != "set"
        for shortcut, accuracy in [*level.shortcuts.items(), ("rule_model", level.rule_model)]
    ]
    return [
        Section(
            name="levels",
            title=phrase("levels", "title"),
            explanation=phrase("levels", "explanation"),
            elements=[
                TableElement(
                    title=phrase("levels", "table"),
                    columns=level_columns(),
                    rows=list(level_rows(evidence, "{accuracy}\n{name}")),
                    texts=2,
                ),
                TableElement(
                    title=phrase("levels", "shortcuts"),
                    columns=[
                        *level_columns()[:2],
                        phrase("levels", "column_shortcut"),
                        phrase("levels", "column_accuracy"),
                    ],
                    rows=shortcuts,
                    texts=3,
                    folded=True,
                ),
            ],
        )
    ]

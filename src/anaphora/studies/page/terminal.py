"""What a study prints when it ends: its question, a table for each language, and its verdict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from anaphora.report.numbers import NOT_MEASURED
from anaphora.report.wording import label, phrase
from anaphora.studies.page.words import (
    condition_text,
    is_of_route,
    items_label,
    judged_value,
    measure_label,
    measure_text,
    own_words,
    question_of,
    status_text,
    table_title,
    value_in,
)
from anaphora.studies.schema import Study

if TYPE_CHECKING:
    from rich.table import Table


def terminal_report(study: Study) -> Iterator[Table | str]:
    """The lines printed at the end of a study: the question, a table a language, and the verdict with its rules.

    Cells are named as they are typed.
    """
    yield phrase("study_terminal", "heading", study=study.name, question=question_of(study))
    for language in study.measured_languages:
        yield _terminal_table(study, language)
    for cell in study.cells:
        for run in cell.runs:
            if run.status != "finished":
                state = status_text(run.status, run.error)
                yield phrase("study_terminal", "run", cell=cell.name, seed=run.seed, state=state)
    for row in study.verdict.rules:
        values = [value_in(language, judged_value(row, spread)) for language, spread in row.spreads.items()]
        yield phrase(
            "study_terminal",
            {True: "holds", False: "fails", None: "not_checked"}[row.passed],
            statement=own_words(row.statement, row.statement_zh),
            measured=phrase("joined", "comma").join(values) or NOT_MEASURED,
            needed=condition_text(row),
        )
    yield phrase("study_terminal", "verdict", verdict=label("study_counts", study.verdict.verdict))


def _terminal_table(study: Study, language: str) -> Table:
    from rich import box
    from rich.table import Table

    title = table_title("study_terminal", language)
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    left_out = ("items", "chance", "quad_accuracy")
    measures = dict.fromkeys(
        measure
        for group in study.groups_in(language)
        for measure in group.measures
        if measure not in left_out and not is_of_route(measure)  # a line has no room for those of every layer
    )
    for name in ("cell", "items", "runs"):
        table.add_column(phrase("study_columns", name))
    for name in measures:
        table.add_column(measure_label(name), justify="right")
    for cell in study.table_cells:
        for group, summary in cell.groups.get(language, {}).items():
            values = [measure_text(summary, name) for name in measures]
            table.add_row(cell.name, items_label(group), str(summary.runs), *values)
    return table

"""Terminal output at the end of a study: question, table of each language, unfinished runs and verdict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from anaphora.base.locale.translation import _, pgettext
from anaphora.report.numbers import NOT_MEASURED
from anaphora.report.wording import label, language_name, language_names
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
    value_in,
    verdict_counts,
)
from anaphora.studies.schema import Study

if TYPE_CHECKING:
    from rich.table import Table


def terminal_report(study: Study) -> Iterator[Table | str]:
    """Yield the final output of a study: its question, a table for each language, unfinished runs and its verdict.

    Cells have their names as on the command line.
    """
    yield _("{study}: {question}").format(study=study.name, question=question_of(study))
    for language in study.measured_languages:
        yield _terminal_table(study, language)
    for cell in study.cells:
        for run in cell.runs:
            if run.status != "finished":
                state = status_text(run.status, run.error)
                yield _("{cell}, seed {seed}: {state}").format(cell=cell.name, seed=run.seed, state=state)
    for row in study.verdict.rules:
        values = [value_in(language, judged_value(row, spread)) for language, spread in row.spreads.items()]
        text = {
            True: _("holds: {statement} ({measured}; needed {needed})"),
            False: _("FAILS: {statement} ({measured}; needed {needed})"),
            None: _("not checked: {statement} ({measured}; needed {needed})"),
        }[row.passed]
        yield text.format(
            statement=own_words(row.statement, row.statement_zh),
            measured=pgettext("list", ", ").join(values) or NOT_MEASURED,
            needed=condition_text(row),
        )
    yield _("verdict: {verdict}").format(verdict=label(verdict_counts(), study.verdict.verdict))


def _terminal_table(study: Study, language: str) -> Table:
    from rich import box
    from rich.table import Table

    title = _("Median (lowest to highest) over seeds; ~ task not solved")
    if language in language_names():
        title = _("{spoken}: median (lowest to highest) over seeds; ~ task not solved").format(
            spoken=language_name(language)
        )
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    left_out = ("items", "chance", "quad_accuracy")
    measures = dict.fromkeys(
        measure
        for group in study.groups_in(language)
        for measure in group.measures
        if measure not in left_out and not is_of_route(measure)  # the measures of every layer would not fit in a line
    )
    for heading in (_("cell"), _("kind of items"), pgettext("number of", "runs")):
        table.add_column(heading)
    for name in measures:
        table.add_column(measure_label(name), justify="right")
    for cell in study.table_cells:
        for group, summary in cell.groups.get(language, {}).items():
            values = [measure_text(summary, name) for name in measures]
            table.add_row(cell.name, items_label(group), str(summary.runs), *values)
    return table

"""Cross-validate runs trained on the folds of a corpus, and shortcut baselines fitted on the same folds.

Example: anaphora cross_validate 'runs=[outputs/dpr_*]'
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from anaphora.base.device import Device
from anaphora.base.translation import _
from anaphora.commands.parts.settings import Overwriting


@dataclass(kw_only=True)
class CrossValidation(Overwriting):
    """Settings of `anaphora cross_validate`."""

    runs: list[str] = field(default_factory=list)  # one or more runs for each fold, such as `outputs/dpr_*`
    # Factors by which the table is broken down; `type+stereotype` combines two factors.
    by: list[str] = field(default_factory=list)
    output: str | None = None  # CSV file for the table
    trainer: Device = field(default_factory=Device)  # device to compute on

    def __post_init__(self) -> None:
        if not self.runs:
            raise ValueError("runs ([]) must name the runs of all folds")


def cross_validate(settings: CrossValidation) -> list[dict[str, Any]]:
    """Predict each item's antecedent with the runs that were not trained on its fold; print and return accuracies.

    If `output` is set, the table is also written as CSV.

    Raises:
        UserError: a run cannot be loaded, or the CSV cannot be written; also the errors of `check_folds` and
            `answer_folds`.
    """
    from anaphora.analysis.results.typed_json import table_row
    from anaphora.analysis.tasks.cross_validation import answer_folds, check_folds, fold_count
    from anaphora.analysis.tasks.task_accuracy import accuracy_table
    from anaphora.base.console import working
    from anaphora.commands.parts.shared import check_table, load_runs, write_table
    from anaphora.commands.parts.tables import print_answers

    check_table(settings)
    runs = load_runs(settings.runs, settings.trainer)
    check_folds(runs)
    with working(_("reading the data")) as progress:
        items = answer_folds(runs, progress, settings.by)
    rows = [table_row(row) for row in accuracy_table(items, settings.by)]
    source = runs[0].config.data
    title = _("{data}, {folds} folds by group, runs per fold: {runs}; shares in %, 95 % over groups").format(
        data=source.kind, folds=fold_count(runs[0]), runs=len(items.answers)
    )
    print_answers(rows, title)
    write_table(settings, rows)
    return rows

"""A corpus answered fold by fold, each item by models that have not seen its group, beside shortcuts of these folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from anaphora.base.device import Device
from anaphora.base.locale.translation import _, in_language_of_messages


@dataclass(kw_only=True)
class CrossValidation:
    """Runs of all folds of one corpus, and shortcuts fitted on the same folds."""

    runs: list[str] = field(default_factory=list)  # one or more runs for each fold, such as `outputs/dpr_*`
    # Factors whose values get rows of their own; `type+stereotype` combines two.
    by: list[str] = field(default_factory=list)
    output: str | None = None  # CSV file for the table
    trainer: Device = field(default_factory=Device)  # where it computes

    def __post_init__(self) -> None:
        if not self.runs:
            raise ValueError("runs ([]) must name the runs of all folds")


def cross_validate(settings: CrossValidation) -> list[dict[str, Any]]:
    """Answer, print the table, and keep it as CSV where a file is named.

    Raises:
        UserError: the runs are not the folds of one corpus, or one of them has seen items that it would answer.
    """
    from anaphora.analysis.results.rows import table_row
    from anaphora.analysis.tasks.answered import accuracy_table
    from anaphora.analysis.tasks.folds import answer_folds, check_folds, fold_count
    from anaphora.base.console import working
    from anaphora.commands.parts.shared import TableFile, load_runs

    table = TableFile.checked(settings.output)
    runs = load_runs(settings.runs, settings.trainer)
    check_folds(runs)
    with working(_("reading the data")) as progress:
        items = answer_folds(runs, progress, settings.by)
    rows = [table_row(row) for row in accuracy_table(items, settings.by)]
    source = runs[0].config.data
    title = _("{data}, {folds} folds by group, {runs} runs a fold; shares in %, 95 % over groups").format(
        data=source.kind, folds=fold_count(runs[0]), runs=len(items.answers)
    )
    print_answers(rows, title)
    table.write(rows)
    return rows


@in_language_of_messages
def print_answers(rows: Sequence[Mapping[str, Any]], title: str) -> None:
    """Print the rows of `accuracy_table`, without the columns that are empty for these items.

    Args:
        rows: of the table.
        title: above it.
    """
    from rich import box
    from rich.table import Table

    from anaphora.analysis.tasks.answered import MODEL, NONE_OF_THEM
    from anaphora.base.console import print_table
    from anaphora.commands.parts.shared import file_column_names, policy_name, value_cell
    from anaphora.report.numbers import format_percent, format_range
    from anaphora.report.wording import label

    several = any(row["lowest"] is not None for row in rows)
    undecided = any(row["policy"] == NONE_OF_THEM for row in rows)
    compared = "contrast" in rows[0]
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for heading in ("", label(file_column_names(), "policy")):
        table.add_column(heading, no_wrap=True)
    columns = {"items": True, "accuracy": True, "runs": several, "minimal_pairs": True, "decisions": undecided}
    columns |= {"silent": any(row["silent"] for row in rows), "model_minus": True, "contrast": compared}
    for name in [name for name, is_shown in columns.items() if is_shown]:
        table.add_column(label(file_column_names(), name), justify="right", no_wrap=True)
    for row in rows:
        cells = {
            "items": str(row["items"]),
            "accuracy": percent_cell(row, "accuracy", ("low", "high")),
            "runs": "" if row["lowest"] is None else format_range(row["lowest"], row["highest"]),
            "minimal_pairs": format_percent(row["minimal_pair_accuracy"]),
            "decisions": percent_cell(row, "decision_accuracy"),
            "silent": format_percent(row["silent"]),
            "model_minus": "" if row["policy"] == MODEL else percent_cell(row, "model_minus"),
            "contrast": percent_cell(row, "contrast") if compared and row["contrast"] is not None else "",
        }
        table.add_row(
            value_cell("value", row["value"] or row["factor"]) or _("all"),
            policy_name(row["policy"]),
            *(cells[name] for name, is_shown in columns.items() if is_shown),
        )
    print_table(table)


def percent_cell(row: Mapping[str, Any], name: str, ends: tuple[str, str] | None = None) -> str:
    """A share of a row in percent with its interval, whose ends are "<name>_low" and "<name>_high" by default."""
    from anaphora.report.numbers import format_percent

    low, high = (row[end] for end in ends or (f"{name}_low", f"{name}_high"))
    return format_percent(row[name], None if low is None or high is None else (low, high))

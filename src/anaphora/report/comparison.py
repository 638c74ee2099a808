"""The table of several runs side by side, for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from anaphora.analysis.evidence.schema.several_runs import GroupSpread
from anaphora.report.numbers import NOT_MEASURED, format_percent
from anaphora.report.wording import labels, language_name, phrase

if TYPE_CHECKING:
    from rich.table import Table

_WITHOUT_RANGE = ("random_init", "chance")


def comparison_table(rows: Sequence[GroupSpread]) -> Table:
    """The rows for the terminal: the median and, in brackets, lowest to highest, in %; fits 100 columns."""
    from rich import box
    from rich.table import Table

    title = f"median (lowest to highest) over {rows[0].runs} runs, shares in %"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 0), pad_edge=False)
    table.add_column("", no_wrap=True)
    for name in labels("short_measures").values():
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        name = language_name(row.language) if row.kind == "all" else f" {phrase('kinds', row.kind)}"
        table.add_row(name, *(_spread_text(row, measure) for measure in labels("short_measures")))
    return table


def _spread_text(row: GroupSpread, measure: str) -> str:
    spread = row.measures[measure]
    if spread is None:
        return NOT_MEASURED
    if measure in _WITHOUT_RANGE:
        return format_percent(spread.median)
    return f"{format_percent(spread.median)} ({format_percent(spread.lowest)}-{format_percent(spread.highest)})"

"""The console that every command prints to."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

console = Console(width=max(100, Console().width), markup=False)
"""Wide enough for the headline table, also where the output goes to a file; text in brackets is text, not markup."""

_WIDEST_TABLE = 200  # characters


def print_table(table: Table) -> None:
    """Print a table uncut, also where the terminal is narrower: then the terminal wraps the lines."""
    width = console.width
    console.width = max(width, _WIDEST_TABLE)
    try:
        console.print(table)
    finally:
        console.width = width

"""Terminal output of all commands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from anaphora.base.language import WIDE_CHARACTER, lines_within
from anaphora.base.translation import _, in_language_of_messages

console = Console(width=max(100, Console().width), markup=False)
"""Console that is at least 100 characters wide, even if output goes to a file, and does not interpret markup."""

Progress = Callable[[str], None]  # function that shows a message about the progress of a command

_WIDEST_TABLE = 200  # characters


def headed_table(
    title: str, texts: Iterable[str], numbers: Iterable[str], no_wrap: bool = False, **options: Any
) -> Table:
    """Return a table without rows: left-aligned columns of text, then right-aligned columns of numbers.

    `no_wrap` keeps each cell on one line; `options` are those of rich's `Table`.
    """
    table = Table(title=title, title_justify="left", **{"box": box.SIMPLE_HEAD, **options})
    for heading in texts:
        table.add_column(heading, no_wrap=no_wrap)
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=no_wrap)
    return table


def print_table(table: Table) -> None:
    """Print a table that may be up to 200 characters wide, or as wide as the console if this is wider."""
    width = console.width
    console.width = max(width, _WIDEST_TABLE)
    try:
        console.print(table)
    finally:
        console.width = width


def wrapped(text: str, width: int) -> str:
    """Break a text with Chinese into lines of at most `width` columns; return other texts unchanged.

    Rich breaks lines at blanks, which are rare in Chinese. Here a line may end after any Chinese character, unless a
    closing mark follows.
    """
    if not WIDE_CHARACTER.search(text):
        return text
    return "\n".join(line for part in text.split("\n") for line in lines_within(part, width, cell_len))


@in_language_of_messages
def say(message: str, **values: Any) -> None:
    """Translate a message, fill in `values`, and print it without wrapping it, so that it stays one line in a log."""
    console.print(_(message).format(**values) if values else _(message), soft_wrap=True)


@contextmanager
def working(stage: str) -> Iterator[Progress]:
    """Show a status message during the `with` block, and yield a function that updates the message."""
    with console.status(stage) as status:
        yield status.update


def format_bytes(count: float) -> str:
    """Format a number of bytes in GB from 1.5 GB on, in MB from 1.5 MB on, otherwise in kB."""
    for unit, size in (("GB", 1e9), ("MB", 1e6)):
        if count >= 1.5 * size:
            return f"{count / size:.1f} {unit}" if count < 10 * size else f"{count / size:,.0f} {unit}"
    return f"{count / 1e3:,.0f} kB"

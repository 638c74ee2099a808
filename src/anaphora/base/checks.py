"""Checks of numbers and words in settings; each names the setting, the value and what is allowed."""

from __future__ import annotations

from collections.abc import Sequence

from anaphora.base.errors import UserError


def between(name: str, value: float, low: float, high: float) -> None:
    """Refuse a number outside [low, high), naming the setting."""
    if not low <= value < high:
        raise UserError(f"{name} ({value}) must be at least {low:g} and below {high:g}")


def at_least(name: str, value: float, low: float) -> None:
    """Refuse a number below `low`, naming the setting."""
    if value < low:
        raise UserError(f"{name} ({value}) must be at least {low:g}")


def thread_count(name: str, value: int) -> None:
    """Refuse a number of threads that no machine has: many thousands end the process without a word."""
    between(name, value, 1, 1025)


def one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """Refuse a word that is not in the list, naming the setting."""
    if value not in allowed:
        raise UserError(f"{name} ({value!r}) must be one of {', '.join(allowed)}")


FIGURE_FORMATS = ("png", "svg", "pdf")
"""The formats in which a figure can be written."""


def figure_formats(names: Sequence[str]) -> None:
    """Refuse a format in which no figure can be written."""
    for name in names:
        one_of("formats", name, FIGURE_FORMATS)


LONGEST_NAME = 200
"""Characters of a directory's name that every file system holds."""


def directory_name(name: str, value: str) -> None:
    """Refuse a name that leads elsewhere, is hidden, or is too long, naming the setting."""
    if not value or value.startswith(".") or set(value) & set("/\\\0") or len(value.encode()) > LONGEST_NAME:
        shown = value if len(value) <= 60 else f"{value[:60]}..."
        raise UserError(
            f"{name} ({shown!r}) must be the name of one directory: at most {LONGEST_NAME} bytes, no / or \\, "
            "no dot at the start"
        )

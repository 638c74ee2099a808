"""Checks of numbers and words in settings; each names the setting, the value and what is allowed."""

from __future__ import annotations

from anaphora.base.errors import UserError


def between(name: str, value: float, low: float, high: float) -> None:
    """Refuse a number outside [low, high), naming the setting."""
    if not low <= value < high:
        raise UserError(f"{name} ({value}) must be at least {low:g} and below {high:g}")


def at_least(name: str, value: float, low: float) -> None:
    """Refuse a number below `low`, naming the setting."""
    if value < low:
        raise UserError(f"{name} ({value}) must be at least {low:g}")


def one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """Refuse a word that is not in the list, naming the setting."""
    if value not in allowed:
        raise UserError(f"{name} ({value!r}) must be one of {', '.join(allowed)}")

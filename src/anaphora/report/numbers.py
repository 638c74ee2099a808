"""Number formats of the report: shares in percent, a real minus sign, a dash for missing values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from anaphora.base.console import format_duration
from anaphora.base.locale.translation import _

if TYPE_CHECKING:
    from anaphora.analysis.results.scores import Spread

NOT_MEASURED = "–"


def format_count(number: float | None) -> str:
    """Return a number of things."""
    return NOT_MEASURED if number is None else f"{number:,.0f}"


def format_number(value: float | None, digits: int, span: Sequence[float] | None = None) -> str:
    """Return a number with a number of decimals, and its interval."""
    if value is None:
        return NOT_MEASURED
    return with_minus(f"{value:.{digits}f}") + _interval_after(span, digits)


def format_points(points: float | None, span: Sequence[float] | None = None) -> str:
    """Return percentage points with their interval."""
    return format_number(points, 1, span)


def format_percent(share: float | None, span: Sequence[float] | None = None) -> str:
    """Return a share in percent, with its interval."""
    return format_points(None if share is None else 100 * share, [100 * end for end in span or ()])


def format_short_percent(share: float | None) -> str:
    """Return a share in percent without decimals; 0.997 is not 100."""
    if share is None:
        return NOT_MEASURED
    return f"{min(100 * share, 99.9):.1f}" if 0.995 <= share < 1 else with_minus(f"{100 * share:.0f}")


def format_in_unit(value: float | None, span: Sequence[float] | None, unit: str) -> str:
    """Return a number with its unit, and with its interval.

    Args:
        value: the number; None if it was not measured.
        span: the ends of its interval, if it has one.
        unit: "share", "share difference" or "points", "times", "p" or "count".
    """
    if value is None:
        return NOT_MEASURED
    match unit:
        case "p":
            return "< 0.001" if 0 < value < 0.001 else f"{value:.3g}"
        case "count":
            return format_count(value)
        case "times":
            return _("{value} times").format(value=format_number(value, 2)) + _interval_after(span, 2)
    points = _("{value} points")
    factor, text = {"share": (100, _("{value} %")), "share difference": (100, points), "points": (1, points)}[unit]
    ends = [factor * end for end in span or ()]
    return text.format(value=format_points(factor * value)) + _interval_after(ends, 1)


def format_range(low: float | None, high: float | None) -> str:
    """Return two shares, from the lowest to the highest."""
    if low is None or high is None:
        return NOT_MEASURED
    return _("{low} to {high}").format(low=format_percent(low), high=format_percent(high))


def format_spread(spread: Spread | None) -> str:
    """Return a median in percent with the lowest and highest, or alone if all are equal as printed."""
    if spread is None:
        return NOT_MEASURED
    median = format_percent(spread.median)
    if format_percent(spread.lowest) == format_percent(spread.highest):
        return median
    return f"{median} ({format_range(spread.lowest, spread.highest)})"


def duration_text(seconds: float) -> str:
    """Return a length of time in seconds, minutes or hours."""
    count, unit = format_duration(seconds).split(" ")
    text = {"s": _("{count} s"), "min": _("{count} min"), "h": _("{count} h")}[unit]
    return text.format(count=count)


def format_p_value(value: float | None) -> str:
    """Return a p-value."""
    return NOT_MEASURED if value is None else ("< 0.001" if value < 0.001 else f"{value:.3f}")


def _interval_after(span: Sequence[float] | None, digits: int) -> str:
    """Return the ends of an interval as written after its number."""
    return f" [{', '.join(with_minus(f'{end:.{digits}f}') for end in span)}]" if span else ""


def with_minus(number: str) -> str:
    """Return a number written with a minus sign instead of a hyphen."""
    return number.replace("-", "−") if float(number) else number.lstrip("-")

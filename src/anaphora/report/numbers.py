"""Number formats of the report: shares in percent, a real minus sign, a dash for missing values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from anaphora.base.translation import _

if TYPE_CHECKING:
    from anaphora.analysis.results.scores import Spread

NOT_MEASURED = "–"
_POINT = 1e-9  # up to this width, an interval counts as a single point, because ends have rounding errors


def format_count(number: float | None) -> str:
    """Return a count with thousands separators: "1,234"."""
    return NOT_MEASURED if number is None else f"{number:,.0f}"


def format_number(value: float | None, digits: int, span: Sequence[float] | None = None) -> str:
    """Return a number with `digits` decimals, followed by its interval in brackets if one is given."""
    if value is None:
        return NOT_MEASURED
    return with_minus(f"{value:.{digits}f}") + _interval_after(span, digits)


def format_signed(value: float, digits: int) -> str:
    """Return a number with its sign and `digits` decimals."""
    return with_minus(f"{value:+.{digits}f}")


def format_points(points: float | None, span: Sequence[float] | None = None) -> str:
    """Return percentage points with one decimal, followed by their interval in brackets."""
    return format_number(points, 1, span)


def format_percent(share: float | None, span: Sequence[float] | None = None) -> str:
    """Return a share (0 to 1) in percent with one decimal and its interval, without a percent sign."""
    return format_points(None if share is None else 100 * share, [100 * end for end in span or ()])


def format_short_percent(share: float) -> str:
    """Return a share (0 to 1) in percent, without decimals below 99.5; only 1 gives "100", and 0.996 gives "99.6"."""
    return f"{min(100 * share, 99.9):.1f}" if 0.995 <= share < 1 else with_minus(f"{100 * share:.0f}")


def interval_of(row: Mapping[str, Any], prefix: str = "") -> tuple[float, float] | None:
    """Return the interval in the columns `prefix` + "low" and "high" of a table row; None if there is none."""
    low, high = row[f"{prefix}low"], row[f"{prefix}high"]
    return None if low is None or high is None else (low, high)


def shown_interval(span: Sequence[float | None] | None) -> tuple[float, float] | None:
    """Return the interval that a table, figure or sentence may show; None for a single point or no interval.

    The interval is a single point if all clusters of items have the same mean; it then says nothing about other
    clusters.
    """
    low, high = span or (None, None)
    return (low, high) if low is not None and high is not None and high - low > _POINT else None


def with_shown_intervals(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row in which intervals that are single points are replaced by None."""
    prefixes = [name.removesuffix("low") for name in row if name == "low" or name.endswith("_low")]
    hidden = [each for each in prefixes if shown_interval((row[f"{each}low"], row[f"{each}high"])) is None]
    return {**row, **{f"{each}{end}": None for each in hidden for end in ("low", "high")}}


def left_out_note(spans: Iterable[Sequence[float | None] | None]) -> str | None:
    """Return a note on intervals that are not shown because they are single points; None if there are none."""
    if not any(low is not None and high is not None and high - low <= _POINT for low, high in filter(None, spans)):
        return None
    return _(
        "There is no interval if all templates or groups measured here have the same mean: that says nothing "
        "about others, which may differ."
    )


def format_in_unit(value: float | None, span: Sequence[float] | None, unit: str) -> str:
    """Format a number with its unit and its interval; p-values and counts get no unit and no interval.

    Args:
        value: the number; None if it was not measured.
        span: lower and upper end of the interval; None or empty if there is none.
        unit: one of "share", "share difference", "points", "times", "p" and "count".
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


def format_range(low: float, high: float) -> str:
    """Return two shares (0 to 1) as a range in percent: "12.0 to 34.5"."""
    return _("{low} to {high}").format(low=format_percent(low), high=format_percent(high))


def format_spread(spread: Spread | None) -> str:
    """Return the median of several shares in percent, followed by the lowest and the highest share in brackets.

    The brackets are left out if both round to the same number.
    """
    if spread is None:
        return NOT_MEASURED
    median = format_percent(spread.median)
    if format_percent(spread.lowest) == format_percent(spread.highest):
        return median
    return f"{median} ({format_range(spread.lowest, spread.highest)})"


def duration_text(seconds: float) -> str:
    """Return a duration in seconds below 90 s, in minutes below 90 min, otherwise in hours."""
    if seconds < 90:
        return _("{count} s").format(count=f"{seconds:.0f}")
    minutes = seconds / 60
    if minutes < 90:
        return _("{count} min").format(count=f"{minutes:.0f}")
    return _("{count} h").format(count=f"{minutes / 60:.1f}")


def format_p_value(value: float | None) -> str:
    """Return a p-value with three decimals; "< 0.001" if it is smaller than 0.001."""
    return NOT_MEASURED if value is None else ("< 0.001" if value < 0.001 else f"{value:.3f}")


def _interval_after(span: Sequence[float] | None, digits: int) -> str:
    """Return an interval in brackets after a space; empty if none is shown (`shown_interval`)."""
    ends = shown_interval(span)
    return f" [{', '.join(with_minus(f'{end:.{digits}f}') for end in ends)}]" if ends else ""


def with_minus(number: str) -> str:
    """Replace the hyphen of a negative number by a minus sign; return a negative zero without a sign."""
    return number.replace("-", "−") if float(number) else number.lstrip("-")

"""Numbers as the report writes them: shares in percent, a real minus sign, a dash for what was not measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from anaphora.report.wording import phrase

if TYPE_CHECKING:
    from anaphora.analysis.scores.statistics import Spread

NOT_MEASURED = "–"


def format_count(number: float | None) -> str:
    """A number of things."""
    return NOT_MEASURED if number is None else f"{number:,.0f}"


def format_number(value: float | None, digits: int) -> str:
    """A number with so many digits."""
    return NOT_MEASURED if value is None else with_minus(f"{value:.{digits}f}")


def format_percent(share: float | None, span: Sequence[float] | None = None) -> str:
    """A share in percent, with its interval."""
    if share is None:
        return NOT_MEASURED
    ends = "" if not span else f" [{', '.join(with_minus(f'{100 * end:.1f}') for end in span)}]"
    return with_minus(f"{100 * share:.1f}") + ends


def format_short_percent(share: float | None) -> str:
    """A share in percent without decimals; 0.997 is not 100."""
    if share is None:
        return NOT_MEASURED
    return f"{min(100 * share, 99.9):.1f}" if 0.995 <= share < 1 else with_minus(f"{100 * share:.0f}")


def format_value(value: float | None, span: Sequence[float] | None) -> str:
    """A number of three digits, with its interval."""
    if value is None:
        return NOT_MEASURED
    ends = "" if not span else f" [{', '.join(with_minus(f'{end:.3g}') for end in span)}]"
    return ("< 0.001" if 0 < value < 0.001 else with_minus(f"{value:.3g}")) + ends


def format_range(low: float | None, high: float | None) -> str:
    """Two shares, from the lowest to the highest."""
    if low is None or high is None:
        return NOT_MEASURED
    return phrase("joined", "range", low=format_percent(low), high=format_percent(high))


def format_spread(spread: Spread | None) -> str:
    """A median in percent with the lowest and highest; alone where all are the same as it is written."""
    if spread is None:
        return NOT_MEASURED
    median = format_percent(spread.median)
    if format_percent(spread.lowest) == format_percent(spread.highest):
        return median
    return f"{median} ({format_range(spread.lowest, spread.highest)})"


def format_p_value(value: float | None) -> str:
    """A p-value."""
    return NOT_MEASURED if value is None else ("< 0.001" if value < 0.001 else f"{value:.3f}")


def with_minus(number: str) -> str:
    """A number written with a minus sign instead of a hyphen."""
    return number.replace("-", "−") if float(number) else number.lstrip("-")

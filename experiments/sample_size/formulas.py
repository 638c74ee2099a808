"""Numbers of items and seeds needed to detect a difference, from a measured spread.

N is the number of items, K the number of clusters (templates or groups), and z are normal quantiles.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import integrate, stats

from anaphora.data.grouping import codes_of

MOST_SEEDS = 10_000
"""Maximum number of seeds in results."""
_SURELY_SEEN = 30.0
"""Difference in standard errors from which on a test detects it with any degrees of freedom used here."""


@dataclass(frozen=True)
class ClusteredMean:
    """Mean over clustered items, with its variance.

    Attributes:
        mean: mean over the items.
        items, clusters: N and K.
        item_variance: variance of single items.
        design_effect: variance of the mean, divided by that for N independent items (Kish 1965, section 5.4); 1 if
            clusters have no effect, None for fewer than two clusters or constant values.
    """

    mean: float
    items: int
    clusters: int
    item_variance: float
    design_effect: float | None


def clustered_mean(values: ArrayLike, clusters: Sequence[Hashable]) -> ClusteredMean:
    """Return the mean of clustered values, (N,), with the variance of a ratio estimate (Cochran 1977, equation 9A.4).

    With s_k the sum of the deviations from the mean in cluster k, var(mean) = K / (K - 1) * sum(s_k ** 2) / N ** 2.
    """
    numbers = np.asarray(values, dtype=np.float64)
    codes = np.array(codes_of(clusters), dtype=np.int64)
    items, count, mean = len(numbers), len(set(clusters)), float(numbers.mean())
    item_variance = float(numbers.var(ddof=1)) if items > 1 else 0.0
    sums = np.bincount(codes, weights=numbers - mean)
    known = count > 1 and item_variance > 0
    effect = count / (count - 1) * float((sums**2).sum()) / items / item_variance if known else None
    return ClusteredMean(mean, items, count, item_variance, effect)


def items_needed(spread: ClusteredMean, difference: float, alpha: float, power: float, samples: int = 1) -> int | None:
    """Return the number of items per sample needed to detect a difference with a two-sided test.

    The number is samples * design effect * variance * ((z[1 - alpha / 2] + z[power]) / difference) ** 2 (Cohen 1988,
    section 2.4), with the normal distribution in place of t. The items must be clustered like the measured ones.

    Args:
        spread: measured mean and variance.
        difference: difference to detect, in the unit of the values.
        alpha: significance level of the test.
        power: probability of detecting the difference.
        samples: 1 for a comparison with a fixed value or of paired values; 2 for two means over different items.

    Returns:
        The number; None if the design effect is unknown, or the variance is 0.
    """
    if not spread.design_effect:
        return None
    quantiles = stats.norm.ppf(1 - alpha / 2) + stats.norm.ppf(power)
    return math.ceil(samples * spread.design_effect * spread.item_variance * (quantiles / difference) ** 2)


def seeds_needed(deviation: float, difference: float, alpha: float, power: float, samples: int = 1) -> int | None:
    """Return the number of seeds per recipe needed to detect a difference with a two-sided t-test.

    The number is exact, by the noncentral t distribution.

    Args:
        deviation: standard deviation over seeds, or of the differences if recipes are paired by seed.
        difference: difference to detect, in the same unit.
        alpha: significance level of the test.
        power: probability of detecting the difference.
        samples: 1 for a comparison with a fixed value or of paired values; 2 for two recipes.

    Returns:
        The number, at least 2; None above `MOST_SEEDS`.
    """
    counts = range(2, MOST_SEEDS + 1)
    place = bisect_left(counts, power, key=lambda seeds: _t_power(seeds, deviation, difference, alpha, samples))
    return counts[place] if place < len(counts) else None


def deviation_interval(values: ArrayLike) -> tuple[float, float, float]:
    """Return the standard deviation of at least two normal values, and the ends of its 95 % chi-square interval."""
    numbers = np.asarray(values, dtype=np.float64)
    freedom = len(numbers) - 1
    deviation = float(numbers.std(ddof=1))
    low, high = (math.sqrt(freedom / stats.chi2.ppf(tail, freedom)) for tail in (0.975, 0.025))
    return deviation, deviation * low, deviation * high


def deviation_of_range(lowest: float, highest: float, seeds: int) -> float:
    """Estimate the standard deviation of normal values from their range and number.

    The estimate is the range divided by its expected value for standard normal values (Tippett 1925).
    """
    expected = 2 * integrate.quad(lambda x: 1 - stats.norm.cdf(x) ** seeds - stats.norm.sf(x) ** seeds, 0, 12)[0]
    return (highest - lowest) / float(expected)


def _t_power(seeds: int, deviation: float, difference: float, alpha: float, samples: int) -> float:
    freedom = samples * (seeds - 1)
    critical = stats.t.ppf(1 - alpha / 2, freedom)
    shift = difference * math.sqrt(seeds / samples) / deviation if deviation > 0 else math.inf
    if shift > critical + _SURELY_SEEN:
        return 1.0
    return float(stats.nct.sf(critical, freedom, shift) + stats.nct.cdf(-critical, freedom, shift))

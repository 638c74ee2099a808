"""How many items and how many seeds a difference needs to be seen, from the spread that was measured.

N items in K clusters (templates, groups); z normal and t Student quantiles.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import integrate, stats

from anaphora.data.example import codes_of

MOST_SEEDS = 10_000
"""Where more are needed the answer is None."""
_SURELY_SEEN = 30.0
"""Standard errors from which on a test of any degrees of freedom asked here sees the difference."""


@dataclass(frozen=True)
class ClusteredMean:
    """A mean over items that come in clusters, and how it varies.

    Attributes:
        mean: over the items.
        items, clusters: N and K.
        item_variance: of single items, as if each stood alone.
        design_effect: the variance of the mean over that of N items alone, Kish 1965, section 5.4; 1 where clusters
            carry nothing, None below two clusters or where all items have one value.
    """

    mean: float
    items: int
    clusters: int
    item_variance: float
    design_effect: float | None


def clustered_mean(values: ArrayLike, clusters: Sequence[Hashable]) -> ClusteredMean:
    """The mean of (N,) values in clusters, with the variance of a ratio estimate (Cochran 1977, equation 9A.4).

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
    """Items of each sample, in clusters like those measured, of which a two-sided test sees a difference.

    samples * design effect * variance * ((z[1 - alpha / 2] + z[power]) / difference) ** 2, Cohen 1988, section 2.4,
    with the normal distribution in place of t.

    Args:
        spread: what was measured.
        difference: to see, in the unit of the values.
        alpha: of the test.
        power: how often it shall see the difference.
        samples: 1 against a fixed value, or of differences of pairs; 2 where two means of different items are compared.

    Returns:
        None where nothing tells how clusters vary, or they do not vary at all.
    """
    if not spread.design_effect:
        return None
    quantiles = stats.norm.ppf(1 - alpha / 2) + stats.norm.ppf(power)
    return math.ceil(samples * spread.design_effect * spread.item_variance * (quantiles / difference) ** 2)


def seeds_needed(deviation: float, difference: float, alpha: float, power: float, samples: int = 1) -> int | None:
    """Seeds of each recipe of which a two-sided t-test sees a difference; exact, by the noncentral t distribution.

    Args:
        deviation: the standard deviation over seeds; of the differences where recipes are paired by seed.
        difference: to see, in the same unit.
        alpha: of the test.
        power: how often it shall see the difference.
        samples: 1 against a fixed value, or of differences of pairs; 2 where two recipes are compared.

    Returns:
        At least 2; None above `MOST_SEEDS`.
    """
    counts = range(2, MOST_SEEDS + 1)
    place = bisect_left(counts, power, key=lambda seeds: _t_power(seeds, deviation, difference, alpha, samples))
    return counts[place] if place < len(counts) else None


def deviation_interval(values: ArrayLike) -> tuple[float, float, float]:
    """The standard deviation of two or more normal values, and the 95 % chi-square interval that it lies in."""
    numbers = np.asarray(values, dtype=np.float64)
    freedom = len(numbers) - 1
    deviation = float(numbers.std(ddof=1))
    low, high = (math.sqrt(freedom / stats.chi2.ppf(tail, freedom)) for tail in (0.975, 0.025))
    return deviation, deviation * low, deviation * high


def deviation_of_range(lowest: float, highest: float, seeds: int) -> float:
    """The standard deviation of normal values of which only the lowest, the highest and their number are known.

    The range over its expected value for standard normal values, Tippett 1925.
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

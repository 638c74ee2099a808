"""Rates of several ways to do the same, measured in turns, and what to conclude from them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

OURS = "ours"


@dataclass(frozen=True)
class Way:
    """One way to do the work.

    Attributes:
        maker: OURS, or whose it is.
        name: how it makes its batches.
        pieces: one repeat; each does its part and returns how many units it did.
        parameters: trained numbers of its model.
        real_share: the share of what it computes that is not padding.
    """

    maker: str
    name: str
    pieces: Sequence[Callable[[], int]]
    parameters: int
    real_share: float

    @property
    def peer(self) -> bool:
        """Whether ratios to it are told."""
        return self.maker != OURS


@dataclass(frozen=True)
class Measured:
    """A way and its rate in each repeat, in units a second."""

    way: Way
    rates: tuple[float, ...]

    def over(self, other: Measured) -> tuple[float, ...]:
        """How many times as fast as the other, repeat by repeat: what slows a whole repeat slows both."""
        return tuple(mine / theirs for mine, theirs in zip(self.rates, other.rates, strict=True))


def take_turns(ways: Sequence[Way], repeats: int, clock: Callable[[], float] = time.perf_counter) -> list[Measured]:
    """Measure A B C A B C ...; the first piece of each runs once beforehand, unmeasured."""
    for way in ways:
        way.pieces[0]()
    rates: list[list[float]] = [[] for _ in ways]
    for _ in range(repeats):
        for way, found in zip(ways, rates, strict=True):
            start = clock()
            units = sum(piece() for piece in way.pieces)
            found.append(units / (clock() - start))
    return [Measured(way, tuple(found)) for way, found in zip(ways, rates, strict=True)]


def spread_of(values: Sequence[float]) -> float:
    """Half of the range, as a share of the median."""
    return (max(values) - min(values)) / 2 / median(values)

"""Rates and peak memory of several ways to do the same, measured in turns, and what to conclude from them."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch

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
    """A way and its rate in each repeat, in units a second.

    Attributes:
        way: what was measured.
        rates: of the repeats.
        memory: bytes at the peak of a repeat above what the process held before it, the largest of all repeats; None
            where the system does not tell.
    """

    way: Way
    rates: tuple[float, ...]
    memory: int | None = None

    def over(self, other: Measured) -> tuple[float, ...]:
        """How many times as fast as the other, repeat by repeat: what slows a whole repeat slows both."""
        return tuple(mine / theirs for mine, theirs in zip(self.rates, other.rates, strict=True))


@dataclass(frozen=True)
class Meter:
    """How the work and the memory of a device are read.

    Attributes:
        held_now: bytes held, from which on `held_at_most` counts; None where the system does not tell.
        held_at_most: the most bytes held since.
        finish: waits until what was asked of the device is done.
    """

    held_now: Callable[[], int | None]
    held_at_most: Callable[[], int]
    finish: Callable[[], None]


def take_turns(
    ways: Sequence[Way], repeats: int, clock: Callable[[], float] = time.perf_counter, meter: Meter | None = None
) -> list[Measured]:
    """Measure A B C A B C ...; the first piece of each runs once beforehand, unmeasured.

    Args:
        ways: what is compared.
        repeats: how many turns each takes.
        clock: seconds.
        meter: of the device; by default of the processor.
    """
    meter = meter or PROCESSOR
    for way in ways:
        way.pieces[0]()
    rates: list[list[float]] = [[] for _ in ways]
    peaks: list[list[int]] = [[] for _ in ways]
    for _ in range(repeats):
        for way, found, peak in zip(ways, rates, peaks, strict=True):
            meter.finish()
            before = meter.held_now()
            start = clock()
            units = sum(piece() for piece in way.pieces)
            meter.finish()
            found.append(units / (clock() - start))
            if before is not None:
                peak.append(meter.held_at_most() - before)
    return [
        Measured(way, tuple(found), max(peak, default=None))
        for way, found, peak in zip(ways, rates, peaks, strict=True)
    ]


def held_now() -> int | None:
    """Bytes that this process holds, after which `held_at_most` counts anew; None where glibc and Linux are not."""
    try:
        # What the allocator kept of the way before would hide what the next one takes.
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):
        return None
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # proc(5): resets the peak
        return _held("VmRSS")
    except OSError:
        return None


def held_at_most() -> int:
    """The most bytes that this process has held since `held_now`."""
    return _held("VmHWM")


def _held(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


PROCESSOR = Meter(held_now, held_at_most, finish=lambda: None)


def meter_of(device: torch.device) -> Meter:
    """The meter of a device."""
    if device.type != "cuda":
        return PROCESSOR

    def held() -> int:
        torch.cuda.reset_peak_memory_stats(device)
        return torch.cuda.memory_allocated(device)

    return Meter(held, lambda: torch.cuda.max_memory_allocated(device), lambda: torch.cuda.synchronize(device))


def spread_of(values: Sequence[float]) -> float:
    """Half of the range, as a share of the median."""
    return (max(values) - min(values)) / 2 / median(values)

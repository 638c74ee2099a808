"""Rates and peak memory of several ways to do the same work, measured in turns."""

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
class Variant:
    """One way to do the work.

    Attributes:
        implementation: OURS, or whose it is.
        name: how it makes its batches.
        parts: of one repeat; each returns how many units of work it did.
        parameters: trained numbers of its model.
        non_padding_share: the share of what it computes that is not padding.
    """

    implementation: str
    name: str
    parts: Sequence[Callable[[], int]]
    parameters: int
    non_padding_share: float

    @property
    def is_peer(self) -> bool:
        """Whether ratios to it are reported."""
        return self.implementation != OURS


@dataclass(frozen=True)
class Measurement:
    """A variant and its rate in each repeat, in units a second.

    Attributes:
        variant: what was measured.
        rates: of the repeats.
        memory: bytes at the peak of a repeat above what the process held before it, the largest of all repeats; None
            where the system does not report it.
    """

    variant: Variant
    rates: tuple[float, ...]
    memory: int | None = None

    def over(self, other: Measurement) -> tuple[float, ...]:
        """How many times as fast as the other, repeat by repeat: what slows a whole repeat slows both."""
        return tuple(mine / theirs for mine, theirs in zip(self.rates, other.rates, strict=True))


@dataclass(frozen=True)
class DeviceMeter:
    """How the work and the memory of a device are read.

    Attributes:
        reset_peak: bytes held, from which on `read_peak` counts; None where the system does not report it.
        read_peak: the most bytes held since.
        finish: waits until the device has done all its work.
    """

    reset_peak: Callable[[], int | None]
    read_peak: Callable[[], int]
    finish: Callable[[], None]


def measure_interleaved(
    variants: Sequence[Variant],
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
    meter: DeviceMeter | None = None,
) -> list[Measurement]:
    """Measure A B C A B C ...; the first part of each runs once beforehand, unmeasured.

    Args:
        variants: what is compared.
        repeats: how many turns each takes.
        clock: seconds.
        meter: of the device; by default of the processor.
    """
    meter = meter or CPU_METER
    for variant in variants:
        variant.parts[0]()
    rates: list[list[float]] = [[] for _ in variants]
    peaks: list[list[int]] = [[] for _ in variants]
    for _ in range(repeats):
        for variant, variant_rates, variant_peaks in zip(variants, rates, peaks, strict=True):
            meter.finish()
            before = meter.reset_peak()
            start = clock()
            units = sum(part() for part in variant.parts)
            meter.finish()
            variant_rates.append(units / (clock() - start))
            if before is not None:
                variant_peaks.append(meter.read_peak() - before)
    return [
        Measurement(variant, tuple(variant_rates), max(variant_peaks, default=None))
        for variant, variant_rates, variant_peaks in zip(variants, rates, peaks, strict=True)
    ]


def reset_peak_memory() -> int | None:
    """Bytes that this process holds, after which `peak_memory` counts anew; None without glibc and Linux."""
    try:
        # Memory that the allocator kept of the variant before would hide what the next one takes.
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):
        return None
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # proc(5): resets the peak
        return _process_memory("VmRSS")
    except OSError:
        return None


def peak_memory() -> int:
    """The most bytes that this process has held since `reset_peak_memory`."""
    return _process_memory("VmHWM")


def _process_memory(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


CPU_METER = DeviceMeter(reset_peak_memory, peak_memory, finish=lambda: None)


def meter_of(device: torch.device) -> DeviceMeter:
    """The meter of a device."""
    if device.type != "cuda":
        return CPU_METER

    def reset() -> int:
        torch.cuda.reset_peak_memory_stats(device)
        return torch.cuda.memory_allocated(device)

    return DeviceMeter(reset, lambda: torch.cuda.max_memory_allocated(device), lambda: torch.cuda.synchronize(device))


def relative_half_range(values: Sequence[float]) -> float:
    """Half of the range, as a share of the median."""
    return (max(values) - min(values)) / 2 / median(values)

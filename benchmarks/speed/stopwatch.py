"""Interleaved measurement of the rates and peak memory of several implementations of the same work."""

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
    """Implementation to measure.

    Attributes:
        implementation: OURS, or name of another library's implementation.
        name: name of the batching.
        parts: functions that make up one repeat; each returns the number of units of work done.
        parameters: number of trained parameters of the model.
        non_padding_share: share of the computed tokens that are not padding.
    """

    implementation: str
    name: str
    parts: Sequence[Callable[[], int]]
    parameters: int
    non_padding_share: float

    @property
    def is_peer(self) -> bool:
        """Return whether other variants are compared with this one."""
        return self.implementation != OURS


@dataclass(frozen=True)
class Measurement:
    """Rates and peak memory of a variant.

    Attributes:
        variant: the variant.
        rates: rate of each repeat, in units per second.
        memory: peak memory of a repeat in bytes, minus the memory in use before it, as the maximum over repeats; None
            if the system does not report it.
    """

    variant: Variant
    rates: tuple[float, ...]
    memory: int | None = None

    def over(self, other: Measurement) -> tuple[float, ...]:
        """Return the speedup over another variant in each repeat, which cancels slowdowns of whole repeats."""
        return tuple(mine / theirs for mine, theirs in zip(self.rates, other.rates, strict=True))


@dataclass(frozen=True)
class DeviceMeter:
    """Memory meter and synchronisation of a device.

    Attributes:
        reset_peak: function that starts a peak measurement and returns the bytes in use, or None if unknown.
        read_peak: function that returns the peak in bytes since `reset_peak`.
        finish: function that waits until the device has finished all work.
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
    """Measure variants in the order A B C A B C ..., after a warm-up with the first part of each.

    Args:
        variants: variants to compare.
        repeats: number of repeats of each variant.
        clock: function that returns a time in seconds.
        meter: meter of the device; by default that of the CPU.
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
    """Reset the peak of `peak_memory`, and return the bytes in use by this process; None without Linux and glibc."""
    try:
        # Memory that the allocator keeps from the previous variant would hide the demand of the next one.
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):
        return None
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # proc(5): resets the peak
        return _process_memory("VmRSS")
    except OSError:
        return None


def peak_memory() -> int:
    """Return the peak memory of this process in bytes since `reset_peak_memory`."""
    return _process_memory("VmHWM")


def _process_memory(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


CPU_METER = DeviceMeter(reset_peak_memory, peak_memory, finish=lambda: None)


def meter_of(device: torch.device) -> DeviceMeter:
    """Return the meter of a device."""
    if device.type != "cuda":
        return CPU_METER

    def reset() -> int:
        torch.cuda.reset_peak_memory_stats(device)
        return torch.cuda.memory_allocated(device)

    return DeviceMeter(reset, lambda: torch.cuda.max_memory_allocated(device), lambda: torch.cuda.synchronize(device))


def relative_half_range(values: Sequence[float]) -> float:
    """Return half of the range as a share of the median."""
    return (max(values) - min(values)) / 2 / median(values)

"""The training machine: its processor, its load, and settings that are slow on it; no heavy imports."""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from anaphora.base.locale.translation import _

if TYPE_CHECKING:
    import torch

_SLOW = 1.5
"""How many times as long a training may take before a line says so."""
_TRAINING_BYTES = 16
"""Bytes that a float32 weight takes in training: itself, its gradient, and two averages of the optimizer."""
_LOOKS = 10
_SECONDS_BETWEEN_LOOKS = 0.02
_PROBE = 256  # width of the matrices whose product is timed


@dataclass(frozen=True)
class Machine:
    """The properties of a machine that affect the duration of training.

    Attributes:
        processor: its name.
        kernel: the operating system and its version.
        cores: how many this process may use.
        load: how many other threads ran or waited for a core, on average over a moment; None if the system does not
            say, or says it of more cores than this process may use.
    """

    processor: str
    kernel: str
    cores: int
    load: float | None

    @classmethod
    def present(cls) -> Machine:
        """Return the current machine."""
        counts_ours = _cores() == os.cpu_count()  # the system counts the threads on all cores together
        load = _load() if counts_ours else None
        return cls(_processor(), f"{platform.system()} {platform.release()}", _cores(), load)

    def slowdown(self, threads: int) -> float:
        """Return the factor by which the current load slows down some threads; 1 if there is room."""
        return max(1.0, ((self.load or 0.0) + threads) / self.cores)


def wait_passively() -> None:
    """Let waiting threads yield the processor; it affects torch if that is loaded later.

    By default they wait in a loop. If a core is busy, the thread on the other core burns its time waiting for it.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def slow_settings(machine: Machine, threads: int, precision: str, weights: int) -> list[str]:
    """Return a line for each setting that makes training slow on the CPU, with an estimate and a remedy.

    Args:
        machine: with its load before the training.
        threads: how many the training uses.
        precision: `32` or `bf16-mixed`.
        weights: how many the model has.
    """
    lines = []
    slowdown = machine.slowdown(threads)
    if slowdown >= _SLOW:
        lines.append(
            _(
                "This machine is busy (load {load} on {cores} cores): this training (threads: {threads}) takes about "
                "{factor} times as long as on an idle one. Stop other programs, or train later."
            ).format(load=f"{machine.load:.1f}", cores=machine.cores, threads=threads, factor=f"{slowdown:.1f}")
        )
    if precision == "bf16-mixed" and (factor := bfloat16_slowdown()) >= _SLOW:
        lines.append(
            _(
                "This processor has no fast bfloat16 products: they take {factor} times as long as those in float32. "
                "trainer.precision=32 is faster here."
            ).format(factor=f"{factor:.0f}")
        )
    needed, free = weights * _TRAINING_BYTES, free_memory()
    if free is not None and needed > free:
        lines.append(
            _(
                "The model needs about {needed} GB to train, and {free} GB are free: the system may slow down or end "
                "the training. Lower model.width, model.layers or the size of the vocabulary."
            ).format(needed=f"{needed / 1e9:.1f}", free=f"{free / 1e9:.1f}")
        )
    return lines


def bfloat16_slowdown() -> float:
    """Return the time of a matrix product in bfloat16 relative to float32 on this processor."""
    import torch

    return _seconds(torch.bfloat16) / _seconds(torch.float32)


def _seconds(kind: torch.dtype) -> float:
    """Return CPU seconds of a product of square matrices: the fastest of three, after a warm-up."""
    import torch

    matrix = torch.ones(_PROBE, _PROBE, dtype=kind)
    times = []
    for _number in range(4):
        start = time.process_time()
        matrix @ matrix
        times.append(time.process_time() - start)
    return max(min(times[1:]), 1e-9)


def free_memory() -> int | None:
    """Return the bytes that a process can still allocate; None if the system does not report them."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        return None


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _load() -> float | None:
    """Return the mean of a few readings; the average of the last minute would include this process's earlier work."""
    busy = []
    try:
        for _number in range(_LOOKS):
            running = Path("/proc/loadavg").read_text(encoding="utf-8").split()[3].partition("/")[0]
            busy.append(int(running) - 1)  # without the thread that looks
            time.sleep(_SECONDS_BETWEEN_LOOKS)
    except (OSError, IndexError, ValueError):
        return None
    return round(sum(busy) / _LOOKS, 2)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()

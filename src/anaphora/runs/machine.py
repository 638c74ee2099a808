"""Processor and load of the machine, and warnings about settings with which training is slow on this machine.

Importing this module does not import torch.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from anaphora.base.translation import _

if TYPE_CHECKING:
    import torch

_SLOW = 1.5  # smallest slowdown factor for which a warning is printed
_TRAINING_BYTES = 16  # bytes per float32 weight in training: the weight, its gradient, and the optimizer's two moments
_LOOKS = 10
_SECONDS_BETWEEN_LOOKS = 0.02
_PROBE = 256  # width of the matrices whose product is timed


@dataclass(frozen=True)
class Machine:
    """Properties of a machine that affect the duration of training."""

    processor: str  # model name of the processor
    kernel: str  # operating system and its version
    cores: int  # number of cores that this process may use
    # Mean number of other threads that run or wait for a core, over 0.2 s; None if the system does not report this
    # number, or reports it for more cores than this process may use.
    load: float | None

    @classmethod
    def present(cls) -> Machine:
        counts_ours = _cores() == os.cpu_count()  # the system counts the threads on all cores together
        load = _load() if counts_ours else None
        return cls(_processor(), f"{platform.system()} {platform.release()}", _cores(), load)

    def slowdown(self, threads: int) -> float:
        """Return the factor, at least 1, by which the load slows down `threads` threads; unknown load counts as 0."""
        return max(1.0, ((self.load or 0.0) + threads) / self.cores)


def wait_briefly() -> None:
    """Let waiting OpenMP threads yield the processor sooner; call this before torch is imported.

    By default, waiting threads spin for milliseconds, which wastes their cores while they wait for a thread on a busy
    core. With the new setting, they spin 1,000 times in GNU's OpenMP and not at all in other OpenMP libraries. Threads
    that never spin are slow on idle cores. A user's own value of OMP_WAIT_POLICY or GOMP_SPINCOUNT is kept.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")


def keep_few_kernels() -> None:
    """Let oneDNN cache 64 compiled kernels for matrix products instead of 1,024; call this before torch is imported.

    oneDNN compiles a kernel for each number of rows of a matrix. This number differs between batches, so most kernels
    are used only once in training. The limits are set in environment variables; values that the user has set are kept.
    """
    if "DNNL_PRIMITIVE_CACHE_CAPACITY" not in os.environ:  # oneDNN's older name, which the newer one would override
        os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
    os.environ.setdefault("LRU_CACHE_CAPACITY", "64")  # of torch's own cache of oneDNN operations


def slow_settings(machine: Machine, threads: int, precision: str, weights: int) -> list[str]:
    """Return a warning for each cause of slow training on the CPU, with an estimate and a remedy.

    `machine` has the load before training, and `weights` is the model's number of weights.
    """
    lines = []
    slowdown = machine.slowdown(threads)
    if slowdown >= _SLOW:
        lines.append(
            _(
                "This machine is busy (load {load} on {cores:core|cores}): this training (threads: {threads}) takes "
                "about "
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


def attention_seconds(lengths: Sequence[int], layers: int, width: int) -> float:
    """Estimate the seconds that the matrix products of attention take in a forward pass over long texts on the CPU.

    `lengths` are the texts' numbers of tokens; the time grows with their squares.
    """
    import torch

    operations = 4 * layers * width * sum(tokens**2 for tokens in lengths)
    return operations / (2 * _PROBE**3) * _seconds(torch.float32) / torch.get_num_threads()


def _seconds(kind: torch.dtype) -> float:
    """Measure the CPU time of a product of square matrices, in seconds: the fastest of three runs after a warm-up."""
    import torch

    matrix = torch.ones(_PROBE, _PROBE, dtype=kind)
    times = []
    for _number in range(4):
        start = time.process_time()
        matrix @ matrix
        times.append(time.process_time() - start)
    return max(min(times[1:]), 1e-9)


def free_memory() -> int | None:
    """Return the number of bytes that can still be allocated; None if the system does not report it."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        return None


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _load() -> float | None:
    """Return the mean number of other busy threads over a few samples; the system's own average counts this process."""
    busy = []
    try:
        for _number in range(_LOOKS):
            running = Path("/proc/loadavg").read_text(encoding="utf-8").split()[3].partition("/")[0]
            busy.append(int(running) - 1)  # without this thread
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

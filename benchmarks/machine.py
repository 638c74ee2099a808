"""Print this machine's performance figures that matter for training: python -m benchmarks.machine.

Rates are the best of ten repeats, with one thread, in processor time. The speedup by threads and the rate of copying
are in wall-clock time, and so are lowered by other running programs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor

from anaphora.model.linear import has_faster_kernel, linear
from anaphora.runs.machine import Machine, free_memory

SIZES = ((1400, 128, 256), (2048, 256, 1024))
"""Rows, inner dimension and columns of a matrix product in the demo's training, and in pre-training."""
REPEATS = 10
PRODUCTS = 20  # number of matrix products per repeat
COPIED_BYTES = 2**28


def fastest(work: Callable[[], object], clock: Callable[[], float]) -> float:
    """Return the duration in seconds of the fastest repeat, after one warm-up."""
    work()
    times = []
    for _ in range(REPEATS):
        start = clock()
        work()
        times.append(clock() - start)
    return max(min(times), 1e-9)


def products(vectors: Tensor, weight: Tensor, product: Callable[[Tensor, Tensor, None], Tensor]) -> Callable[[], None]:
    """Return a function that computes a matrix product repeatedly."""

    def work() -> None:
        for _ in range(PRODUCTS):
            product(vectors, weight, None)

    return work


def main() -> None:
    """Run the benchmark and print the results."""
    machine, cores = Machine.present(), torch.get_num_threads()
    free = free_memory()
    lines = [
        f"{machine.processor}, {machine.cores} cores, {machine.kernel}, load {machine.load}",
        f"free memory: {'unknown' if free is None else f'{free / 1e9:.1f} GB'}",
        f"linear layers take the products of {'oneDNN' if has_faster_kernel() else 'torch'}",
    ]
    for rows, inner, columns in SIZES:
        operations = 2 * rows * inner * columns * PRODUCTS / 1e9
        for kind in (torch.float32, torch.bfloat16):
            vectors, weight = torch.randn(rows, inner).to(kind), torch.randn(columns, inner).to(kind)
            torch.set_num_threads(1)
            rates = {
                name: operations / fastest(products(vectors, weight, product), time.process_time)
                for name, product in (("torch", torch.nn.functional.linear), ("ours", linear))
            }
            alone = fastest(products(vectors, weight, linear), time.perf_counter)
            torch.set_num_threads(cores)
            gain = alone / fastest(products(vectors, weight, linear), time.perf_counter)
            written = ", ".join(f"{name} {rate:.0f} GFLOP/s" for name, rate in rates.items())
            size = f"{rows} x {inner} by {inner} x {columns}, {str(kind).removeprefix('torch.')}"
            lines.append(f"{size}: {written}; {cores} threads are {gain:.1f} times as fast as one")
    source, target = torch.ones(COPIED_BYTES, dtype=torch.uint8), torch.empty(COPIED_BYTES, dtype=torch.uint8)
    seconds = fastest(lambda: target.copy_(source), time.perf_counter)
    lines.append(f"copying: {COPIED_BYTES / seconds / 1e9:.1f} GB/s")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

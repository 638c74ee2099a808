"""Measure the demo's training speed next to busy processes: python -m benchmarks.threads [SECONDS] [REPEATS].

Training alternates between one and two threads (or up to `OMP_NUM_THREADS`), alone and next to two and four busy
processes of equal priority. Each repeat lasts at least SECONDS. The table shows the median of steps per second, with
the slowest and the fastest repeat in brackets. With `OMP_WAIT_POLICY=PASSIVE`, waiting threads release the processor.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

import torch

from anaphora.settings.arguments import CONFIGS
from anaphora.settings.compose import compose_run
from anaphora.training.items import prepare_examples
from anaphora.training.run import denormal_numbers_as_zero
from benchmarks.speed.step import variants

SETTINGS = ("experiment=compositions", "data.train_items=2000", "data.test_items=40")
STEPS = 20
COMPETITORS = (0, 2, 4)


@contextmanager
def competitors(count: int) -> Iterator[None]:
    """Run busy processes during the block."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def main() -> None:
    """Run the benchmark and print the results."""
    seconds, repeats = float((sys.argv[1:2] or ["10"])[0]), int((sys.argv[2:3] or ["3"])[0])
    most = torch.get_num_threads()
    data = prepare_examples(compose_run(CONFIGS, SETTINGS, "the benchmark"), None)
    steps = variants(data, STEPS, torch.device("cpu"))[0].parts
    rates: dict[tuple[int, int], list[float]] = {}
    with denormal_numbers_as_zero():
        for _ in range(repeats):
            for busy in COMPETITORS:
                with competitors(busy):
                    for threads in sorted({1, most}):
                        torch.set_num_threads(threads)
                        steps[0]()
                        done, start = 0, time.perf_counter()
                        while time.perf_counter() - start < seconds:
                            steps[done % STEPS]()
                            done += 1
                        rates.setdefault((threads, busy), []).append(done / (time.perf_counter() - start))
    policy = os.environ.get("OMP_WAIT_POLICY", "not set")
    sys.stdout.write(f"{os.cpu_count()} cores, OMP_WAIT_POLICY {policy}, load {os.getloadavg()[0]:.1f}\n")
    for (threads, busy), measured in sorted(rates.items()):
        alone = median(rates[threads, 0]) / median(measured)
        rate = f"{median(measured):.2f} steps a second ({min(measured):.2f} to {max(measured):.2f})"
        sys.stdout.write(f"{threads} threads beside {busy}: {rate}, {alone:.1f} times slower than alone\n")


if __name__ == "__main__":
    main()

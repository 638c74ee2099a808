"""Measure the demo's training speed next to busy processes: python -m benchmarks.threads [SECONDS] [REPEATS].

Training alternates between one and two threads (or up to `OMP_NUM_THREADS`), alone and next to two and four busy
processes of equal priority, for at least SECONDS each. In each repeat, the ways in which OpenMP's threads wait take
turns, each in a process of its own. The table shows the median of steps per second, with the slowest and the fastest
repeat in brackets.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

WAYS = {
    "torch's default": "",
    "passive": "os.environ['OMP_WAIT_POLICY'] = 'PASSIVE'; ",
    "as commands wait": "wait_briefly(); ",
}
"""Statement that makes threads wait in each way, before torch is imported."""
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


def measure(seconds: float) -> list[tuple[int, int, float]]:
    """Return steps per second by numbers of threads and of busy processes."""
    import torch

    from anaphora.settings.arguments import CONFIGS
    from anaphora.settings.compose import compose_run
    from anaphora.training.items import prepare_examples
    from anaphora.training.run import denormal_numbers_as_zero
    from benchmarks.speed.step import variants

    most = torch.get_num_threads()
    data = prepare_examples(compose_run(CONFIGS, SETTINGS, "the benchmark"), None)
    steps = variants(data, STEPS, torch.device("cpu"))[0].parts
    rates = []
    with denormal_numbers_as_zero():
        for busy in COMPETITORS:
            with competitors(busy):
                for threads in sorted({1, most}):
                    torch.set_num_threads(threads)
                    steps[0]()
                    done, start = 0, time.perf_counter()
                    while time.perf_counter() - start < seconds:
                        steps[done % STEPS]()
                        done += 1
                    rates.append((threads, busy, done / (time.perf_counter() - start)))
    return rates


def main() -> None:
    """Run the benchmark and print the results."""
    seconds, repeats = float((sys.argv[1:2] or ["10"])[0]), int((sys.argv[2:3] or ["3"])[0])
    sys.stdout.write(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
    rates: dict[tuple[str, int, int], list[float]] = defaultdict(list)
    inherited = {name: value for name, value in os.environ.items() if name not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}
    imports = "import json, os; from anaphora.runs.machine import wait_briefly; from benchmarks.threads import measure"
    for _ in range(repeats):
        for way, statement in WAYS.items():
            code = f"{imports}; {statement}print(json.dumps(measure({seconds})))"
            done = subprocess.run(
                [sys.executable, "-c", code], env=inherited, stdout=subprocess.PIPE, text=True, check=True
            )
            for threads, busy, rate in json.loads(done.stdout.splitlines()[-1]):
                rates[way, threads, busy].append(rate)
    for (way, threads, busy), measured in rates.items():
        alone = median(rates[way, threads, 0]) / median(measured)
        rate = f"{median(measured):.2f} steps a second ({min(measured):.2f} to {max(measured):.2f})"
        sys.stdout.write(f"{way}, {threads} threads beside {busy}: {rate}, {alone:.1f} times slower than alone\n")


if __name__ == "__main__":
    main()

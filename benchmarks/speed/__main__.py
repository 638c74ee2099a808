"""Measure speed against Hugging Face's BertModel: python -m benchmarks.speed what=extraction 'sizes=[m]'."""

from __future__ import annotations

from anaphora.cli import run_program
from benchmarks.speed.settings import Benchmark


def work(settings: Benchmark) -> None:
    """Run the benchmark and print the results; torch is imported only here."""
    from benchmarks.speed.compare import run_benchmark

    run_benchmark(settings)


if __name__ == "__main__":
    run_program(Benchmark, work)

"""Print how many items and seeds a claim needs: python -m experiments.sample_size 'runs=[outputs/seed_*]' points=5."""

from __future__ import annotations

from anaphora.cli import run_program
from experiments.sample_size.settings import SampleSize


def work(settings: SampleSize) -> None:
    """Print the tables; torch is imported only here."""
    from experiments.sample_size.tables import print_sample_sizes

    print_sample_sizes(settings)


if __name__ == "__main__":
    run_program(SampleSize, work)

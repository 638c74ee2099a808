"""Compare attention maps with blank-out (Abnar and Zuidema 2020, table 1): python -m experiments.abnar_zuidema."""

from __future__ import annotations

from anaphora.cli import run_program
from experiments.abnar_zuidema.settings import Replication


def work(settings: Replication) -> None:
    """Train and measure the models, and print the results; torch is imported only here."""
    from experiments.abnar_zuidema.replicate import replicate

    replicate(settings)


if __name__ == "__main__":
    run_program(Replication, work)

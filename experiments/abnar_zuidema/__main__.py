"""Attention maps against ablation importance, Abnar and Zuidema 2020, table 1: python -m experiments.abnar_zuidema."""

from __future__ import annotations

from anaphora.cli import run_program
from experiments.abnar_zuidema.settings import Replication


def work(settings: Replication) -> None:
    """Train, measure and print; torch is imported only now."""
    from experiments.abnar_zuidema.replicate import replicate

    replicate(settings)


if __name__ == "__main__":
    run_program(Replication, work)

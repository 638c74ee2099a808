"""Measure the heads and test the claims: python -m experiments.pointing_heads models=MODELS data=DATA."""

from __future__ import annotations

from anaphora.cli import run_program
from experiments.pointing_heads.settings import PointingHeads


def work(settings: PointingHeads) -> None:
    """Measure missing parts, and write and print the claims; torch is imported only here."""
    from experiments.pointing_heads.claims import write_claims
    from experiments.pointing_heads.measure import Study

    Study(settings).measure()
    write_claims(settings.output)


if __name__ == "__main__":
    run_program(PointingHeads, work)

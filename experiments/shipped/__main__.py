"""Write the training items: python -m experiments.shipped output=items.jsonl pairs=60000."""

from __future__ import annotations

from anaphora.cli import run_program
from experiments.shipped.settings import TrainingItems


def work(settings: TrainingItems) -> None:
    """Write the rows of both languages."""
    from experiments.shipped.mixture import write_items

    write_items(settings)


if __name__ == "__main__":
    run_program(TrainingItems, work)

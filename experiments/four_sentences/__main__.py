"""Draw four_sentences_*.png: python -m experiments.four_sentences run=outputs/demo."""

from __future__ import annotations

from anaphora.cli import run_program
from experiments.four_sentences.settings import FourSentences


def work(settings: FourSentences) -> None:
    """Draw the pictures; torch is imported only here."""
    from experiments.four_sentences.picture import draw_all

    draw_all(settings)


if __name__ == "__main__":
    run_program(FourSentences, work)

"""Write docs/results/sentences.md and sentences.zh.md: python -m experiments.sentences 'runs=[outputs/demo]'."""

from __future__ import annotations

from anaphora.cli import run_program
from experiments.sentences.settings import Sentences


def work(settings: Sentences) -> None:
    """Evaluate the runs and write the pages; torch is imported only here."""
    from anaphora.runs.presence import run_directories
    from experiments.everyday.corpus import register
    from experiments.sentences.page import main

    register()  # runs that learned the scenes need it
    main(run_directories(settings.runs))


if __name__ == "__main__":
    run_program(Sentences, work)

"""Settings of the pictures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(kw_only=True)
class FourSentences:
    """Pictures of the four sentences of a quad, one for each language of the sentences and of the labels."""

    run: str = "outputs/demo"  # a run whose head has been chosen
    output: str | None = None  # folder for the pictures; by default the run's figures

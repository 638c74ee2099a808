"""Settings of the corpus with everyday scenes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from anaphora.settings.cue_types import BINDING, COMPOSITION, SET_CUE_TYPES
from anaphora.settings.data import ControlledCorpus

RECIPE = ("experiment=compositions", "data=everyday", "optimizer.steps=12000")
"""Default arguments of training on the corpus."""


@dataclass(kw_only=True)
class EverydayCorpus(ControlledCorpus):
    """The built-in corpus of compositions, with an equal number of additional items of everyday scenes."""

    kind: str = "everyday"
    reader: ClassVar[str] = "experiments.everyday.corpus"
    train_items: int = 90_000  # number of items in each language, without those of the scenes
    types: list[str] = field(default_factory=lambda: [*SET_CUE_TYPES, "causality", "winograd", BINDING, COMPOSITION])

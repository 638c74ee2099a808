"""Settings of the corpus, which imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from anaphora.settings.cue_types import BINDING, COMPOSITION, SET_CUE_TYPES
from anaphora.settings.data import ControlledCorpus

RECIPE = ("experiment=compositions", "data=everyday", "optimizer.steps=12000")
"""What a training on the corpus begins with."""


@dataclass(kw_only=True)
class EverydayCorpus(ControlledCorpus):
    """The built-in corpus of compositions, and as many items of everyday scenes on top."""

    kind: str = "everyday"
    reader: ClassVar[str] = "experiments.everyday.corpus"
    train_items: int = 90_000  # number of items in each language besides those of the scenes
    types: list[str] = field(default_factory=lambda: [*SET_CUE_TYPES, "causality", "winograd", BINDING, COMPOSITION])

"""Mixture of training items: generated pairs, running text, and the built-in corpus."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from random import Random

from anaphora.base.console import say
from anaphora.base.files import check_new, write_text
from anaphora.data.controlled.corpus import generate
from anaphora.data.example import Example
from anaphora.settings.cue_types import COMPOSITION, SET_CUE_TYPES
from anaphora.settings.data import ControlledCorpus
from experiments.shipped.items import generated_items
from experiments.shipped.resolved import texts_of
from experiments.shipped.running_text import running_items
from experiments.shipped.settings import Row, TrainingItems

_TYPES = [*SET_CUE_TYPES, "causality", "winograd", "binding", COMPOSITION]
"""Cue types of data=compositions."""


def write_items(settings: TrainingItems) -> None:
    """Write all items to a file, and their texts to a second file if `as_text` is set; both writes are atomic.

    Raises:
        UserError: a file exists and `overwrite` is not set, or cannot be written.
    """
    files = [Path(name) for name in (settings.output, settings.as_text) if name]
    for file in files:
        check_new(file, settings.overwrite)
    rows = (*generated_items(settings), *running_items(settings), *controlled_items(settings))
    for file, content in zip(files, (rows, texts_of(rows)), strict=False):
        write_text(file, _lines(content))
        say(f"written {file}")


def _lines(rows: Iterable[Row]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def controlled_items(settings: TrainingItems) -> Iterator[Row]:
    """Yield items from the training split of the built-in corpus, in randomly drawn whole groups."""
    if not settings.controlled:
        return
    chance = Random(f"{settings.seed}/controlled")
    groups: defaultdict[str, defaultdict[str, list[Example]]] = defaultdict(lambda: defaultdict(list))
    for example in generate(ControlledCorpus(types=_TYPES, train_items=90_000))["train"]:
        groups[example.language][example.group].append(example)
    for of_language in groups.values():
        drawn = 0
        for group in chance.sample(sorted(of_language), len(of_language)):
            drawn += len(of_language[group])
            if drawn > settings.controlled:
                break
            yield from ({**asdict(example), "split": "train"} for example in of_language[group])

"""Control conditions of training: replaced labels and frozen weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.example import Example
from anaphora.model.pronoun_model import PronounModel

AGREEMENT_TYPES = ("gender", "number", "animacy")
"""Types of cue in which only the antecedent agrees with the pronoun's form."""


def replace_labels(data: EncodedSplit, labels: str, seed: tuple[int, ...]) -> None:
    """Replace the labels of a split according to `task.labels`; the examples keep the true labels."""
    match labels:
        case "shuffled":
            shuffle_labels(data, seed)
        case "nearest":
            label_nearest(data)


def shuffle_labels(data: EncodedSplit, seed: tuple[int, ...]) -> None:
    """Draw the antecedents of every item at random from its candidates; their number is unchanged.

    The labels are a function of the seed and the items, so that they are the same in every epoch and in a resumed run.
    """
    generator = np.random.default_rng([*seed, 3])
    keys = generator.random(data.gold.shape) + ~data.present  # absent candidates come last
    ranks = keys.argsort(axis=1).argsort(axis=1)
    data.gold = ranks < data.gold.sum(axis=1, keepdims=True)


def label_nearest(data: EncodedSplit) -> None:
    """Label the nearest compatible candidate as the antecedent of every item that has an antecedent."""
    gold = np.zeros_like(data.gold)
    for number, example in enumerate(data.examples):
        if example.antecedents:
            gold[number, nearest_compatible(example)] = True
    data.gold = gold


def nearest_compatible(example: Example) -> int:
    """Return the index of the last compatible candidate before the pronoun, or else of the first one after it.

    A candidate is compatible if it agrees with the pronoun in gender, number and animacy. In types of cue that rely on
    agreement, only the antecedent agrees; in all others, every candidate does.
    """
    agree = range(len(example.candidates))
    compatible = example.antecedents if example.factors.get("type") in AGREEMENT_TYPES else agree
    begin = example.pronoun[0]
    before = {
        index: max((end for _, end in example.candidates[index] if end <= begin), default=-1) for index in compatible
    }
    nearest = max(compatible, key=lambda index: before[index])
    return nearest if before[nearest] >= 0 else min(compatible, key=lambda index: example.candidates[index][0])


def freeze(model: PronounModel, projections: Sequence[str], layers: int | None) -> None:
    """Freeze some weights of a model.

    Args:
        model: model to be trained.
        projections: names of the frozen projections of every layer's attention: "query", "key", "value" or "output".
        layers: number of lowest blocks to freeze, together with the embedding; None freezes neither.
    """
    if layers is not None:
        encoder = model.encoder
        for module in (encoder.tokens, encoder.position, encoder.embedding_norm, *encoder.blocks[:layers]):
            module.requires_grad_(False)
    for block in model.encoder.blocks:
        for name in projections:
            block.get_submodule(f"attention.{name}").requires_grad_(False)

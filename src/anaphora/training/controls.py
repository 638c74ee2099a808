"""What a control takes from training: right labels, or weights that learn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anaphora.data.batches.encoded import EncodedSplit
from anaphora.model.pronoun_model import PronounModel


def shuffle_labels(data: EncodedSplit, seed: tuple[int, ...]) -> None:
    """Draw the antecedents of every item anew among its candidates, as many as there were.

    The labels are a function of the seed and the items, so that every epoch has the same ones and a resumed run those
    that it began with. The examples keep the true ones.
    """
    generator = np.random.default_rng([*seed, 3])
    keys = generator.random(data.gold.shape) + ~data.present  # absent candidates come last
    ranks = keys.argsort(axis=1).argsort(axis=1)
    data.gold = ranks < data.gold.sum(axis=1, keepdims=True)


def freeze(model: PronounModel, projections: Sequence[str], layers: int | None) -> None:
    """Leave some weights as they are.

    Args:
        model: what is trained.
        projections: of every layer's attention: "query", "key", "value" or "output".
        layers: the embedding and so many blocks from below; None for neither.
    """
    if layers is not None:
        encoder = model.encoder
        for module in (encoder.tokens, encoder.position, encoder.embedding_norm, *encoder.blocks[:layers]):
            module.requires_grad_(False)
    for block in model.encoder.blocks:
        for name in projections:
            block.get_submodule(f"attention.{name}").requires_grad_(False)

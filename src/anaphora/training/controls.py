"""What a control takes from training: right labels, or weights that learn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anaphora.data.batch import Encoded
from anaphora.model.resolver import Resolver


def shuffle_labels(data: Encoded, seed: tuple[int, ...]) -> None:
    """Draw the antecedents of every item anew among its candidates, as many as there were.

    What is drawn is a function of the seed and the items, so that every epoch shows the same labels and a resumed run
    those that it began with. The examples keep the true ones.
    """
    draw = np.random.default_rng([*seed, 3])
    keys = draw.random(data.gold.shape) + ~data.present  # absent candidates come last
    ranks = keys.argsort(axis=1).argsort(axis=1)
    data.gold = ranks < data.gold.sum(axis=1, keepdims=True)


def freeze(resolver: Resolver, projections: Sequence[str], layers: int | None) -> None:
    """Leave some weights as they are.

    Args:
        resolver: what is trained.
        projections: of every layer's attention: "query", "key", "value" or "output".
        layers: the embedding and so many blocks from below; None for neither.
    """
    if layers is not None:
        encoder = resolver.encoder
        for module in (encoder.tokens, encoder.position, encoder.embedding_norm, *encoder.blocks[:layers]):
            module.requires_grad_(False)
    for block in resolver.encoder.blocks:
        for name in projections:
            block.get_submodule(f"attention.{name}").requires_grad_(False)

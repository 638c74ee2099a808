"""Permutation of queries, keys or values among the tokens of a sentence, to test which of them the model needs.

B batch, H heads, T tokens, D features per head.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch
from torch import Tensor

from anaphora.analysis.causal.interventions import intervene
from anaphora.base.errors import UserError
from anaphora.model.encoder import Encoder
from anaphora.model.mixer import AttentionContext, Edit

PROJECTIONS = ("query", "key", "value")


def permuted_projections(encoder: Encoder, part: str, seed: int) -> AbstractContextManager[None]:
    """Permute queries, keys or values among the tokens of each sentence in every layer, inside the `with` block.

    Each layer and forward pass draws its own permutation from `seed`. Position information in a query or key moves
    with it.

    Raises:
        UserError: the encoder has no attention, or the part is unknown.
    """
    if part not in PROJECTIONS or not encoder.has_maps:
        raise UserError(f"permuted ({part!r}) must be one of {', '.join(PROJECTIONS)}, in an encoder with attention")
    edit = _Permutation(PROJECTIONS.index(part), torch.Generator().manual_seed(seed))
    return intervene(encoder, dict.fromkeys(range(len(encoder.layers)), edit))


class _Permutation(Edit):
    def __init__(self, part: int, draw: torch.Generator) -> None:
        self.part, self.draw = part, draw

    def projected(
        self, query: Tensor, key: Tensor, value: Tensor, context: AttentionContext
    ) -> tuple[Tensor, Tensor, Tensor]:
        projections = [query, key, value]
        order = permutation_within_sentences(context.segments, self.draw)[:, None, :, None]
        projections[self.part] = projections[self.part].gather(2, order.expand_as(projections[self.part]))
        return projections[0], projections[1], projections[2]


def permutation_within_sentences(segments: Tensor, draw: torch.Generator) -> Tensor:
    """Return a random order of the tokens within each sentence: (B, T) segment numbers -> (B, T) column indices."""
    keys = segments + 0.999 * torch.rand(segments.shape, generator=draw).to(segments.device)
    order = torch.empty_like(segments)
    return order.scatter(1, segments.argsort(dim=1, stable=True), keys.argsort(dim=1))

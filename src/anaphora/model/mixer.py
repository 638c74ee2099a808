"""The common interface of attention and recurrent networks, which mix the tokens of a sentence.

B batch, T tokens, H heads, D features per head, W width.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class AttentionContext:
    """Everything shared by the layers of a batch: mask, positions, bias and token embeddings.

    Attributes:
        embeddings: (B, T, W) input of the first layer.
        positions: (B, T) position of each token in its own sentence.
        rotate: turns queries or keys by their positions: (B, H, T, D) -> same.
        mask: (B, 1, T, T), 0 where two tokens share a sentence and -inf elsewhere.
        bias: mask plus what the position encoding adds, broadcastable to (B, H, T, T).
        segments: (B, T) number of each token's sentence in its row, -1 for padding.
        is_unbiased: whether mask and bias are known to be zero everywhere.
        hidden_share: share of the values from a layer's own input; the rest comes from `embeddings`.
    """

    embeddings: Tensor
    positions: Tensor
    rotate: Callable[[Tensor], Tensor]
    mask: Tensor
    bias: Tensor
    segments: Tensor
    is_unbiased: bool = False
    hidden_share: float = 1.0


class Edit:
    """An intervention inside one layer's attention; each subclass changes one tensor, this base none.

    An edit returns new tensors and does not change its arguments.
    """

    def projected(
        self, query: Tensor, key: Tensor, value: Tensor, context: AttentionContext
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Edit queries, keys and values after positions are applied: three of (B, H, T, D) -> same."""
        return query, key, value

    def scores(self, scores: Tensor) -> Tensor:
        """Edit the scores before the softmax, with bias and mask: (B, H, T, T) -> same; -inf forbids a pair."""
        return scores

    def weights(self, weights: Tensor) -> Tensor:
        """Edit the weights after the softmax: (B, H, T, T) -> same; rows are not renormalised."""
        return weights

    def mixed(self, mixed: Tensor) -> Tensor:
        """Edit the output of each head: (B, H, T, D) -> same."""
        return mixed


class Mixer(nn.Module):
    """A layer's component that mixes the tokens of a sentence.

    Attributes:
        heads: number of parts that the features are split into.
        edits: interventions, in the order in which they are applied.
    """

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.edits: tuple[Edit, ...] = ()

    def project(self, hidden: Tensor, content: Tensor, context: AttentionContext) -> tuple[Tensor, Tensor, Tensor]:
        """Project `hidden` to query and key and `content` to value: (B, T, W) twice -> (B, H, T, D) thrice."""
        raise NotImplementedError

    def mix(self, query: Tensor, key: Tensor, value: Tensor, context: AttentionContext) -> Tensor:
        """Mix the tokens of each sentence, heads concatenated: three of (B, H, T, D) -> (B, T, W)."""
        raise NotImplementedError

    def mix_at(self, query: Tensor, key: Tensor, value: Tensor, context: AttentionContext, needed: Tensor) -> Tensor:
        """Mix as `mix` does for some tokens: (P,) different flat positions in order, row * T + token -> (P, W)."""
        return self.mix(query, key, value, context).flatten(0, 1)[needed]

    def finish(self, mixed: Tensor) -> Tensor:
        """Return the output projection of the concatenated heads, (..., W) -> (..., W); here its input."""
        return mixed


def same_sentence_mask(segments: Tensor) -> Tensor:
    """Build the additive mask of packed rows: (B, T) sentence numbers, -1 for padding -> (B, 1, T, T) of 0 and -inf.

    No attention goes from or to padding.
    """
    together = (segments.unsqueeze(-1) == segments.unsqueeze(-2)) & (segments >= 0).unsqueeze(-1)
    empty = torch.zeros((), device=segments.device)
    return torch.where(together, empty, -math.inf).unsqueeze(1)


def second_sequence_mask(second: Tensor) -> Tensor:
    """Build the additive mask of a second sequence, to which nothing attends: (B, T) bool -> (B, 1, 1, T).

    Its tokens are queries only; keys and values come from the first sequence (encoder-decoder attention, Vaswani et
    al. 2017, section 3.2.3).
    """
    empty = torch.zeros((), device=second.device)
    return torch.where(second, -math.inf, empty)[:, None, None, :]

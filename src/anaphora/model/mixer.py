"""What mixes the tokens of a sentence: the interface of attention and of recurrent networks, and what they share.

B batch, T tokens, H heads, D features a head, W width.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class AttentionContext:
    """What every layer of a batch shares: who may attend to whom, how far apart they stand, and the tokens themselves.

    Attributes:
        embeddings: (B, T, W) what the first layer reads.
        positions: (B, T) position of each token in its own sentence.
        rotate: turns queries or keys by their positions: (B, H, T, D) -> same.
        mask: (B, 1, T, T), 0 where two tokens share a sentence and -inf elsewhere.
        bias: mask plus what the position encoding adds, broadcastable to (B, H, T, T).
        segments: (B, T) number of each token's sentence in its row, -1 for padding.
        is_unbiased: whether mask and bias are known to be zero everywhere.
        hidden_share: how much of the values comes from a layer's own input; the rest comes from `embeddings`.
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
    """What an intervention changes inside one layer's attention: nothing here; subclasses change one tensor each.

    An edit returns new tensors and leaves its arguments as they are.
    """

    def projected(
        self, query: Tensor, key: Tensor, value: Tensor, context: AttentionContext
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, positions applied: three of (B, H, T, D) -> same."""
        return query, key, value

    def scores(self, scores: Tensor) -> Tensor:
        """Before the softmax, bias and mask included: (B, H, T, T) -> same; -inf forbids a pair."""
        return scores

    def weights(self, weights: Tensor) -> Tensor:
        """After the softmax: (B, H, T, T) -> same; nothing makes the rows sum to 1 again."""
        return weights

    def mixed(self, mixed: Tensor) -> Tensor:
        """What each head took from the values: (B, H, T, D) -> same."""
        return mixed


class Mixer(nn.Module):
    """What brings the tokens of a sentence together in a layer.

    Attributes:
        heads: how many parts the features are split into.
        edits: what interventions change, in the order in which they act.
    """

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.edits: tuple[Edit, ...] = ()

    def project(self, hidden: Tensor, content: Tensor, context: AttentionContext) -> tuple[Tensor, Tensor, Tensor]:
        """Query and key of `hidden`, value of `content`: (B, T, W) twice -> (B, H, T, D) thrice."""
        raise NotImplementedError

    def mix(self, query: Tensor, key: Tensor, value: Tensor, context: AttentionContext) -> Tensor:
        """What every token takes from the others, heads side by side: three of (B, H, T, D) -> (B, T, W)."""
        raise NotImplementedError

    def mix_at(self, query: Tensor, key: Tensor, value: Tensor, context: AttentionContext, needed: Tensor) -> Tensor:
        """`mix` for some tokens: (P,) different flat positions in order, row * T + token -> (P, W)."""
        return self.mix(query, key, value, context).flatten(0, 1)[needed]

    def finish(self, mixed: Tensor) -> Tensor:
        """Return the output projection of the concatenated heads, (..., W) -> (..., W); here its input."""
        return mixed


def same_sentence_mask(segments: Tensor) -> Tensor:
    """The additive mask of packed rows: (B, T) sentence numbers, -1 for padding -> (B, 1, T, T) of 0 and -inf.

    Padding attends to nothing and nothing attends to it.
    """
    together = (segments.unsqueeze(-1) == segments.unsqueeze(-2)) & (segments >= 0).unsqueeze(-1)
    empty = torch.zeros((), device=segments.device)
    return torch.where(together, empty, -math.inf).unsqueeze(1)


def second_sequence_mask(second: Tensor) -> Tensor:
    """The additive mask of a second sequence, to which nothing attends: (B, T) bool -> (B, 1, 1, T).

    Its tokens are queries alone, so that keys and values come from the first sequence: attention over the output of
    another sequence, Vaswani et al. 2017, section 3.2.3.
    """
    empty = torch.zeros((), device=second.device)
    return torch.where(second, -math.inf, empty)[:, None, None, :]

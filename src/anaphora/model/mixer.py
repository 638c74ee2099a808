"""Token mixers: the common interface of attention and recurrent networks, attention masks, edits, GRU and LSTM.

In shapes, B is the batch size, T the number of tokens, H of heads, and D of features per head; W is the width.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from anaphora.base.errors import UserError
from anaphora.base.translation import N_

NO_MAPS = N_("model.attention is a recurrent network, which has no attention maps: only its answers can be measured")


@dataclass(frozen=True)
class AttentionContext:
    """Tensors of a batch that all layers share: embeddings, positions, mask and bias.

    Attributes:
        embeddings: (B, T, W) input of the first layer.
        positions: (B, T) position of each token in its sentence, from 0.
        rotate: function that rotates queries or keys by their positions, (B, H, T, D) -> (B, H, T, D).
        mask: (B, 1, T, T), 0 where a query may attend to a key, and -inf elsewhere.
        bias: mask plus the bias of the position encoding, broadcastable to (B, H, T, T).
        segments: (B, T) index of each token's sentence, -1 for padding.
        is_unbiased: whether mask and bias are known to be zero everywhere.
        hidden_share: interpolation weight s, from 0 to 1. The values are computed from s h + (1 - s) x, where h is the
            layer's input and x is `embeddings`.
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
    """Base class of interventions in one layer's attention.

    This class changes nothing; subclasses change or record a tensor. The methods return new tensors and do not modify
    their arguments.
    """

    def projected(
        self, query: Tensor, key: Tensor, value: Tensor, context: AttentionContext
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Edit queries, keys and values, (B, H, T, D) each, after the rotation by position."""
        return query, key, value

    def scores(self, scores: Tensor) -> Tensor:
        """Edit the scores, (B, H, T, T), which include bias and mask; -inf masks a pair of query and key."""
        return scores

    def weights(self, weights: Tensor) -> Tensor:
        """Edit the weights, (B, H, T, T), after the softmax; rows are not renormalised afterwards."""
        return weights

    def mixed(self, mixed: Tensor) -> Tensor:
        """Edit the output of each head, (B, H, T, D)."""
        return mixed


class Mixer(nn.Module):
    """Base class of layers that exchange information between tokens: attention and recurrent networks.

    Attribute `edits`: interventions, applied in this order in every forward pass.
    """

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.edits: tuple[Edit, ...] = ()

    def project(self, hidden: Tensor, content: Tensor, context: AttentionContext) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries and keys of `hidden`, and values of `content`: (B, T, W) -> (B, H, T, D)."""
        raise NotImplementedError

    def mix(self, query: Tensor, key: Tensor, value: Tensor, context: AttentionContext) -> Tensor:
        """Return the concatenated outputs of the heads, (B, T, W), from queries, keys and values, (B, H, T, D)."""
        raise NotImplementedError

    def mix_at(self, query: Tensor, key: Tensor, value: Tensor, context: AttentionContext, needed: Tensor) -> Tensor:
        """Return the output of `mix` only for the tokens `needed`: (P, W).

        `needed`, (P,), has the index of each token among all B * T tokens of the batch, in ascending order.
        """
        return self.mix(query, key, value, context).flatten(0, 1)[needed]

    def finish(self, mixed: Tensor) -> Tensor:
        """Apply the output projection to the concatenated heads, (..., W) -> (..., W); in this class, the identity."""
        return mixed


def same_sentence_mask(segments: Tensor) -> Tensor:
    """Return the additive attention mask of packed rows, (B, 1, T, T): 0 within a sentence and -inf otherwise.

    `segments`, (B, T), holds the index of each token's sentence, -1 for padding, which neither attends nor is attended
    to.
    """
    together = (segments.unsqueeze(-1) == segments.unsqueeze(-2)) & (segments >= 0).unsqueeze(-1)
    return torch.where(together, torch.zeros((), device=segments.device), -math.inf).unsqueeze(1)


def second_sequence_mask(second: Tensor) -> Tensor:
    """Return the additive mask that hides a second sequence as keys: (B, T) bool -> (B, 1, 1, T).

    Its tokens are queries only; keys and values come from the first sequence (encoder-decoder attention, Vaswani et
    al. 2017, section 3.2.3).
    """
    return torch.where(second, -math.inf, torch.zeros((), device=second.device))[:, None, None, :]


class Recurrent(Mixer):
    """Base class of bidirectional recurrent networks, which have no attention maps.

    Each direction has half the width, so that a layer has 4.5 W^2 (GRU) or 6 W^2 (LSTM) weights; attention has 4 W^2.
    """

    network_class: type[nn.GRU] | type[nn.LSTM]

    def __init__(self, width: int) -> None:
        super().__init__(heads=1)
        self.network = self.network_class(width, width // 2, batch_first=True, bidirectional=True)

    def project(self, hidden: Tensor, content: Tensor, context: AttentionContext) -> tuple[Tensor, Tensor, Tensor]:
        """Return the hidden states, (B, T, W), as queries, keys and values, (B, 1, T, W) each."""
        states = hidden.unsqueeze(1)
        return states, states, states

    def mix(self, query: Tensor, key: Tensor, value: Tensor, context: AttentionContext) -> Tensor:
        """Run the network on each sentence of `value`, (B, 1, T, W), alone; return (B, T, W), zero at padding.

        Raises:
            UserError: there are edits; these need an attention layer.
        """
        if self.edits:
            raise UserError(NO_MAPS)
        rows = value.squeeze(1)
        real = context.segments >= 0
        row = torch.arange(len(rows), device=rows.device).unsqueeze(1).expand_as(context.segments)
        numbers = torch.stack((row[real], context.segments[real]), dim=1)
        _, sentence, lengths = torch.unique(numbers, dim=0, return_inverse=True, return_counts=True)
        positions = context.positions[real]
        first = positions.new_zeros(len(lengths)).scatter_reduce(0, sentence, positions, "amin", include_self=False)
        positions = positions - first[sentence]
        padded = rows.new_zeros(len(lengths), int(lengths.max()), rows.shape[-1])
        padded[sentence, positions] = rows[real]
        packed = nn.utils.rnn.pack_padded_sequence(padded, lengths.cpu(), batch_first=True, enforce_sorted=False)
        states, _ = nn.utils.rnn.pad_packed_sequence(self.network(packed)[0], batch_first=True)
        mixed = torch.zeros_like(rows)
        mixed[real] = states[sentence, positions].to(rows.dtype)
        return mixed


class Gru(Recurrent):
    """Bidirectional gated recurrent unit (GRU), Cho et al. 2014."""

    network_class = nn.GRU


class Lstm(Recurrent):
    """Bidirectional long short-term memory (LSTM), Hochreiter and Schmidhuber 1997."""

    network_class = nn.LSTM

"""Self-attention: functions that compute its outputs and weights, and modules that differ in their projections.

In shapes, B is the batch size, T the number of tokens, H of heads, D of features per head, and Q of queries; W is the
width.
"""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from anaphora.model.linear import Linear
from anaphora.model.mixer import AttentionContext, Mixer

Queries = tuple[Tensor, Tensor]
"""Batch row and token index of each query, (Q,) each."""


def attend(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, dropout: float = 0.0, scale: float | None = None
) -> Tensor:
    """Compute softmax(query @ key.T / sqrt(D) + bias) @ value, Vaswani et al. 2017, section 3.2.1.

    Args:
        query, key, value: (B, H, Q, D), (B, H, T, D) and (B, H, T, V) for any V.
        bias: bias added to the scores, broadcastable to (B, H, Q, T); -inf masks a pair of query and key. None takes
            half the time of a bias of zeros.
        dropout: share of the weights set to zero, from 0 to 1; pass 0 in evaluation.
        scale: factor of the dot products, by default 1 / sqrt(D).

    Returns:
        Weighted sums of the values, (B, H, Q, V). A query whose keys are all masked gets zeros, not NaN.
    """
    if bias is not None:
        bias = bias.to(query.dtype)
    if _slow_when_fused(query, key):
        scores = _scaled_products(query, key, scale)
        if bias is None:
            return functional.dropout(scores.softmax(dim=-1), dropout) @ value
        # Handle rows without an allowed key as `masked_softmax` does, but on the bias, which all heads share.
        nothing = bias.amax(dim=-1, keepdim=True) == -math.inf
        weights = (scores + bias.masked_fill(nothing, 0.0)).softmax(dim=-1)
        return (functional.dropout(weights, dropout) @ value).masked_fill(nothing, 0.0)
    return functional.scaled_dot_product_attention(query, key, value, attn_mask=bias, dropout_p=dropout, scale=scale)


def _slow_when_fused(query: Tensor, key: Tensor) -> bool:
    """Return whether torch's fused attention is slower than two matrix products and a softmax.

    In bfloat16 on the CPU, its forward and backward passes take two to eight times as long for up to 256 keys, and
    equally long for 512 keys.
    """
    if query.device.type != "cpu" or key.shape[-2] > 256:
        return False
    autocast = torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == torch.bfloat16
    return autocast or query.dtype == torch.bfloat16


def attention_weights(query: Tensor, key: Tensor, bias: Tensor, scale: float | None = None) -> Tensor:
    """Return the attention weights, before dropout, that `attend` computes from the same arguments: (B, H, Q, T).

    Rows sum to 1; the row of a query whose keys are all masked is zero.
    """
    return masked_softmax(attention_scores(query, key, bias, scale))


def attention_scores(query: Tensor, key: Tensor, bias: Tensor, scale: float | None = None) -> Tensor:
    """Return the input of the softmax, query @ key.T / sqrt(D) + bias: (B, H, Q, T); arguments as in `attend`."""
    return _scaled_products(query, key, scale) + bias.to(query.dtype)


def dot_products(query: Tensor, key: Tensor) -> Tensor:
    """Return the dot product of every query with every key: (..., Q, D), (..., T, D) -> (..., Q, T)."""
    return query @ key.transpose(-2, -1)


def _scaled_products(query: Tensor, key: Tensor, scale: float | None) -> Tensor:
    return dot_products(query, key) / score_divisor(query) if scale is None else dot_products(query, key) * scale


def score_divisor(query: Tensor) -> float:
    """Return sqrt(D), the divisor of the dot products (Vaswani et al. 2017, section 3.2.1)."""
    return math.sqrt(query.shape[-1])


def masked_softmax(scores: Tensor) -> Tensor:
    """Apply the softmax over keys: (..., T) -> (..., T), rows summing to 1; a row with only -inf gives zeros."""
    nothing = scores.amax(dim=-1, keepdim=True) == -math.inf
    # Rows without an allowed key get a softmax over zeros and are then set to zero, so that no gradient is NaN.
    return scores.masked_fill(nothing, 0.0).softmax(dim=-1).masked_fill(nothing, 0.0)


def split_heads(features: Tensor, heads: int) -> Tensor:
    """Split the features into heads: (B, T, W) -> (B, H, T, D)."""
    return features.view(*features.shape[:-1], heads, -1).transpose(1, 2)


def merge_heads(mixed: Tensor) -> Tensor:
    """Concatenate the heads' features: (B, H, T, D) -> (B, T, W)."""
    return mixed.transpose(1, 2).flatten(2)


class Attention(Mixer):
    """Multi-head attention with separate projections for query, key and value.

    Subclasses have fewer projections or change the bias.

    Args:
        width, heads: number of features W, and of heads H, a divisor of W.
        dropout: share of the attention weights set to zero in training, from 0 to 1.
        head_dropout: share of the heads set to zero in training, from 0 to 1 (Zhou et al. 2020).
        scale: factor of the dot products; None for 1 / sqrt(D).
    """

    projections: ClassVar[tuple[str, ...]] = ("query", "key", "value", "output")
    query: Linear
    key: Linear
    value: Linear
    output: Linear

    def __init__(
        self, width: int, heads: int, dropout: float = 0.0, head_dropout: float = 0.0, scale: float | None = None
    ) -> None:
        super().__init__(heads)
        self.scale = scale
        self.dropout = dropout
        self.head_dropout = head_dropout
        for name in self.projections:
            self.add_module(name, Linear(width, width))

    def project(self, hidden: Tensor, content: Tensor, context: AttentionContext) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries and keys of `hidden`, rotated by position, and values of `content`, after all `edits`."""
        query, key, value = self.unrotated(hidden, content)
        rotated = context.rotate(query)
        query, key = rotated, rotated if key is query else context.rotate(key)
        for edit in self.edits:
            query, key, value = edit.projected(query, key, value, context)
        return query, key, value

    def unrotated(self, hidden: Tensor, content: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries and keys of `hidden`, and values of `content`, unrotated: (B, T, W) -> (B, H, T, D)."""
        return self._split(self.query(hidden)), self._split(self.key(hidden)), self._split(self.value(content))

    def score_bias(self, context: AttentionContext) -> Tensor:
        """Return the bias added to the scores: broadcastable to (B, H, T, T)."""
        return context.bias

    def mix(self, query: Tensor, key: Tensor, value: Tensor, context: AttentionContext) -> Tensor:
        if self.edits:
            mixed = functional.dropout(self.maps(query, key, context), self._dropout()) @ value
            for edit in self.edits:
                mixed = edit.mixed(mixed)
            return self._merged(mixed)
        bias = None if context.is_unbiased else self.score_bias(context)
        return self._merged(attend(query, key, value, bias, self._dropout(), self.scale))

    def mix_at(self, query: Tensor, key: Tensor, value: Tensor, context: AttentionContext, needed: Tensor) -> Tensor:
        length = query.shape[2]
        row = needed // length
        within, most = _indices_within_rows(row)
        if self.edits or 2 * most > length:
            return super().mix_at(query, key, value, context, needed)
        rows, tokens = _indices_by_row((row, needed % length), within, most, len(query))
        bias = None
        if not context.is_unbiased:
            whole = self.score_bias(context)
            bias = whole.expand(len(query), -1, length, -1)[rows, :, tokens].transpose(1, 2)
        some = query[rows, :, tokens].transpose(1, 2)  # (B, H, most, D)
        return self._merged(attend(some, key, value, bias, self._dropout(), self.scale))[row, within]

    def _merged(self, mixed: Tensor) -> Tensor:
        if self.training and self.head_dropout:
            mixed = self._drop_heads(mixed)
        return merge_heads(mixed)

    def _dropout(self) -> float:
        return self.dropout if self.training else 0.0

    def finish(self, mixed: Tensor) -> Tensor:
        """Apply the output projection to the concatenated heads: (..., W) -> (..., W)."""
        output: Tensor = self.output(mixed)
        return output

    def rows(self, query: Tensor, key: Tensor, context: AttentionContext, queries: Queries) -> Tensor:
        """Return the attention weights of selected queries, as in `query_rows`, after all `edits`: (Q, H, T)."""
        row, token = queries
        if self.edits:
            return self.maps(query, key, context)[row, :, token]
        return query_rows(query, key, self.score_bias(context), queries, self.scale)

    def maps(self, query: Tensor, key: Tensor, context: AttentionContext) -> Tensor:
        """Return the attention weights of all queries, after all `edits`: (B, H, T, T)."""
        scores = attention_scores(query, key, self.score_bias(context), self.scale)
        for edit in self.edits:
            scores = edit.scores(scores)
        weights = masked_softmax(scores)
        for edit in self.edits:
            weights = edit.weights(weights)
        return weights

    def _split(self, features: Tensor) -> Tensor:
        return split_heads(features, self.heads)

    def _drop_heads(self, mixed: Tensor) -> Tensor:
        kept = torch.rand(mixed.shape[0], self.heads, 1, 1, device=mixed.device) >= self.head_dropout
        # Rescale the kept heads so that the sum keeps its scale (Zhou et al. 2020, section 3).
        share = kept.float().mean(dim=1, keepdim=True).clamp(min=1.0 / self.heads)
        return mixed * (kept / share).to(mixed.dtype)


def query_rows(query: Tensor, key: Tensor, bias: Tensor, queries: Queries, scale: float | None = None) -> Tensor:
    """Return the attention weights of selected queries: (Q, H, T).

    Args:
        query, key: (B, H, T, D) queries and keys of all tokens.
        bias: as in `attend`.
        queries: two tensors, (Q,) each: batch row and token index of each selected query.
        scale: as in `attend`.
    """
    row, token = queries
    # Queries are grouped by row and share the keys of their row: copying the keys for each query took longer than
    # everything else except the projections.
    order = row.argsort(stable=True)
    within, most = _indices_within_rows(row[order])
    rows, tokens = _indices_by_row((row[order], token[order]), within, most, len(query))
    bias = bias.expand(len(query), -1, query.shape[2], -1)[rows, :, tokens].transpose(1, 2)  # (B, H or 1, most, T)
    some = query[rows, :, tokens].transpose(1, 2)  # (B, H, most, D)
    weights = attention_weights(some, key, bias, scale)
    return weights[row, :, torch.empty_like(within).index_copy(0, order, within)]


def _indices_within_rows(row: Tensor) -> tuple[Tensor, int]:
    """Return the index of each query within its batch row, (Q,), and the largest number of queries per row.

    `row`, (Q,), holds the batch row of each query, in ascending order.
    """
    within = torch.arange(len(row), device=row.device) - torch.searchsorted(row, row)
    return within, int(within.max()) + 1 if len(row) else 0


def _indices_by_row(queries: Queries, within: Tensor, most: int, batch: int) -> tuple[Tensor, Tensor]:
    """Return the indices of the batch rows, (B, 1), and the token indices of the queries of each batch row, (B, most).

    `within` has the index of each query within its batch row. Rows with fewer than `most` queries are padded with 0.
    """
    row, token = queries
    tokens = torch.zeros(batch, most, dtype=torch.long, device=row.device)
    tokens[row, within] = token
    return torch.arange(batch, device=row.device)[:, None], tokens


class SharedQueryKey(Attention):
    """Attention with one projection for both queries and keys, so that their dot products, unrotated, are symmetric."""

    projections = ("query", "value", "output")

    def unrotated(self, hidden: Tensor, content: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        shared = self._split(self.query(hidden))
        return shared, shared, self._split(self.value(content))


class Uniform(Attention):
    """Attention with zero scores and no position bias: each token gets the mean of all values that are not masked."""

    projections = ("value", "output")

    def unrotated(self, hidden: Tensor, content: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        value = self._split(self.value(content))
        nothing = torch.zeros_like(value)
        return nothing, nothing, value

    def score_bias(self, context: AttentionContext) -> Tensor:
        return context.mask


class ParameterFree(Attention):
    """Attention without parameters: softmax(X X^T / sqrt(D)) X, where X is each head's slice of the features."""

    projections = ()

    def unrotated(self, hidden: Tensor, content: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        features = self._split(hidden)
        return features, features, self._split(content)

    def finish(self, mixed: Tensor) -> Tensor:
        return mixed

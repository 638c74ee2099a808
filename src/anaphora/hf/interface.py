"""Attention function that a model of `transformers` uses while its attention maps are read.

Models in transformers 5 take their attention function from a registry (`AttentionInterface`). This function
computes attention as the encoder of this package does, and records the weights that an active `AttentionTap` requests.
In shapes, B is the number of texts, T of tokens, H of heads, Q of queries and D of features per head.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn

from anaphora.base.errors import UserError
from anaphora.model.attention import Queries, attend, attention_scores, attention_weights, masked_softmax, query_rows

NAME = "anaphora"
"""Name of the function among the attention implementations of transformers."""


_KNOWN_TENSORS = frozenset({"position_bias", "position_ids", "cache_position", "cu_seq_lens_q", "cu_seq_lens_k"})
"""Tensors among the options of an attention function that are used here, or whose effect is in the mask."""


class PassEnded(BaseException):
    """Exception that ends a forward pass as soon as all requested weights are recorded."""


class AttentionTap:
    """Recorder of the attention weights of one forward pass.

    Args:
        queries: two tensors, (Q,) each: batch row and token index of each query whose attention row is recorded. None
            records whole maps.
        layers: number of attention layers after which the pass ends; None for a complete pass.
        head: index of the only head that is recorded, in the last layer of the pass. None records all heads of all
            layers.

    Attributes:
        weights: recorded weights of each layer in order: (Q, H, T) for `queries`, (B, H, T, T) for whole maps; if
            `head` is given, a single tensor with H = 1.
        has_masks_of_heads: whether a layer had a separate mask for each head. Such masks may depend on padding; in
            Doge, for instance, each head selects the tokens that a query attends to.
    """

    def __init__(self, queries: Queries | None = None, layers: int | None = None, head: int | None = None) -> None:
        self.queries, self.head = queries, head
        self.weights: list[Tensor] = []
        self.has_masks_of_heads = False
        self._left = layers

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, bias: Tensor, scale: float, cap: float | None
    ) -> Tensor:
        """Return the attention output, (B, H, T, D), and record the requested weights.

        Queries, keys and values are (B, H, T, D); `cap` bounds the scores, None does not.

        Raises:
            PassEnded: this was the last layer to record.
        """
        if self._left is not None:
            self._left -= 1
        if self._left == 0:
            if self.head is not None:
                part = slice(self.head, self.head + 1)
                query, key, bias = query[:, part], key[:, part], bias[:, part] if bias.shape[1] > 1 else bias
            self.weights.append(self._kept_weights(query, key, bias, scale, cap))
            raise PassEnded
        if self.head is None:
            self.weights.append(self._kept_weights(query, key, bias, scale, cap))
        return _mixed(query, key, value, bias, scale, cap)

    def _kept_weights(self, query: Tensor, key: Tensor, bias: Tensor, scale: float, cap: float | None) -> Tensor:
        if cap is not None:
            weights = masked_softmax(_capped_scores(query, key, bias, scale, cap))
            return weights if self.queries is None else weights[self.queries[0], :, self.queries[1]]
        if self.queries is None:
            return attention_weights(query, key, bias, scale)
        return query_rows(query, key, bias, self.queries, scale)


_ACTIVE: ContextVar[AttentionTap | None] = ContextVar("active tap", default=None)


@contextmanager
def tapped(tap: AttentionTap) -> Iterator[None]:
    """Let `tap` record the attention weights of one forward pass in the `with` block; `tap` may end the pass early."""
    token = _ACTIVE.set(tap)
    try:
        with suppress(PassEnded):
            yield
    finally:
        _ACTIVE.reset(token)


def register() -> None:
    """Register the attention function in transformers, and request additive masks for it."""
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface, eager_mask

    AttentionInterface.register(NAME, _attention)
    AttentionMaskInterface.register(NAME, eager_mask)


def _attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **options: Any,
) -> tuple[Tensor, None]:
    """Compute attention (signature as transformers requires); keys and values may have fewer heads than queries.

    Raises:
        UserError: the model passes a tensor that this function does not support, such as attention sinks or the tokens
            selected by sparse attention. Some models pass such a tensor only for long texts.
    """
    unknown = [name for name, one in options.items() if isinstance(one, Tensor) and name not in _KNOWN_TENSORS]
    if unknown:
        raise UserError(f"{type(module).__name__}: attention with {', '.join(unknown)} cannot be read here")
    groups = query.shape[1] // key.shape[1]
    if groups > 1:  # grouped-query attention
        key, value = key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1)
    bias = _bias(query, key, attention_mask, options.get("position_bias"))
    scale = 1 / math.sqrt(query.shape[-1]) if scaling is None else scaling
    tap, cap = _ACTIVE.get(), options.get("softcap")
    if tap is not None:
        tap.has_masks_of_heads |= attention_mask is not None and attention_mask.shape[1] > 1
        mixed = tap.attend(query, key, value, bias, scale, cap)
    else:
        mixed = _mixed(query, key, value, bias, scale, cap, dropout)
    return mixed.transpose(1, 2).contiguous(), None


def _mixed(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor, scale: float, cap: float | None, dropout: float = 0.0
) -> Tensor:
    """Return the attention output; queries, keys, values and the result are (B, H, T, D).

    If the scores are bounded by `cap`, there is no dropout.
    """
    if cap is None:
        return attend(query, key, value, bias, dropout, scale)
    return masked_softmax(_capped_scores(query, key, bias, scale, cap)) @ value


def _bias(query: Tensor, key: Tensor, mask: Tensor | None, position_bias: Tensor | None) -> Tensor:
    """Return the sum of mask and position bias, broadcastable to (B, H, Q, T).

    Masked pairs, which transformers marks by the lowest number of the data type, get -inf.
    """
    bias = query.new_zeros(1, 1, query.shape[2], key.shape[2])
    if mask is not None:
        own = mask[..., : key.shape[2]]
        bias = bias + own.masked_fill(own <= torch.finfo(own.dtype).min / 2, -math.inf).to(bias.dtype)
    return bias if position_bias is None else bias + position_bias.to(bias.dtype)


def _capped_scores(query: Tensor, key: Tensor, bias: Tensor, scale: float, cap: float) -> Tensor:
    """Return the scores before the softmax: bounded to [-cap, cap] by tanh (Gemma 2, section 2), plus the bias."""
    return cap * torch.tanh(attention_scores(query, key, torch.zeros_like(bias), scale) / cap) + bias

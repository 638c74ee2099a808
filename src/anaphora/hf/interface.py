"""The attention function that a model of `transformers` calls while its maps are read.

transformers 5 lets a model take its attention from a registered function (`AttentionInterface`). Ours mixes values as
the package's own encoder does and keeps the weights that a tap asks for. Without a tap it is ordinary attention.
B batch, T tokens, H heads, D features per head, Q queries.
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
"""What the function is called among the attention implementations of transformers."""


class PassEnded(BaseException):
    """All weights that a tap asks for are kept, so the rest of the pass is left out."""


class AttentionTap:
    """The recorded parts of one forward pass.

    Args:
        queries: rows of the batch and tokens whose weights are kept, two of (Q,); None keeps whole maps.
        layers: after how many layers of attention the pass ends; None for a whole pass.
        head: the head of the last of these layers whose weights alone are kept; None keeps those of all.

    Attributes:
        weights: of every layer, in order: (Q, H, T) or (B, H, T, T).
    """

    def __init__(self, queries: Queries | None = None, layers: int | None = None, head: int | None = None) -> None:
        self.queries, self.head = queries, head
        self.weights: list[Tensor] = []
        self._left = layers

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, bias: Tensor, scale: float, cap: float | None
    ) -> Tensor:
        """Mix values and keep the weights: three of (B, H, T, D) -> (B, H, T, D); `cap` bounds the scores.

        Raises:
            PassEnded: this was the last layer that is read.
        """
        if self._left is not None:
            self._left -= 1
        if self._left == 0:
            self.weights.append(self._kept_weights(*self._of_head(query, key, bias), scale, cap))
            raise PassEnded
        if self.head is None:
            self.weights.append(self._kept_weights(query, key, bias, scale, cap))
        return _mixed(query, key, value, bias, scale, cap)

    def _of_head(self, query: Tensor, key: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if self.head is None:
            return query, key, bias
        part = slice(self.head, self.head + 1)
        return query[:, part], key[:, part], bias[:, part] if bias.shape[1] > 1 else bias

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
    """Record a single forward pass inside the `with` block, which the tap may end."""
    token = _ACTIVE.set(tap)
    try:
        with suppress(PassEnded):
            yield
    finally:
        _ACTIVE.reset(token)


def register() -> None:
    """Make the function known to transformers, with additive masks."""
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
    """Compute attention in the interface of transformers, from keys and values of H heads or fewer."""
    if options.get("s_aux") is not None:
        raise UserError(f"{type(module).__name__}: attention with sinks cannot be read here")
    groups = query.shape[1] // key.shape[1]
    if groups > 1:  # several heads share a key and a value
        key, value = key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1)
    bias = _bias(query, key, attention_mask, options.get("position_bias"))
    scale = 1 / math.sqrt(query.shape[-1]) if scaling is None else scaling
    tap, cap = _ACTIVE.get(), options.get("softcap")
    if tap is not None:
        mixed = tap.attend(query, key, value, bias, scale, cap)
    else:
        mixed = _mixed(query, key, value, bias, scale, cap, dropout)
    return mixed.transpose(1, 2).contiguous(), None


def _mixed(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor, scale: float, cap: float | None, dropout: float = 0.0
) -> Tensor:
    """Return the mixed values, (B, H, T, D)."""
    if cap is None:
        return attend(query, key, value, bias, dropout, scale)
    return masked_softmax(_capped_scores(query, key, bias, scale, cap)) @ value


def _bias(query: Tensor, key: Tensor, mask: Tensor | None, position_bias: Tensor | None) -> Tensor:
    """Return the additive bias, -inf where transformers writes the smallest number of the type."""
    bias = query.new_zeros(1, 1, query.shape[2], key.shape[2])
    if mask is not None:
        own = mask[..., : key.shape[2]]
        bias = bias + own.masked_fill(own <= torch.finfo(own.dtype).min / 2, -math.inf).to(bias.dtype)
    return bias if position_bias is None else bias + position_bias.to(bias.dtype)


def _capped_scores(query: Tensor, key: Tensor, bias: Tensor, scale: float, cap: float | None) -> Tensor:
    """Return the scores before the softmax; a cap bends them to stay within -cap and cap (Gemma 2, section 2)."""
    if cap is None:
        return attention_scores(query, key, bias, scale)
    return cap * torch.tanh(attention_scores(query, key, torch.zeros_like(bias), scale) / cap) + bias

"""One layer of the encoder: attention and a feed-forward network, each in a residual branch."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from anaphora.model.mixer import AttentionContext, Mixer
from anaphora.settings.model import encoder as model_settings


class Block(nn.Module):
    """Attention, then a feed-forward network: each x + f(norm(x)) with pre-norm, norm(x + f(x)) with post-norm."""

    def __init__(self, chosen: model_settings.Model) -> None:
        super().__init__()
        self.is_pre_norm = chosen.norm.placement == "pre"
        self.attention_norm = chosen.norm.build(chosen.width)
        self.attention: Mixer = chosen.attention.build(chosen.width)
        self.feed_forward_norm = chosen.norm.build(chosen.width)
        self.feed_forward = chosen.feed_forward.build(chosen.width)
        self.dropout = nn.Dropout(chosen.dropout)
        self.value_norm = chosen.norm.build(chosen.width) if chosen.values == "token" else None

    def attention_inputs(self, hidden: Tensor, context: AttentionContext) -> tuple[Tensor, Tensor]:
        """Return the input of the query and key projections, and that of the value projection: two of (B, T, W)."""
        read = self._attention_input(hidden)
        if self.value_norm is not None:
            return read, self.value_norm(context.embeddings)
        if context.hidden_share == 1.0:
            return read, read
        return read, self._attention_input(torch.lerp(context.embeddings, hidden, context.hidden_share))

    def _attention_input(self, states: Tensor) -> Tensor:
        """Return the input of attention, normalised with pre-norm: (B, T, W) -> (B, T, W)."""
        read: Tensor = self.attention_norm(states) if self.is_pre_norm else states
        return read

    def project(self, hidden: Tensor, context: AttentionContext) -> tuple[Tensor, Tensor, Tensor]:
        """Project the hidden states to query, key and value: (B, T, W) -> three of (B, H, T, D)."""
        return self.attention.project(*self.attention_inputs(hidden, context), context)

    def add_attention(self, hidden: Tensor, mixed: Tensor) -> Tensor:
        """Add the projected attention output to the residual stream: two of (..., W) -> (..., W)."""
        summed: Tensor = hidden + self.dropout(self.attention.finish(mixed))
        if self.is_pre_norm:
            return summed
        normed: Tensor = self.attention_norm(summed)
        return normed

    def add_feed_forward(self, hidden: Tensor) -> Tensor:
        """Add the output of the feed-forward network to the residual stream: (..., W) -> (..., W)."""
        if self.is_pre_norm:
            summed: Tensor = hidden + self.dropout(self.feed_forward(self.feed_forward_norm(hidden)))
            return summed
        output: Tensor = self.feed_forward_norm(hidden + self.dropout(self.feed_forward(hidden)))
        return output

    def complete(self, hidden: Tensor, mixed: Tensor) -> Tensor:
        """Compute the rest of the layer after attention, token by token: two of (..., W) -> (..., W)."""
        return self.add_feed_forward(self.add_attention(hidden, mixed))

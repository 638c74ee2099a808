"""Layers of the encoder, and forward passes with access to projections, attention weights and outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from anaphora.base.errors import UserError
from anaphora.model.attention import Attention, Queries
from anaphora.model.linear import Linear
from anaphora.model.mixer import NO_MAPS, AttentionContext, Mixer
from anaphora.settings.model import encoder as model_settings


class FeedForward(nn.Module):
    """Two linear layers with an activation in between, Vaswani et al. 2017, section 3.3."""

    def __init__(self, width: int, hidden: int, activation: nn.Module) -> None:
        super().__init__()
        self.widen = Linear(width, hidden)
        self.activation = activation
        self.narrow = Linear(hidden, width)

    def inside(self, features: Tensor) -> Tensor:
        """Return the hidden features between the two layers: (B, T, W) -> (B, T, hidden)."""
        active: Tensor = self.activation(self.widen(features))
        return active

    def forward(self, features: Tensor) -> Tensor:
        output: Tensor = self.narrow(self.inside(features))
        return output


class SwiGlu(nn.Module):
    """Gated feed-forward network without biases, narrow(silu(gate) * content), Shazeer 2020, eq. 6."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.widen = Linear(width, 2 * hidden, bias=False)
        self.narrow = Linear(hidden, width, bias=False)

    def inside(self, features: Tensor) -> Tensor:
        """Return the hidden features between the two layers: (B, T, W) -> (B, T, hidden)."""
        gate, content = self.widen(features).chunk(2, dim=-1)
        active: Tensor = functional.silu(gate) * content
        return active

    def forward(self, features: Tensor) -> Tensor:
        output: Tensor = self.narrow(self.inside(features))
        return output


class Block(nn.Module):
    """Transformer block: attention or a recurrent network, then a feed-forward network.

    For either function f, the block computes x + f(norm(x)) with pre-norm, and norm(x + f(x)) with post-norm.
    """

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
        """Return the input of the query and key projections and that of the value projection: (B, T, W) each."""
        read = self._attention_input(hidden)
        if self.value_norm is not None:
            return read, self.value_norm(context.embeddings)
        if context.hidden_share == 1.0:
            return read, read
        return read, self._attention_input(torch.lerp(context.embeddings, hidden, context.hidden_share))

    def _attention_input(self, states: Tensor) -> Tensor:
        """Normalise hidden states if the block has pre-norm: (B, T, W) -> (B, T, W)."""
        read: Tensor = self.attention_norm(states) if self.is_pre_norm else states
        return read

    def project(self, hidden: Tensor, context: AttentionContext) -> tuple[Tensor, Tensor, Tensor]:
        """Project the hidden states, (B, T, W), to queries, keys and values, (B, H, T, D) each."""
        return self.attention.project(*self.attention_inputs(hidden, context), context)

    def add_attention(self, hidden: Tensor, mixed: Tensor) -> Tensor:
        """Add the projected attention output to the residual stream, then apply any post-norm: (..., W) -> (..., W)."""
        summed: Tensor = hidden + self.dropout(self.attention.finish(mixed))
        if self.is_pre_norm:
            return summed
        normed: Tensor = self.attention_norm(summed)
        return normed

    def add_feed_forward(self, hidden: Tensor) -> Tensor:
        """Add the feed-forward output to the residual stream, then apply any post-norm: (..., W) -> (..., W)."""
        if self.is_pre_norm:
            summed: Tensor = hidden + self.dropout(self.feed_forward(self.feed_forward_norm(hidden)))
            return summed
        output: Tensor = self.feed_forward_norm(hidden + self.dropout(self.feed_forward(hidden)))
        return output

    def complete(self, hidden: Tensor, mixed: Tensor) -> Tensor:
        """Compute the rest of the layer after attention, token by token.

        The arguments (input of the layer, and concatenated outputs of the heads) and the result are (..., W).
        """
        return self.add_feed_forward(self.add_attention(hidden, mixed))


class LayerPass:
    """Forward pass of one layer on a batch; `mixed`, the attention output, is computed on first use and cached.

    `context` is shared by all layers; the input `hidden` is (B, T, W); `query`, `key` and `value` are (B, H, T, D).
    """

    def __init__(self, block: Block, context: AttentionContext, hidden: Tensor) -> None:
        self.block, self.context, self.hidden = block, context, hidden
        self.query, self.key, self.value = block.project(hidden, context)
        self._mixed: Tensor | None = None

    @property
    def mixed(self) -> Tensor:
        """Return the attention output, heads concatenated, before the output projection: (B, T, W)."""
        if self._mixed is None:
            self._mixed = self.block.attention.mix(self.query, self.key, self.value, self.context)
        return self._mixed

    def rows(self, queries: Queries) -> Tensor:
        """Return the attention weights of selected queries: (Q, H, T).

        Raises:
            UserError: the layer is a recurrent network.
        """
        return self._attention().rows(self.query, self.key, self.context, queries)

    def maps(self) -> Tensor:
        """Return the attention weights of all queries: (B, H, T, T).

        Raises:
            UserError: the layer is a recurrent network.
        """
        return self._attention().maps(self.query, self.key, self.context)

    def output(self, needed: Tensor | None = None) -> Tensor:
        """Return the layer's output states, (B, T, W), or only those at `needed` (as in `Encoder.forward`), (P, W)."""
        if needed is None:
            return self.block.complete(self.hidden, self.mixed)
        if self._mixed is None:
            mixed = self.block.attention.mix_at(self.query, self.key, self.value, self.context, needed)
        else:
            mixed = self._mixed.flatten(0, 1)[needed]
        return self.block.complete(self.hidden.flatten(0, 1)[needed], mixed)

    def _attention(self) -> Attention:
        if not isinstance(self.block.attention, Attention):
            raise UserError(NO_MAPS)
        return self.block.attention


def layer_passes(blocks: Sequence[Block], context: AttentionContext) -> Iterator[LayerPass]:
    """Yield the forward pass of each layer; its input is the output of the previous layer."""
    hidden = context.embeddings
    for block in blocks:
        layer = LayerPass(block, context, hidden)
        yield layer
        if block is not blocks[-1]:
            hidden = layer.output()

"""One layer of the encoder: attention and a feed-forward network, each in a residual branch."""

from __future__ import annotations

from torch import Tensor, nn

from anaphora.model import attention, feed_forward, norm, settings
from anaphora.model.attention import Context
from anaphora.model.position import Position


class Block(nn.Module):
    """x + attention(norm(x)), then + feed-forward(norm(x)) (pre), or the norm after each sum (post)."""

    def __init__(self, chosen: settings.Model, position: Position) -> None:
        super().__init__()
        self.pre = chosen.norm.placement == "pre"
        self.attention_norm = norm.build(chosen.norm, chosen.width)
        self.attention = attention.build(chosen.attention, chosen.width, position)
        self.feed_forward_norm = norm.build(chosen.norm, chosen.width)
        self.feed_forward = feed_forward.build(chosen.feed_forward, chosen.width)
        self.dropout = nn.Dropout(chosen.dropout)
        self.value_norm = norm.build(chosen.norm, chosen.width) if chosen.values == "token" else None

    def reads(self, hidden: Tensor, context: Context) -> tuple[Tensor, Tensor]:
        """What queries and keys are made of, and what values are made of: (B, T, W) -> two of (B, T, W)."""
        read: Tensor = self.attention_norm(hidden) if self.pre else hidden
        return read, read if self.value_norm is None else self.value_norm(context.embedded)

    def project(self, hidden: Tensor, context: Context) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value of this layer: (B, T, W) -> three of (B, H, T, D)."""
        return self.attention.project(*self.reads(hidden, context), context)

    def add_attention(self, hidden: Tensor, mixed: Tensor) -> Tensor:
        """The first sum: what the layer read, plus what attention brought; two of (..., W) -> (..., W)."""
        summed: Tensor = hidden + self.dropout(self.attention.finish(mixed))
        if self.pre:
            return summed
        normed: Tensor = self.attention_norm(summed)
        return normed

    def add_feed_forward(self, hidden: Tensor) -> Tensor:
        """The second sum: plus what the feed-forward network makes of each token; (..., W) -> (..., W)."""
        if self.pre:
            summed: Tensor = hidden + self.dropout(self.feed_forward(self.feed_forward_norm(hidden)))
            return summed
        output: Tensor = self.feed_forward_norm(hidden + self.dropout(self.feed_forward(hidden)))
        return output

    def complete(self, hidden: Tensor, mixed: Tensor) -> Tensor:
        """The rest of the layer, once attention has mixed, token by token: two of (..., W) -> (..., W)."""
        return self.add_feed_forward(self.add_attention(hidden, mixed))

    def forward(self, hidden: Tensor, context: Context) -> Tensor:
        return self.complete(hidden, self.attention.mix(*self.project(hidden, context), context))

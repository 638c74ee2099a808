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

    def project(self, hidden: Tensor, context: Context) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value of this layer: (B, T, W) -> three of (B, H, T, D)."""
        read: Tensor = self.attention_norm(hidden) if self.pre else hidden
        content: Tensor = read if self.value_norm is None else self.value_norm(context.embedded)
        return self.attention.project(read, content, context)

    def complete(self, hidden: Tensor, mixed: Tensor) -> Tensor:
        """The rest of the layer, once attention has mixed, token by token: two of (..., W) -> (..., W)."""
        hidden = hidden + self.dropout(self.attention.finish(mixed))
        if self.pre:
            summed: Tensor = hidden + self.dropout(self.feed_forward(self.feed_forward_norm(hidden)))
            return summed
        hidden = self.attention_norm(hidden)
        output: Tensor = self.feed_forward_norm(hidden + self.dropout(self.feed_forward(hidden)))
        return output

    def forward(self, hidden: Tensor, context: Context) -> Tensor:
        return self.complete(hidden, self.attention.mix(*self.project(hidden, context), context))

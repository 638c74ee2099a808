"""One pass over the layers of an encoder, shared by everything that inspects them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import Tensor

from anaphora.base.errors import UserError
from anaphora.model.attention import Attention, Queries
from anaphora.model.block import Block
from anaphora.model.mixer import AttentionContext
from anaphora.model.recurrent import NO_MAPS


class LayerPass:
    """One layer applied to a batch; its outputs are computed on first access and cached.

    Attributes:
        block: the layer.
        context: shared by all layers.
        hidden: (B, T, W) the input states.
        query, key, value: (B, H, T, D) their projections.
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
        """Return the weights of single queries: (Q, H, T).

        Raises:
            UserError: the layer has no attention.
        """
        return self._attention().rows(self.query, self.key, self.context, queries)

    def maps(self) -> Tensor:
        """Return the weights of every query: (B, H, T, T).

        Raises:
            UserError: the layer has no attention.
        """
        return self._attention().maps(self.query, self.key, self.context)

    def output(self, needed: Tensor | None = None) -> Tensor:
        """Return the output states of the layer.

        Args:
            needed: (P,) different flat positions in order, row * T + token; the rest of the layer is computed for them
                only.

        Returns:
            (B, T, W), or (P, W) if `needed` is given.
        """
        if needed is None:
            return self.block.complete(self.hidden, self.mixed)
        if self._mixed is None:
            layer = self.block.attention
            mixed = layer.mix_at(self.query, self.key, self.value, self.context, needed)
        else:
            mixed = self._mixed.flatten(0, 1)[needed]
        return self.block.complete(self.hidden.flatten(0, 1)[needed], mixed)

    def _attention(self) -> Attention:
        if not isinstance(self.block.attention, Attention):
            raise UserError(NO_MAPS)
        return self.block.attention


def layer_passes(blocks: Sequence[Block], context: AttentionContext) -> Iterator[LayerPass]:
    """Yield one pass per layer, each reading the output of the previous one."""
    hidden = context.embeddings
    for block in blocks:
        layer = LayerPass(block, context, hidden)
        yield layer
        if block is not blocks[-1]:
            hidden = layer.output()

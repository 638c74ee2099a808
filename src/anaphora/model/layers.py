"""A forward pass layer by layer, with access to each layer's projections, attention weights and output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import Tensor

from anaphora.base.errors import UserError
from anaphora.model.attention import Attention, Queries
from anaphora.model.block import Block
from anaphora.model.mixer import AttentionContext
from anaphora.model.recurrent import NO_MAPS


class LayerPass:
    """The forward pass of one layer on a batch; the attention output is computed on first use and cached.

    Attributes:
        block: the layer.
        context: mask, bias and positions, which all layers share.
        hidden: (B, T, W) input states.
        query, key, value: (B, H, T, D) projections of the input.
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
        """Return the output states of the layer.

        Args:
            needed: (P,) sorted, distinct flat positions, row * T + token, for which alone the output is computed.

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
    """Yield the pass of each layer on the output of the previous one."""
    hidden = context.embeddings
    for block in blocks:
        layer = LayerPass(block, context, hidden)
        yield layer
        if block is not blocks[-1]:
            hidden = layer.output()

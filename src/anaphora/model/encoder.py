"""The encoder: token ids -> hidden states. Knows nothing of pronouns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from anaphora.base.batch import EncoderInput
from anaphora.model.attention import Attention, Queries
from anaphora.model.block import Block
from anaphora.model.layers import LayerPass, layer_passes
from anaphora.model.mixer import AttentionContext, same_sentence_mask, second_sequence_mask
from anaphora.settings.model import attention as attention_settings
from anaphora.settings.model import encoder as model_settings


class Encoder(nn.Module):
    """Token embedding (+ position, + norm where the settings have one), blocks, and for pre-norm a last norm.

    Rows are packed: several sentences stand in one row, `segments` says which token belongs to which (-1 is padding)
    and `positions` count anew in each. A padded batch is the case of one sentence a row.

    Attributes:
        hidden_share: how much of the values that attention mixes comes from a layer's own input, the rest from the
            tokens' embeddings. Below 1 in the earlier part of a training with `optimizer.value_curriculum` alone.
    """

    def __init__(self, chosen: model_settings.Model, vocabulary: int) -> None:
        super().__init__()
        self.settings = chosen
        self.hidden_share = 1.0
        self.tokens = nn.Embedding(vocabulary, chosen.width)
        self.position = chosen.position.build(chosen.width, attention_settings.heads_of(chosen.attention))
        self.embedding_norm = chosen.norm.build(chosen.width) if chosen.norm.embedding else nn.Identity()
        self.dropout = nn.Dropout(chosen.dropout)
        self.blocks = nn.ModuleList(Block(chosen) for _ in range(chosen.layers))
        # After a post-norm block the features are normed already.
        self.norm = chosen.norm.build(chosen.width) if chosen.norm.placement == "pre" else nn.Identity()
        self.apply(initialiser(chosen.initialisation))

    @property
    def layers(self) -> list[Block]:
        """The blocks, from below."""
        return [block for block in self.blocks if isinstance(block, Block)]

    @property
    def has_maps(self) -> bool:
        """Whether there are attention weights to look at."""
        return all(isinstance(block.attention, Attention) for block in self.layers)

    def make_context(self, tokens: EncoderInput) -> AttentionContext:
        """What all layers share, the embedding included."""
        ids, positions, segments = tokens.ids, tokens.positions, tokens.segments
        whole = tokens.second is None and _one_sentence_a_row(segments)
        if whole:
            # Of a mask of zeros one is enough to hold.
            mask = torch.zeros((), device=ids.device).expand(len(ids), 1, ids.shape[1], ids.shape[1])
        else:
            mask = same_sentence_mask(segments)
        if tokens.second is not None:
            mask = mask + second_sequence_mask(tokens.second)
        added = self.position.bias(positions, positions)
        return AttentionContext(
            embeddings=self.embed(tokens),
            positions=positions,
            rotate=self.position.rotation(positions),
            mask=mask,
            bias=mask if added is None else mask + added,
            segments=segments,
            is_unbiased=added is None and whole,
            hidden_share=self.hidden_share,
        )

    def embed(self, tokens: EncoderInput) -> Tensor:
        """What the first block reads: (B, T, W)."""
        hidden = self.token_embeddings(tokens.ids)
        if tokens.marks is not None:
            hidden = hidden + tokens.marks
        output: Tensor = self.dropout(self.embedding_norm(self.position.embed(hidden, tokens.positions)))
        return output

    def token_embeddings(self, ids: Tensor) -> Tensor:
        """The tokens' own vectors, nothing added: (B, T) -> (B, T, W)."""
        vectors: Tensor = self.tokens(ids)
        return vectors if self.position.scale == 1 else vectors * self.position.scale

    def passes(self, tokens: EncoderInput) -> Iterator[LayerPass]:
        """One layer after the other at work on these tokens."""
        yield from layer_passes(self.layers, self.make_context(tokens))

    def forward(self, tokens: EncoderInput, needed: Tensor | None = None) -> Tensor:
        """Hidden states.

        Args:
            tokens: what is read.
            needed: (P,) different flat positions in order, row * T + token, whose states are needed, or None for all.
                The last block's work on a token is done for these alone; the other states are zeros.

        Returns:
            (B, T, W).
        """
        for layer in self.passes(tokens):  # one at a time: what a layer mixed is let go with it
            last = layer
        return self._last_states(last, needed)

    def forward_with_rows(
        self, tokens: EncoderInput, queries: Queries, needed: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Hidden states, and the attention rows of single queries, from the same projections.

        Args:
            tokens: what is read.
            queries: row and token of each, two of (Q,).
            needed: as in `forward`.

        Returns:
            (B, T, W) and (L, Q, H, T).
        """
        rows = []
        for layer in self.passes(tokens):
            rows.append(layer.rows(queries))
        # Nobody reads the last states; an edit may want to see what the heads mix all the same.
        if needed is not None and not len(needed) and not layer.block.attention.edits:
            return torch.zeros_like(layer.hidden), torch.stack(rows)
        return self._last_states(layer, needed), torch.stack(rows)

    def maps(self, tokens: EncoderInput) -> Iterator[Tensor]:
        """The whole attention map of one layer after the other, each (B, H, T, T); only one is held at a time."""
        for layer in self.passes(tokens):
            yield layer.maps()

    def _last_states(self, last: LayerPass, needed: Tensor | None) -> Tensor:
        if needed is None:
            whole: Tensor = self.norm(last.output())
            return whole
        states: Tensor = self.norm(last.output(needed))
        flat = last.hidden.flatten(0, 1)
        return states.new_zeros(flat.shape).index_copy(0, needed, states).view_as(last.hidden)

    if TYPE_CHECKING:

        def __call__(self, tokens: EncoderInput, needed: Tensor | None = None) -> Tensor: ...


def _one_sentence_a_row(segments: Tensor) -> bool:
    """Whether every row is one sentence without padding: (B, T). Not asked while compiling."""
    if torch.compiler.is_compiling():
        return False
    return bool(((segments == segments[:, :1]) & (segments >= 0)).all())


def initialiser(chosen: model_settings.Initialisation) -> Callable[[nn.Module], None]:
    """The function that sets a module's first weights; biases begin at zero."""

    def initialise(module: nn.Module) -> None:
        if isinstance(module, nn.Linear | nn.Embedding):
            chosen.build(module.weight)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    return initialise

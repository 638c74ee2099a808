"""Encoder from token ids to hidden states, independent of the task."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from anaphora.base.batch import EncoderInput
from anaphora.model.attention import Attention, Queries
from anaphora.model.layers import Block, LayerPass, layer_passes
from anaphora.model.mixer import AttentionContext, same_sentence_mask, second_sequence_mask
from anaphora.settings.model import attention as attention_settings
from anaphora.settings.model import encoder as model_settings


class Encoder(nn.Module):
    """Transformer encoder: token embeddings, position encoding, blocks, and, with pre-norm, a final norm.

    A batch row may hold several packed sentences: `EncoderInput.segments` has the index of each token's sentence (-1
    for padding), and `EncoderInput.positions` restart at 0 in each sentence. If blocks have a recurrent network instead
    of attention, methods that return attention weights raise UserError.

    Attributes:
        hidden_share: interpolation weight s, from 0 to 1. The attention values are computed from s h + (1 - s) x, where
            h is the input of the layer, and x is the input of the first layer. With the setting
            `optimizer.value_curriculum`, s is below 1 early in training.
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
        # The output of a post-norm block is already normalised.
        self.norm = chosen.norm.build(chosen.width) if chosen.norm.placement == "pre" else nn.Identity()
        self.apply(initialiser(chosen.initialisation))

    @property
    def layers(self) -> list[Block]:
        """Return the blocks, from first to last."""
        return [block for block in self.blocks if isinstance(block, Block)]

    @property
    def has_maps(self) -> bool:
        """Return whether every layer has attention weights."""
        return all(isinstance(block.attention, Attention) for block in self.layers)

    def make_context(self, tokens: EncoderInput) -> AttentionContext:
        """Compute the inputs that all layers share: embeddings, positions, mask and bias."""
        ids, positions, segments = tokens.ids, tokens.positions, tokens.segments
        whole = tokens.second is None and _one_sentence_a_row(segments)
        if whole:
            # A single copy of an all-zero mask is enough.
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
        """Return the input of the first block: token embeddings with candidate markers and positions, (B, T, W)."""
        hidden = self.token_embeddings(tokens.ids)
        if tokens.marks is not None:
            hidden = hidden + tokens.marks
        output: Tensor = self.dropout(self.embedding_norm(self.position.embed(hidden, tokens.positions)))
        return output

    def token_embeddings(self, ids: Tensor) -> Tensor:
        """Return the scaled token embeddings, without candidate markers or positions: (B, T) -> (B, T, W)."""
        vectors: Tensor = self.tokens(ids)
        return vectors if self.position.scale == 1 else vectors * self.position.scale

    def passes(self, tokens: EncoderInput) -> Iterator[LayerPass]:
        """Yield each layer's projections, attention weights and output (`LayerPass`), from first to last."""
        yield from layer_passes(self.layers, self.make_context(tokens))

    def forward(self, tokens: EncoderInput, needed: Tensor | None = None) -> Tensor:
        """Compute hidden states, (B, T, W).

        If `needed` is given, (P,), the last block is computed only for the tokens with these sorted, distinct indices
        among all B * T tokens; the states of the other tokens are zeros.
        """
        for layer in self.passes(tokens):  # one at a time, so that the memory of each layer is freed
            last = layer
        return self._last_states(last, needed)

    def forward_with_rows(
        self, tokens: EncoderInput, queries: Queries, needed: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the hidden states of `forward`, (B, T, W), and the attention rows of queries, (L, Q, H, T).

        Raises:
            UserError: a layer is a recurrent network.
        """
        rows = []
        for layer in self.passes(tokens):
            rows.append(layer.rows(queries))
        # If no states are needed, the last layer is skipped, unless an edit records the output of its heads.
        if needed is not None and not len(needed) and not layer.block.attention.edits:
            return torch.zeros_like(layer.hidden), torch.stack(rows)
        return self._last_states(layer, needed), torch.stack(rows)

    def maps(self, tokens: EncoderInput) -> Iterator[Tensor]:
        """Yield the attention map of each layer, (B, H, T, T), one at a time to save memory.

        Raises:
            UserError: a layer is a recurrent network.
        """
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
    """Return whether every row of `segments`, (B, T), is one sentence without padding; False while compiling."""
    if torch.compiler.is_compiling():
        return False
    return bool(((segments == segments[:, :1]) & (segments >= 0)).all())


def initialiser(chosen: model_settings.Initialisation) -> Callable[[nn.Module], None]:
    """Return a function for `nn.Module.apply` that initialises linear layers (biases with zeros) and embeddings."""

    def initialise(module: nn.Module) -> None:
        if isinstance(module, nn.Linear | nn.Embedding):
            chosen.build(module.weight)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    return initialise

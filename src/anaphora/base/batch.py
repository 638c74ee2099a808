"""Model inputs as tensors: rows of packed sentences with items; an item is a pronoun with its candidate antecedents."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True)
class EncoderInput:
    """Input of the encoder: B rows of T tokens, each row with one or several packed sentences; W is the width."""

    ids: Tensor  # (B, T) token ids
    positions: Tensor  # (B, T) position of each token in its sentence, from 0
    segments: Tensor  # (B, T) index of each token's sentence, -1 for padding
    marks: Tensor | None = None  # (B, T, W) vectors added to the token embeddings, or None
    # (B, T) bool mask of the tokens of a second sequence, which attend to the rest of their sentence and receive no
    # attention; None if there is no second sequence. `positions` has their positions in the text.
    second: Tensor | None = None

    def to(self, device: torch.device | str) -> EncoderInput:
        return replace(self, **{name: each.to(device) for name, each in vars(self).items() if each is not None})


@dataclass(frozen=True)
class Batch:
    """Batch of N items, that is, pronouns with at most M candidates each, in R rows of T tokens.

    A row holds one or several sentences. Flat positions are row * T + token. In labelled texts, each text is an item,
    with labels in place of candidates.
    """

    inputs: Tensor  # (R, T) token ids of the encoder's input, corrupted for a masked-language-model loss
    ids: Tensor  # (R, T) original token ids
    positions: Tensor  # (R, T) position of each token in its sentence, from 0
    segments: Tensor  # (R, T) index of each token's sentence, -1 for padding
    # (R, T) index of each token's word in its sentence, -1 for [CLS] and padding; subwords share the index.
    words: Tensor
    slots: Tensor  # (R, T) slot (candidate's number, from 1) of the token's candidate, 0 for other tokens
    query_positions: Tensor  # (K,) flat position of each pronoun token
    query_items: Tensor  # (K,) index of each pronoun token's item
    candidate_positions: Tensor  # (C,) flat position of each candidate token
    candidate_owners: Tensor  # (C,) item * M + candidate of each candidate token
    present: Tensor  # (N, M) bool mask of the candidates; False is padding
    gold: Tensor  # (N, M) bool mask of the antecedents, or of a text's label
    candidate_slots: Tensor  # (N, M) slot of each candidate, from 1
    masked_positions: Tensor  # (P,) flat positions of the tokens drawn for the masked-language-model loss
    own_positions: Tensor  # (O,) flat positions of unmasked tokens that the output layer also predicts
    items: Tensor  # (N,) index of each item in its split
    minimal_pairs: Tensor  # (Q, 2) item indices in the batch: minimal pairs with different answers; empty if unused

    @property
    def real_tokens(self) -> int:
        return int((self.segments >= 0).sum())

    @property
    def item_starts(self) -> Tensor:
        """Return the flat position, row * T + token, of the first token of each item's sentence: (N,)."""
        return ((self.positions == 0) & (self.segments >= 0)).flatten().nonzero().squeeze(1)

    @property
    def right_answers(self) -> Tensor:
        """Return a mask of the correct answers, (N, M + 1): the antecedents of each item.

        The last column, "none of the candidates", is True for items that have no antecedent.
        """
        return torch.cat((self.gold, ~self.gold.any(dim=1, keepdim=True)), dim=1)

    def row_and_token(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Split flat positions, row * T + token, into row and token indices: (P,) -> two of (P,)."""
        length = self.ids.shape[1]
        return positions // length, positions % length

    def to(self, device: torch.device | str) -> Batch:
        return replace(self, **{name: value.to(device, non_blocking=True) for name, value in vars(self).items()})

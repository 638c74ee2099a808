"""Model inputs as tensors: packed rows of tokens, and the questions about them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True)
class EncoderInput:
    """The encoder's input: packed rows of tokens.

    Attributes:
        ids: (B, T).
        positions: (B, T) position of each token in its own sentence.
        segments: (B, T) number of its sentence in the row, -1 for padding.
        marks: (B, T, W) what is added to the tokens' embeddings, or None.
        second: (B, T), which tokens are a second sequence that queries the rest of their sentence and that nothing
            queries, or None. Its positions are in the text, as if it still stood there.
    """

    ids: Tensor
    positions: Tensor
    segments: Tensor
    marks: Tensor | None = None
    second: Tensor | None = None

    def to(self, device: torch.device | str) -> EncoderInput:
        """Copy the input to another device."""
        return replace(self, **{name: each.to(device) for name, each in vars(self).items() if each is not None})


@dataclass(frozen=True)
class Batch:
    """Rows of packed sentences and the questions about them; flat positions are row * T + token.

    Attributes:
        inputs: (R, T) what the encoder reads (masked where a masked-language-model loss hides words).
        ids: (R, T) the true tokens.
        positions, segments: (R, T) position in the sentence; number of the sentence, -1 for padding.
        words: (R, T) number of the word in the sentence, -1 for [CLS] and padding; the subwords of a word share one.
        slots: (R, T) slot of the candidate that a token belongs to, 0 for none.
        query_positions, query_items: (K,) every pronoun token.
        candidate_positions, candidate_owners: (C,) every candidate token; item * M + candidate.
        present, gold: (N, M) which candidates there are, which are antecedents; of texts, the labels.
        candidate_slots: (N, M).
        masked_positions: (P,) flat positions of masked tokens.
        own_positions: (O,) flat positions of words whose own token is predicted though it is there.
        items: (N,) number of each item in its split.
        minimal_pairs: (Q, 2) two items of the batch that are a minimal pair with different answers; empty if unused.
    """

    inputs: Tensor
    ids: Tensor
    positions: Tensor
    segments: Tensor
    words: Tensor
    slots: Tensor
    query_positions: Tensor
    query_items: Tensor
    candidate_positions: Tensor
    candidate_owners: Tensor
    present: Tensor
    gold: Tensor
    candidate_slots: Tensor
    masked_positions: Tensor
    own_positions: Tensor
    items: Tensor
    minimal_pairs: Tensor

    @property
    def real_tokens(self) -> int:
        """Count the tokens that are not padding."""
        return int((self.segments >= 0).sum())

    @property
    def item_starts(self) -> Tensor:
        """Return the flat positions at which the items begin: (N,)."""
        return ((self.positions == 0) & (self.segments >= 0)).flatten().nonzero().squeeze(1)

    @property
    def right_answers(self) -> Tensor:
        """Return which answers are right, (N, M + 1): the antecedents, or "none of them" (last) without antecedents."""
        return torch.cat((self.gold, ~self.gold.any(dim=1, keepdim=True)), dim=1)

    def to(self, device: torch.device | str) -> Batch:
        """Copy the batch to another device."""
        return replace(self, **{name: value.to(device, non_blocking=True) for name, value in vars(self).items()})

"""What the causal tests need of a language model, whichever library it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from anaphora.analysis.causal.interventions import Intervention
from anaphora.data.tokens.tokenizer import TokenizedText


class LanguageModel(Protocol):
    """A model with logits over its vocabulary, in evaluation mode, whose attention can be edited.

    B texts, padded at their ends to S tokens, L layers, H heads, V words of the vocabulary.
    """

    @property
    def name(self) -> str:
        """What the user calls it."""

    @property
    def shape(self) -> tuple[int, int]:
        """Layers and heads."""

    @property
    def is_decoder(self) -> bool:
        """Whether a token sees only what comes before it."""

    @property
    def mask(self) -> int:
        """The number of the mask in the vocabulary; a decoder needs none."""

    @property
    def device(self) -> torch.device:
        """Where it computes."""

    def tokenize(self, text: str) -> TokenizedText:
        """A text as the model reads it.

        Raises:
            UserError: the text does not fit the model.
        """

    def maps(self, tokens: Sequence[TokenizedText]) -> list[Tensor]:
        """The attention of every layer, (B, H, S, S) each, attending token first."""

    def read(self, tokens: Sequence[TokenizedText], intervention: Intervention) -> None:
        """One pass while an intervention acts, for what that records."""

    def logits(self, tokens: Sequence[TokenizedText], intervention: Intervention) -> Sequence[Tensor]:
        """What the output layer gives the vocabulary at each token while an intervention acts: B of (S, V).

        A text may lack the rows of its padding.
        """

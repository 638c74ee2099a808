"""The interface that causal tests need of a language model from any library."""

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
        """Return the user's name of the model."""

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of layers and heads."""

    @property
    def is_decoder(self) -> bool:
        """Check whether a token attends only to earlier tokens."""

    @property
    def mask(self) -> int:
        """Return the mask token's id; a decoder needs none."""

    @property
    def device(self) -> torch.device:
        """Return the model's device."""

    def tokenize(self, text: str) -> TokenizedText:
        """Tokenize a text as the model reads it.

        Raises:
            UserError: the text does not fit the model.
        """

    def maps(self, tokens: Sequence[TokenizedText]) -> list[Tensor]:
        """Return the attention of every layer, (B, H, S, S) each, attending token first."""

    def read(self, tokens: Sequence[TokenizedText], intervention: Intervention) -> None:
        """Run one pass with an intervention, for example one that records activations."""

    def logits(self, tokens: Sequence[TokenizedText], intervention: Intervention) -> Sequence[Tensor]:
        """Return the logits at each token with an intervention: (B, S, V).

        A text may lack the rows of its padding.
        """

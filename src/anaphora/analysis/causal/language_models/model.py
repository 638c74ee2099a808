"""Interface of a language model for the causal tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from anaphora.analysis.causal.interventions import Intervention
from anaphora.data.tokens.tokenizer import TokenizedText


class LanguageModel(Protocol):
    """A language model in evaluation mode, from any library, whose attention can be edited.

    B texts, right-padded to S tokens, H heads, V tokens in the vocabulary.
    """

    @property
    def name(self) -> str:
        """Return the name of the model for error messages."""

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of layers and heads."""

    @property
    def is_decoder(self) -> bool:
        """Return whether each token attends only to itself and to earlier tokens."""

    @property
    def mask(self) -> int:
        """Return the id of the mask token; unused in decoders."""

    @property
    def device(self) -> torch.device:
        """Return the model's device."""

    def tokenize(self, text: str) -> TokenizedText:
        """Tokenize a text for the model, special tokens included.

        Raises:
            UserError: the text does not fit the model.
        """

    def maps(self, tokens: Sequence[TokenizedText]) -> list[Tensor]:
        """Return the attention maps of every layer, (B, H, queries, keys) each."""

    def read(self, tokens: Sequence[TokenizedText], intervention: Intervention) -> None:
        """Run one forward pass with an intervention, for example one that records activations."""

    def logits(self, tokens: Sequence[TokenizedText], intervention: Intervention) -> Sequence[Tensor]:
        """Return the logits at each token with an intervention: (B, S, V); rows of padding may be missing."""

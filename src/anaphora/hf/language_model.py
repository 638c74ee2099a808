"""Language models of `transformers` with the interface of the causal tests."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from anaphora.analysis.causal.interventions import Intervention
from anaphora.base.errors import UserError
from anaphora.base.locale.translation import N_
from anaphora.data.tokens.tokenizer import TokenizedText
from anaphora.hf.reader import TransformersModel


class TransformersLanguageModel:
    """`LanguageModel` for a model of `transformers`.

    Raises:
        UserError: the model cannot answer which candidate a pronoun refers to (see `why_no_answer`).
    """

    def __init__(self, model: TransformersModel) -> None:
        if reason := why_no_answer(model):
            raise reason
        self.model = model
        self.mask = -1 if model.is_decoder else int(model.tokenizer.mask_token_id)

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def shape(self) -> tuple[int, int]:
        return self.model.layers, self.model.heads

    @property
    def is_decoder(self) -> bool:
        return self.model.is_decoder

    @property
    def device(self) -> torch.device:
        device: torch.device = self.model.model.device
        return device

    def tokenize(self, text: str) -> TokenizedText:
        return self.model.tokenize(text)

    def maps(self, tokens: Sequence[TokenizedText]) -> list[Tensor]:
        attending = dict(zip(self.model.attending_layers, self.model.run(tokens), strict=True))
        nothing = torch.zeros_like(attending[self.model.layers - 1])
        return [attending.get(layer, nothing) for layer in range(self.model.layers)]

    def read(self, tokens: Sequence[TokenizedText], intervention: Intervention) -> None:
        self.model.editable.read(tokens, [intervention])

    def logits(self, tokens: Sequence[TokenizedText], intervention: Intervention) -> Sequence[Tensor]:
        return self.model.logits(tokens, intervention)


def why_no_answer(model: TransformersModel) -> UserError | None:
    """Return the error for a model that cannot answer which candidate a pronoun refers to, or None if it can."""
    if model.language_model is None:
        message = N_("{model}: it has no output layer over the vocabulary, so it gives no answers")
        return UserError(message, model=model.name)
    if not model.is_decoder and model.tokenizer.mask_token_id is None:
        return UserError(N_("{model}: its tokenizer has no mask, so it gives no answers"), model=model.name)
    try:
        model.editable  # noqa: B018 - its error is the answer
    except UserError as error:
        return error
    return None

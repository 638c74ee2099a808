"""A model of `transformers` with its output layer, as the causal tests need it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from anaphora.analysis.causal.interventions import Intervention
from anaphora.base.errors import UserError
from anaphora.base.locale.translation import N_
from anaphora.data.tokens.tokenizer import TokenizedText
from anaphora.hf.interface import AttentionTap
from anaphora.hf.reader import NOT_EDITED, TransformersModel
from anaphora.model.attention import Queries


class TransformersLanguageModel:
    """A `LanguageModel` of `transformers`.

    Raises:
        UserError: it cannot be asked which candidate a pronoun means (`why_no_answer`).
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
        return self.model.run(tokens, AttentionTap())

    def read(self, tokens: Sequence[TokenizedText], intervention: Intervention) -> None:
        self.model.run(tokens, self._tap(intervention))

    def logits(self, tokens: Sequence[TokenizedText], intervention: Intervention) -> Tensor:
        return self.model.logits(tokens, self._tap(intervention))

    def _tap(self, intervention: Intervention) -> AttentionTap:
        """The edits of each layer; no row of weights is kept."""
        nothing = torch.zeros(0, dtype=torch.long, device=self.device)
        no_queries: Queries = (nothing, nothing)
        return AttentionTap(no_queries, {layer: (edit,) for layer, edit in intervention.items()})


def why_no_answer(model: TransformersModel) -> UserError | None:
    """Return why a model cannot be asked which candidate a pronoun means; None if it can."""
    if not model.through_interface:
        return UserError(NOT_EDITED, model=model.name, family=model.family)
    if model.language_model is None:
        message = N_("{model}: it has no output layer over the vocabulary, so it gives no answers")
        return UserError(message, model=model.name)
    if not model.is_decoder and model.tokenizer.mask_token_id is None:
        return UserError(N_("{model}: its tokenizer has no mask, so it gives no answers"), model=model.name)
    return None

"""Runs trained with a masked-language-model loss as subjects of the causal tests."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from anaphora.analysis.causal.interventions import Intervention, intervene
from anaphora.analysis.maps.capture import answers_pronouns
from anaphora.base.batch import EncoderInput
from anaphora.base.special_tokens import MASK, PADDING
from anaphora.data.tokens.tokenizer import TokenizedText
from anaphora.runs.directory import Run
from anaphora.settings.model.attention import heads_of
from anaphora.settings.model.encoder import check_length

_PADDED = -1
"""Segment number of padding, to which no token attends."""


class MaskedRun:
    """A `LanguageModel` made of a run with a masked-language-model loss (`answers_by_masks`).

    Raises:
        UserError: the run's model takes the pronoun as a second sequence.
    """

    is_decoder = False
    mask = MASK

    def __init__(self, run: Run) -> None:
        run.model.check_without_query()
        self._run, self._model = run, run.model

    @property
    def name(self) -> str:
        return self._run.name

    @property
    def shape(self) -> tuple[int, int]:
        settings = self._run.config.model
        return int(settings.layers), heads_of(settings.attention)

    @property
    def device(self) -> torch.device:
        return self._model.device

    def tokenize(self, text: str) -> TokenizedText:
        tokens = self._run.tokenizer.encode(text)
        check_length(self._run.config.model, len(tokens.ids))
        return tokens

    def maps(self, tokens: Sequence[TokenizedText]) -> list[Tensor]:
        with torch.inference_mode():
            return list(self._model.encoder.maps(self._input(tokens)))

    def read(self, tokens: Sequence[TokenizedText], intervention: Intervention) -> None:
        self._hidden(tokens, intervention)

    def logits(self, tokens: Sequence[TokenizedText], intervention: Intervention) -> list[Tensor]:
        with torch.inference_mode():
            return list(self._model.output(self._hidden(tokens, intervention)))

    def _hidden(self, tokens: Sequence[TokenizedText], intervention: Intervention) -> Tensor:
        with torch.inference_mode(), intervene(self._model.encoder, intervention):
            hidden: Tensor = self._model.encoder(self._input(tokens))
        return hidden

    def _input(self, tokens: Sequence[TokenizedText]) -> EncoderInput:
        """Return the texts as a batch, one text per row, right-padded."""
        length = max(len(text.ids) for text in tokens)
        ids = torch.full((len(tokens), length), PADDING)
        segments = torch.full_like(ids, _PADDED)
        for row, text in enumerate(tokens):
            ids[row, : len(text.ids)] = torch.tensor(text.ids)
            segments[row, : len(text.ids)] = 0
        positions = torch.arange(length).expand_as(ids)
        return EncoderInput(*(tensor.to(self.device) for tensor in (ids, positions, segments)))


def answers_by_masks(run: Run) -> bool:
    """Return True if a run answers by its masked-LM output, because it has no head that predicts candidates."""
    task = run.config.task
    return task.masked_lm > 0 and not answers_pronouns(task.prediction)

"""Adapters through which causal tests run on language models, and on runs trained with a masked-language-model loss.

Axes are L (layers), H (heads), D (features per head), T (tokens of an item), S (tokens of a scored text) and B (texts
of a batch).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from anaphora.analysis.causal.candidate_scoring import LanguageModel, ScoredText, answerable_questions
from anaphora.analysis.causal.interventions import Intervention, intervene
from anaphora.analysis.causal.subjects import BatchLayout, EditedSubject, PlacedText, Scores
from anaphora.analysis.maps.capture import answers_pronouns
from anaphora.base.batch import EncoderInput
from anaphora.base.errors import UserError, counted
from anaphora.base.translation import N_
from anaphora.data.example import Example
from anaphora.data.tokens.tokenizer import TokenizedText
from anaphora.runs.directory import Run
from anaphora.settings.model.attention import heads_of
from anaphora.settings.model.encoder import check_length
from anaphora.settings.vocabulary import MASK, PADDING

_NOT_FINITE = N_("{model}: its output layer gives numbers that are not finite for the text ({beginning!r}...)")
_BATCH_TOKENS = 1_024
"""Maximum number of tokens in a batch, padding included; each token has logits over the whole vocabulary."""


class LanguageModelSubject(EditedSubject):
    """Model under test (`Subject`) that wraps a language model, with the items that the model can answer.

    Raises:
        UserError: the model can answer none of the items, or does not accept the text of an item.
    """

    def __init__(self, model: LanguageModel, examples: Sequence[Example]) -> None:
        questions = answerable_questions(model, examples)
        if not questions:
            raise UserError(f"{model.name}: it can answer none of {counted(len(examples), 'item')}")
        self.examples = [question.example for question in questions]
        self.tokens = [question.tokens for question in questions]
        self._model, self._device = model, model.device
        ranked = [ranked for question in questions for ranked in enumerate(question.texts)]
        lengths = [len(text.tokens.ids) for _, text in ranked]
        batches = [
            [ranked[number] for number in numbers]
            for numbers in _by_tokens(lengths, 0 if model.alone else _BATCH_TOKENS)
        ]
        self._batches = [[text for _, text in batch] for batch in batches]
        self._layouts = list(map(_layout, batches))
        self._is_decoder = model.is_decoder
        self._candidates = max(len(example.candidates) for example in self.examples)

    @property
    def shape(self) -> tuple[int, int]:
        return self._model.shape

    def maps(self) -> Iterator[tuple[int, NDArray[np.float32]]]:
        for items in _by_tokens([len(tokens.ids) for tokens in self.tokens], _BATCH_TOKENS):
            layers = self._model.maps([self.tokens[item] for item in items])
            maps = torch.stack(layers, dim=1).float().cpu().numpy()  # (B, L, H, T, T)
            for row, item in enumerate(items):
                own = slice(len(self.tokens[item].ids))
                yield item, maps[row, :, :, own, own]

    def _scores_under(self, intervention: Callable[[int], Intervention]) -> Scores:
        scores = np.full((len(self.examples), self._candidates + 1), -np.inf)
        for number, batch in enumerate(self._batches):
            logits = self._model.logits([text.tokens for text in batch], intervention(number))
            for row, text in enumerate(batch):
                for target in text.targets:
                    positions = torch.tensor(target.positions, device=self._device)
                    words = torch.tensor(target.ids, device=self._device)[:, None]
                    shares = logits[row][positions].double().log_softmax(dim=-1).gather(1, words)
                    score = float(shares.mean())
                    if math.isnan(score):
                        beginning = self.examples[text.item].text[:40]
                        raise UserError(_NOT_FINITE, model=self._model.name, beginning=beginning)
                    scores[text.item, target.candidate] = score
        return scores

    def _run(self, batch: int, intervention: Intervention) -> None:
        self._model.read([text.tokens for text in self._batches[batch]], intervention)


def _layout(batch: Sequence[tuple[int, ScoredText]]) -> BatchLayout:
    """Return the layout of a batch of right-padded texts; each is given with its index among the texts of its item."""
    length = max(len(text.tokens.ids) for _, text in batch)
    return BatchLayout(
        len(batch),
        length,
        [
            PlacedText(text.item, rank, row * length, len(text.tokens.ids), text.alignment)
            for row, (rank, text) in enumerate(batch)
        ],
    )


def _by_tokens(lengths: Sequence[int], most: int) -> Iterator[list[int]]:
    """Yield batches of text indices, shortest first. A batch has at most `most` tokens with padding, or one text."""
    together: list[int] = []
    for number in sorted(range(len(lengths)), key=lengths.__getitem__):
        if together and (len(together) + 1) * lengths[number] > most:
            yield together
            together = []
        together.append(number)
    if together:
        yield together


_PADDED = -1
"""Segment number of padding, to which no token attends."""


class MaskedRun:
    """`LanguageModel` that wraps a trained run with a masked-language-model loss.

    Raises:
        UserError: the run's model needs the pronoun as a second input sequence (`model.second_sequence`).
    """

    is_decoder = False
    alone = False
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
        ids = pad_sequence([torch.tensor(text.ids) for text in tokens], batch_first=True, padding_value=PADDING)
        inside = [torch.zeros(len(text.ids), dtype=torch.long) for text in tokens]
        segments = pad_sequence(inside, batch_first=True, padding_value=_PADDED)
        positions = torch.arange(ids.shape[1]).expand_as(ids)
        return EncoderInput(*(tensor.to(self.device) for tensor in (ids, positions, segments)))


def answers_by_masks(run: Run) -> bool:
    """Return whether a run answers by its masked-LM output, because it has no prediction head for candidates."""
    task = run.config.task
    return task.masked_lm > 0 and not answers_pronouns(task.prediction) and not run.is_encoder_alone

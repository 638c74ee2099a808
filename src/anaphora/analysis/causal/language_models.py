"""Adapters through which causal tests run on language models, and on runs with a masked-language-model loss.

Axes are L (layers), H (heads), D (features per head), T (tokens of an item), S (tokens of a scored text) and B (texts
of a batch).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anaphora.analysis.causal.candidate_scoring import LanguageModel, ScoredText, answerable_questions
from anaphora.analysis.causal.interventions import ActivationRecorder, FlatEdges, Intervention, intervene
from anaphora.analysis.causal.subjects import Edges, EditedSubject, Scores, resampling_partners, stretched
from anaphora.analysis.maps.capture import answers_pronouns
from anaphora.analysis.results.scores import Head
from anaphora.base.batch import EncoderInput
from anaphora.base.errors import UserError
from anaphora.base.translation import N_
from anaphora.data.example import Example
from anaphora.data.grouping import indices_by
from anaphora.data.tokens.tokenizer import TokenizedText
from anaphora.runs.directory import Run
from anaphora.settings.model.attention import heads_of
from anaphora.settings.model.encoder import check_length
from anaphora.settings.vocabulary import MASK, PADDING

_NOT_FINITE = N_("{model}: its output layer gives numbers that are not finite for the text ({beginning!r}...)")
_BATCH_TOKENS = 1_024
"""Maximum number of tokens in a batch, padding included; each token has logits over the whole vocabulary."""


@dataclass(frozen=True, eq=False)
class _Batch:
    """Batch of scored texts, right-padded to S tokens, with the index of each text among all texts.

    A flat position is row * S + token.
    """

    numbers: tuple[int, ...]
    texts: tuple[ScoredText, ...]

    @property
    def length(self) -> int:
        return max(len(text.tokens.ids) for text in self.texts)


class LanguageModelSubject(EditedSubject):
    """`Subject` made of a language model and the items that it can answer (`answerable_questions`).

    Raises:
        UserError: the model can answer none of the items, or does not accept the text of an item.
    """

    def __init__(self, model: LanguageModel, examples: Sequence[Example]) -> None:
        questions = answerable_questions(model, examples)
        if not questions:
            raise UserError(f"{model.name}: it can answer none of the {len(examples)} items")
        self.examples = [question.example for question in questions]
        self.tokens = [question.tokens for question in questions]
        self._model, self._device = model, model.device
        self._texts = [text for question in questions for text in question.texts]
        self._of_item = indices_by(text.item for text in self._texts)
        lengths = [len(text.tokens.ids) for text in self._texts]
        self._batches = [
            _Batch(tuple(numbers), tuple(self._texts[number] for number in numbers)) for numbers in _by_tokens(lengths)
        ]
        self._candidates = max(len(example.candidates) for example in self.examples)

    @property
    def shape(self) -> tuple[int, int]:
        return self._model.shape

    def maps(self) -> Iterator[tuple[int, NDArray[np.float32]]]:
        for items in _by_tokens([len(tokens.ids) for tokens in self.tokens]):
            layers = self._model.maps([self.tokens[item] for item in items])
            maps = torch.stack(layers, dim=1).float().cpu().numpy()  # (B, L, H, T, T)
            for row, item in enumerate(items):
                own = slice(len(self.tokens[item].ids))
                yield item, maps[row, :, :, own, own]

    def _scores_under(self, intervention: Callable[[int], Intervention]) -> Scores:
        scores = np.full((len(self.examples), self._candidates + 1), -np.inf)
        for number, batch in enumerate(self._batches):
            tokens = [text.tokens for text in batch.texts]
            logits = self._model.logits(tokens, intervention(number))
            for row, text in enumerate(batch.texts):
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

    def _flat_edges(self, edges: Edges) -> Callable[[int], dict[Head, FlatEdges]]:
        """Return a function from the index of a batch to the attention edges in that batch, keyed by head.

        An edge becomes all edges from the tokens aligned with its query to the tokens aligned with its key.
        """
        of_item: defaultdict[int, list[tuple[int, int, int, int]]] = defaultdict(list)
        for item, layer, head, query, key in zip(*(column.tolist() for column in edges), strict=True):
            of_item[item].append((layer, head, query, key))

        def of_batch(number: int) -> dict[Head, FlatEdges]:
            batch = self._batches[number]
            pairs: defaultdict[Head, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
            for row, text in enumerate(batch.texts):
                begin = row * batch.length
                for layer, head, query, key in of_item.get(text.item, ()):
                    queries, keys = pairs[Head(layer, head)]
                    for attending in text.alignment[query]:
                        for attended in text.alignment[key]:
                            queries.append(begin + attending)
                            keys.append(begin + attended)
            return {
                head: (torch.tensor(queries, device=self._device), torch.tensor(keys, device=self._device))
                for head, (queries, keys) in pairs.items()
            }

        return of_batch

    def _new_rows(
        self, batch: int, heads: Sequence[Head], rows: Mapping[int, NDArray[np.float32]]
    ) -> Iterator[tuple[int, NDArray[np.float32]]]:
        texts, length = self._batches[batch].texts, self._batches[batch].length
        layer, head = [one.layer for one in heads], [one.head for one in heads]
        for row, text in enumerate(texts):
            if text.item not in rows:
                continue
            pronoun = self.tokens[text.item].covering(self.examples[text.item].pronoun)
            given = rows[text.item][layer, head] @ text.shares()  # (heads, Q, S)
            for position in sorted({position for token in pronoun for position in text.alignment[token]}):
                standing = [number for number, token in enumerate(pronoun) if position in text.alignment[token]]
                own = given[:, standing].mean(axis=1)
                if self._model.is_decoder:
                    own = _seen_from(position, own)
                whole = np.zeros((len(heads), length), dtype=np.float32)
                whole[:, : own.shape[-1]] = own
                yield row * length + position, whole

    def _recorded(self) -> Iterator[tuple[_Batch, dict[int, Tensor]]]:
        """Yield each batch and the outputs of all its heads, (B, H, S, D), keyed by the index of the layer."""
        for batch in self._batches:
            recorders = [ActivationRecorder() for _ in range(self.shape[0])]
            self._model.read([text.tokens for text in batch.texts], dict(enumerate(recorders)))
            recorded = [(layer, each) for layer, each in enumerate(recorders) if hasattr(each, "recorded_mixed")]
            yield batch, {layer: each.recorded_mixed for layer, each in recorded}

    def _mean_output(self) -> dict[int, Tensor]:
        totals: dict[int, Tensor] = {}
        count = 0
        for batch, outputs in self._recorded():
            for row, text in enumerate(batch.texts):
                count += len(text.tokens.ids)
                for layer, mixed in outputs.items():
                    own = mixed[row, :, : len(text.tokens.ids)].sum(dim=1)
                    totals[layer] = totals[layer] + own if layer in totals else own
        return {layer: total / count for layer, total in totals.items()}

    def _resampled(self, heads: Sequence[Head]) -> Callable[[int], dict[Head, Tensor]]:
        outputs: dict[int, list[Tensor]] = {}  # (S, D) of each head, by number of the text
        for batch, layers in self._recorded():
            for row, (number, text) in enumerate(zip(batch.numbers, batch.texts, strict=True)):
                own = slice(len(text.tokens.ids))
                outputs[number] = [layers[one.layer][row, one.head, own] for one in heads]
        partners = resampling_partners(self.examples, self.tokens)

        def of_batch(batch_number: int) -> dict[Head, Tensor]:
            batch = self._batches[batch_number]
            shape = (len(batch.texts), batch.length)
            replaced = [one.new_zeros(*shape, one.shape[-1]) for one in outputs[batch.numbers[0]]]
            for row, (number, text) in enumerate(zip(batch.numbers, batch.texts, strict=True)):
                own, others = self._of_item[text.item], self._of_item[partners[text.item]]
                other = outputs[others[min(own.index(number), len(others) - 1)]]
                count = len(text.tokens.ids)
                for own_output, others_output in zip(replaced, other, strict=True):
                    own_output[row, :count] = stretched(others_output, count)
            return dict(zip(heads, replaced, strict=True))

        return of_batch


def _seen_from(position: int, rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Set the weights on tokens after `position`, which a decoder cannot attend to, to 0; keep the sum of each row.

    A row without remaining weight becomes all 0.
    """
    whole, seen = rows.sum(axis=-1, keepdims=True), rows.copy()
    seen[..., position + 1 :] = 0
    left = seen.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(seen * whole, left, out=seen, where=left > 0))


def _by_tokens(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield batches of text indices, shortest texts first.

    A batch has at most `_BATCH_TOKENS` tokens, padding included, unless it consists of a single longer text.
    """
    together: list[int] = []
    for number in sorted(range(len(lengths)), key=lengths.__getitem__):
        if together and (len(together) + 1) * lengths[number] > _BATCH_TOKENS:
            yield together
            together = []
        together.append(number)
    if together:
        yield together


_PADDED = -1
"""Segment number of padding, to which no token attends."""


class MaskedRun:
    """`LanguageModel` that wraps a run with a masked-language-model loss (`answers_by_masks`).

    Raises:
        UserError: the run's model needs the pronoun as a second input sequence (`model.second_sequence`).
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
        length = max(len(text.ids) for text in tokens)
        ids = torch.full((len(tokens), length), PADDING)
        segments = torch.full_like(ids, _PADDED)
        for row, text in enumerate(tokens):
            ids[row, : len(text.ids)] = torch.tensor(text.ids)
            segments[row, : len(text.ids)] = 0
        positions = torch.arange(length).expand_as(ids)
        return EncoderInput(*(tensor.to(self.device) for tensor in (ids, positions, segments)))


def answers_by_masks(run: Run) -> bool:
    """Return whether a run's answers come from its masked-LM output, since no prediction head scores candidates."""
    task = run.config.task
    return task.masked_lm > 0 and not answers_pronouns(task.prediction) and not run.is_encoder_alone

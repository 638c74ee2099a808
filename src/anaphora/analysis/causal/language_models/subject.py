"""Language models as subjects of causal tests, with attention edited in the model.

N items, M candidates at most, L layers, H heads, T tokens of an item, S of a reading, B readings in a batch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anaphora.analysis.causal.interventions import ActivationRecorder, FlatEdges, Intervention, patch_rows
from anaphora.analysis.causal.language_models.model import LanguageModel
from anaphora.analysis.causal.language_models.questions import Reading, answerable_questions
from anaphora.analysis.causal.subjects import Edges, EditedSubject, Scores, resampling_partners, stretched
from anaphora.analysis.results.scores import Head
from anaphora.base.errors import UserError
from anaphora.data.example import Example

_BATCH_TOKENS = 1_024
"""Tokens of a batch at most, padding included: the output layer gives each of them a number for every word it knows."""


@dataclass(frozen=True, eq=False)
class _Batch:
    """Texts in a batch, padded at their ends to S tokens; flat positions are row * S + token."""

    numbers: tuple[int, ...]
    readings: tuple[Reading, ...]

    @property
    def length(self) -> int:
        return max(len(reading.tokens.ids) for reading in self.readings)


class LanguageModelSubject(EditedSubject):
    """A `Subject` of a language model and the items that it can answer.

    Args:
        model: whose attention is edited.
        examples: items; those that the model cannot answer are left out (`questions.answerable_questions`).

    Raises:
        UserError: the model can answer none of the items.
    """

    def __init__(self, model: LanguageModel, examples: Sequence[Example]) -> None:
        questions = answerable_questions(model, examples)
        if not questions:
            raise UserError(f"{model.name}: it can answer none of the {len(examples)} items")
        self.examples = [question.example for question in questions]
        self.tokens = [question.tokens for question in questions]
        self._model, self._device = model, model.device
        self._readings = [reading for question in questions for reading in question.readings]
        self._of_item = _numbers_by_item(self._readings, len(questions))
        self._batches = list(_batches(self._readings))
        self._candidates = max(len(example.candidates) for example in self.examples)

    @property
    def shape(self) -> tuple[int, int]:
        return self._model.shape

    def maps(self) -> Iterator[tuple[int, NDArray[np.float32]]]:
        order = sorted(range(len(self.tokens)), key=lambda item: len(self.tokens[item].ids))
        for items in _by_tokens(order, lambda item: len(self.tokens[item].ids)):
            layers = self._model.maps([self.tokens[item] for item in items])
            maps = torch.stack(layers, dim=1).float().cpu().numpy()  # (B, L, H, T, T)
            for row, item in enumerate(items):
                own = slice(len(self.tokens[item].ids))
                yield item, maps[row, :, :, own, own]

    def _scores_under(self, intervention: Callable[[int], Intervention]) -> Scores:
        scores = np.full((len(self.examples), self._candidates + 1), -np.inf)
        for number, batch in enumerate(self._batches):
            tokens = [reading.tokens for reading in batch.readings]
            logits = self._model.logits(tokens, intervention(number))
            for row, reading in enumerate(batch.readings):
                for target in reading.targets:
                    positions = torch.tensor(target.positions, device=self._device)
                    words = torch.tensor(target.ids, device=self._device)[:, None]
                    shares = logits[row][positions].double().log_softmax(dim=-1).gather(1, words)
                    scores[reading.item, target.candidate] = float(shares.mean())
        return scores

    def _flat_edges(self, edges: Edges) -> Callable[[int], dict[Head, FlatEdges]]:
        """Return a function that gives a batch's edges: all edges between the tokens that an item's edge maps to."""
        of_item: defaultdict[int, list[tuple[int, int, int, int]]] = defaultdict(list)
        for item, layer, head, query, key in zip(*(column.tolist() for column in edges), strict=True):
            of_item[item].append((layer, head, query, key))

        def of_batch(number: int) -> dict[Head, FlatEdges]:
            batch = self._batches[number]
            pairs: defaultdict[Head, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
            for row, reading in enumerate(batch.readings):
                begin = row * batch.length
                for layer, head, query, key in of_item.get(reading.item, ()):
                    queries, keys = pairs[Head(layer, head)]
                    for attending in reading.places[query]:
                        for attended in reading.places[key]:
                            queries.append(begin + attending)
                            keys.append(begin + attended)
            return {
                head: (torch.tensor(queries, device=self._device), torch.tensor(keys, device=self._device))
                for head, (queries, keys) in pairs.items()
            }

        return of_batch

    def _patch(self, batch: int, heads: Sequence[Head], rows: Mapping[int, NDArray[np.float32]]) -> Intervention:
        readings, length = self._batches[batch].readings, self._batches[batch].length
        layer, head = [one.layer for one in heads], [one.head for one in heads]
        positions: list[int] = []
        weights: list[NDArray[np.float32]] = []
        for row, reading in enumerate(readings):
            if reading.item not in rows:
                continue
            pronoun = self.tokens[reading.item].covering(self.examples[reading.item].pronoun)
            given = rows[reading.item][layer, head] @ reading.shares()  # (heads, Q, S)
            for place in sorted({place for token in pronoun for place in reading.places[token]}):
                standing = [number for number, token in enumerate(pronoun) if place in reading.places[token]]
                own = given[:, standing].mean(axis=1)
                if self._model.is_decoder:
                    own = _seen_from(place, own)
                whole = np.zeros((len(heads), length), dtype=np.float32)
                whole[:, : own.shape[-1]] = own
                weights.append(whole)
                positions.append(row * length + place)
        if not positions:
            return {}
        queries = torch.tensor(positions, device=self._device)
        new = torch.from_numpy(np.stack(weights, axis=1)).to(self._device)  # (heads, queries, S)
        return patch_rows({one: (queries, new[number]) for number, one in enumerate(heads)})

    def _recorded(self) -> Iterator[tuple[_Batch, dict[int, Tensor]]]:
        """Yield each batch with the heads' outputs in every layer, (B, H, S, D)."""
        for batch in self._batches:
            recorders = [ActivationRecorder() for _ in range(self.shape[0])]
            self._model.read([reading.tokens for reading in batch.readings], dict(enumerate(recorders)))
            yield (
                batch,
                {
                    layer: recorder.recorded_mixed
                    for layer, recorder in enumerate(recorders)
                    if hasattr(recorder, "recorded_mixed")
                },
            )

    def _mean_output(self) -> dict[int, Tensor]:
        totals: dict[int, Tensor] = {}
        count = 0
        for batch, outputs in self._recorded():
            for row, reading in enumerate(batch.readings):
                count += len(reading.tokens.ids)
                for layer, mixed in outputs.items():
                    own = mixed[row, :, : len(reading.tokens.ids)].sum(dim=1)
                    totals[layer] = totals[layer] + own if layer in totals else own
        return {layer: total / count for layer, total in totals.items()}

    def _outputs(self, heads: Sequence[Head]) -> dict[int, list[Tensor]]:
        """Return the outputs of some heads in each text: (heads, S, D)."""
        outputs: dict[int, list[Tensor]] = {}
        for batch, layers in self._recorded():
            for row, (number, reading) in enumerate(zip(batch.numbers, batch.readings, strict=True)):
                own = slice(len(reading.tokens.ids))
                outputs[number] = [layers[one.layer][row, one.head, own] for one in heads]
        return outputs

    def _resampled(self, heads: Sequence[Head]) -> Callable[[int], dict[Head, Tensor]]:
        outputs = self._outputs(heads)
        partners = resampling_partners(self.examples, self.tokens)

        def of_batch(place: int) -> dict[Head, Tensor]:
            batch = self._batches[place]
            shape = (len(batch.readings), batch.length)
            replaced = [one.new_zeros(*shape, one.shape[-1]) for one in outputs[batch.numbers[0]]]
            for row, (number, reading) in enumerate(zip(batch.numbers, batch.readings, strict=True)):
                own, others = self._of_item[reading.item], self._of_item[partners[reading.item]]
                other = outputs[others[min(own.index(number), len(others) - 1)]]
                count = len(reading.tokens.ids)
                for own_output, others_output in zip(replaced, other, strict=True):
                    own_output[row, :count] = stretched(others_output, count)
            return dict(zip(heads, replaced, strict=True))

        return of_batch


def _seen_from(place: int, rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Remove the weight on tokens after a token, which a decoder cannot attend to, and rescale the row."""
    whole, seen = rows.sum(axis=-1, keepdims=True), rows.copy()
    seen[..., place + 1 :] = 0
    left = seen.sum(axis=-1, keepdims=True)
    scaled: NDArray[np.float32] = np.divide(seen * whole, left, out=seen, where=left > 0)
    return scaled


def _batches(readings: Sequence[Reading]) -> Iterator[_Batch]:
    order = sorted(range(len(readings)), key=lambda number: len(readings[number].tokens.ids))
    for numbers in _by_tokens(order, lambda number: len(readings[number].tokens.ids)):
        yield _Batch(tuple(numbers), tuple(readings[number] for number in numbers))


def _by_tokens(order: Sequence[int], length: Callable[[int], int]) -> Iterator[list[int]]:
    """Yield numbers sorted by length, in groups of at most `_BATCH_TOKENS` tokens, at least one each."""
    together: list[int] = []
    for number in order:
        if together and (len(together) + 1) * length(number) > _BATCH_TOKENS:
            yield together
            together = []
        together.append(number)
    if together:
        yield together


def _numbers_by_item(readings: Sequence[Reading], items: int) -> list[list[int]]:
    numbers: list[list[int]] = [[] for _ in range(items)]
    for number, reading in enumerate(readings):
        numbers[reading.item].append(number)
    return numbers

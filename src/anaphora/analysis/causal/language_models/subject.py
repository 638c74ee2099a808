"""A language model under the causal tests: its answers with attention edited where it is computed.

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

from anaphora.analysis.causal.interventions import (
    ActivationRecorder,
    FlatEdges,
    Intervention,
    knockout_edges,
    patch_rows,
    replace_head_outputs,
    uniform_weights,
    zero_edge_values,
)
from anaphora.analysis.causal.language_models.model import LanguageModel
from anaphora.analysis.causal.language_models.questions import Reading, answerable_questions
from anaphora.analysis.causal.subjects import ABLATION_MODES, Edges, Scores, resampling_partners
from anaphora.analysis.results.scores import Head
from anaphora.base.errors import UserError
from anaphora.data.example import Example

_BATCH_TOKENS = 1_024
"""Tokens of a batch at most, padding included: the output layer gives each of them a number for every word it knows."""


@dataclass(frozen=True, eq=False)
class _Batch:
    """Readings side by side, padded at their ends to S tokens; flat positions are row * S + token."""

    numbers: tuple[int, ...]
    readings: tuple[Reading, ...]

    @property
    def length(self) -> int:
        return max(len(reading.tokens.ids) for reading in self.readings)


class LanguageModelSubject:
    """A `Subject`: a language model and the items on which it can be asked.

    Args:
        model: whose attention is edited.
        examples: items; those that the model cannot be asked are left out (`questions.answerable_questions`).

    Raises:
        UserError: the model can be asked none of the items.
    """

    def __init__(self, model: LanguageModel, examples: Sequence[Example]) -> None:
        questions = answerable_questions(model, examples)
        if not questions:
            raise UserError(f"{model.name}: it can answer none of the {len(examples)} items")
        self.examples = [question.example for question in questions]
        self.tokens = [question.tokens for question in questions]
        self._model = model
        self._readings = [reading for question in questions for reading in question.readings]
        self._of_item = _numbers_by_item(self._readings, len(questions))
        self._batches = list(_batches(self._readings))
        self._candidates = max(len(example.candidates) for example in self.examples)
        self._means: dict[Head, Tensor] | None = None

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

    def scores(self) -> Scores:
        return self._scores_under(lambda _: {})

    def ablated(self, heads: Sequence[Head], mode: str) -> Scores:
        match mode:
            case "zero":
                zeros = replace_head_outputs(dict.fromkeys(heads, torch.zeros((), device=self._model.device)))
                return self._scores_under(lambda _: zeros)
            case "mean":
                means = self._mean_outputs()
                replaced = replace_head_outputs({head: means[head] for head in heads})
                return self._scores_under(lambda _: replaced)
            case "resample":
                outputs = self._outputs(heads)
                return self._scores_under(lambda batch: self._resampled(batch, heads, outputs))
            case "uniform":
                uniform = uniform_weights(heads)
                return self._scores_under(lambda _: uniform)
        raise UserError(f"mode ({mode!r}) must be one of {', '.join(ABLATION_MODES)}")

    def knocked_out(self, edges: Edges) -> Scores:
        of_item = self._by_item(edges)
        return self._scores_under(lambda batch: knockout_edges(self._flat_edges(batch, of_item)))

    def value_zeroed(self, edges: Edges) -> Scores:
        of_item = self._by_item(edges)
        return self._scores_under(lambda batch: zero_edge_values(self._flat_edges(batch, of_item)))

    def patched(self, heads: Sequence[Head], rows: Mapping[int, NDArray[np.float32]]) -> Scores:
        return self._scores_under(lambda batch: self._patch(batch, heads, rows))

    def _scores_under(self, intervention: Callable[[_Batch], Intervention]) -> Scores:
        """The answers while each batch has its own intervention."""
        scores = np.full((len(self.examples), self._candidates + 1), -np.inf)
        for batch in self._batches:
            logits = self._model.logits(
                [reading.tokens for reading in batch.readings], intervention(batch)
            )  # (B, S, V)
            for row, reading in enumerate(batch.readings):
                for target in reading.targets:
                    positions = torch.tensor(target.positions, device=logits.device)
                    words = torch.tensor(target.ids, device=logits.device)[:, None]
                    shares = logits[row, positions].double().log_softmax(dim=-1).gather(1, words)
                    scores[reading.item, target.candidate] = float(shares.mean())
        return scores

    def _by_item(self, edges: Edges) -> dict[int, list[tuple[int, int, int, int]]]:
        of_item: defaultdict[int, list[tuple[int, int, int, int]]] = defaultdict(list)
        for item, layer, head, query, key in zip(*(column.tolist() for column in edges), strict=True):
            of_item[item].append((layer, head, query, key))
        return of_item

    def _flat_edges(
        self, batch: _Batch, of_item: Mapping[int, Sequence[tuple[int, int, int, int]]]
    ) -> dict[Head, FlatEdges]:
        """An edge between two tokens of an item is every edge between the tokens in their places."""
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
            head: (torch.tensor(queries, device=self._model.device), torch.tensor(keys, device=self._model.device))
            for head, (queries, keys) in pairs.items()
        }

    def _patch(self, batch: _Batch, heads: Sequence[Head], rows: Mapping[int, NDArray[np.float32]]) -> Intervention:
        layer, head = [one.layer for one in heads], [one.head for one in heads]
        positions: list[int] = []
        weights: list[NDArray[np.float32]] = []
        for row, reading in enumerate(batch.readings):
            if reading.item not in rows:
                continue
            pronoun = self.tokens[reading.item].covering(self.examples[reading.item].pronoun)
            given = rows[reading.item][layer, head] @ reading.shares()  # (heads, Q, S)
            for place in sorted({place for token in pronoun for place in reading.places[token]}):
                standing = [number for number, token in enumerate(pronoun) if place in reading.places[token]]
                own = given[:, standing].mean(axis=1)
                if self._model.is_decoder:
                    own = _seen_from(place, own)
                whole = np.zeros((len(heads), batch.length), dtype=np.float32)
                whole[:, : own.shape[-1]] = own
                weights.append(whole)
                positions.append(row * batch.length + place)
        if not positions:
            return {}
        queries = torch.tensor(positions, device=self._model.device)
        new = torch.from_numpy(np.stack(weights, axis=1)).to(self._model.device)  # (heads, queries, S)
        return patch_rows({one: (queries, new[number]) for number, one in enumerate(heads)})

    def _recorded(self) -> Iterator[tuple[_Batch, list[Tensor]]]:
        """Each batch with what the heads of every layer put out, (B, H, S, D)."""
        for batch in self._batches:
            recorders = [ActivationRecorder() for _ in range(self.shape[0])]
            self._model.read([reading.tokens for reading in batch.readings], dict(enumerate(recorders)))
            yield batch, [recorder.recorded_mixed for recorder in recorders]

    def _mean_outputs(self) -> dict[Head, Tensor]:
        """Each head's mean output over the tokens of all readings: (D,)."""
        if self._means is None:
            total, count = torch.zeros(()), 0
            for batch, outputs in self._recorded():
                for row, reading in enumerate(batch.readings):
                    own = torch.stack([layer[row, :, : len(reading.tokens.ids)].sum(dim=1) for layer in outputs])
                    total, count = total.to(own.device) + own, count + len(reading.tokens.ids)
            layers, heads = self.shape
            self._means = {
                Head(layer, head): total[layer, head] / count for layer in range(layers) for head in range(heads)
            }
        return self._means

    def _outputs(self, heads: Sequence[Head]) -> dict[int, Tensor]:
        """What some heads put out in each reading: (heads, S, D)."""
        outputs: dict[int, Tensor] = {}
        for batch, layers in self._recorded():
            for row, (number, reading) in enumerate(zip(batch.numbers, batch.readings, strict=True)):
                own = slice(len(reading.tokens.ids))
                outputs[number] = torch.stack([layers[one.layer][row, one.head, own] for one in heads])
        return outputs

    def _resampled(self, batch: _Batch, heads: Sequence[Head], outputs: Mapping[int, Tensor]) -> Intervention:
        """The heads' outputs at the same position of the partner's reading; a shorter one lends its last token."""
        partners = resampling_partners(self.examples, self.tokens)
        any_output = outputs[batch.numbers[0]]
        replaced = any_output.new_zeros(len(heads), len(batch.readings), batch.length, any_output.shape[-1])
        for row, (number, reading) in enumerate(zip(batch.numbers, batch.readings, strict=True)):
            own, others = self._of_item[reading.item], self._of_item[partners[reading.item]]
            other = outputs[others[min(own.index(number), len(others) - 1)]]
            count = len(reading.tokens.ids)
            positions = torch.arange(count, device=other.device).clamp(max=other.shape[1] - 1)
            replaced[:, row, :count] = other[:, positions]
        return replace_head_outputs({one: replaced[number] for number, one in enumerate(heads)})


def _seen_from(place: int, rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows without what follows a token, which a decoder does not see; the rest takes that weight in proportion."""
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
    """Numbers sorted by length, so many together as `_BATCH_TOKENS` holds, one at least."""
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

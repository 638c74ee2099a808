"""Models under test (`Subject`) in causal tests: their answers can be computed with edited attention."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anaphora.analysis.causal.interventions import (
    ActivationRecorder,
    FlatEdges,
    Intervention,
    intervene,
    knockout_edges,
    patch_rows,
    replace_head_outputs,
    uniform_weights,
    zero_edge_values,
)
from anaphora.analysis.results.scores import Head
from anaphora.analysis.scores.quads import cyclic_pairs, next_in_minimal_pair
from anaphora.base.batch import Batch
from anaphora.base.errors import UserError
from anaphora.data.batches.batching import evaluation_batches
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.example import Example
from anaphora.data.grouping import indices_by
from anaphora.data.tokens.tokenizer import TokenizedText
from anaphora.model.layers import Block
from anaphora.model.pronoun_model import PronounModel
from anaphora.settings.model.prediction import slots_of
from anaphora.settings.training import Batching


class Edges(NamedTuple):
    """Attention edges of many items: indices of item, layer, head, query token and key token of each edge, (E,) each.

    Token indices count from 0 in each sentence.
    """

    item: NDArray[np.int64]
    layer: NDArray[np.int64]
    head: NDArray[np.int64]
    query: NDArray[np.int64]
    key: NDArray[np.int64]


Scores = NDArray[np.float64]
"""Scores of each item's candidates, then of "none of them": (N, M + 1); -inf for answers that an item does not have."""


class Subject(Protocol):
    """Interface of a model under test, together with the N items on which the causal tests run this model.

    Token indices count from 0 in each item's sentence. The methods that return `Scores` run the model on all items and
    leave it unchanged. M is the largest number of candidates of an item; the last column of the scores is that of the
    answer "none of them".
    """

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of layers and heads."""

    @property
    def examples(self) -> Sequence[Example]:
        """Return the items."""

    @property
    def tokens(self) -> Sequence[TokenizedText]:
        """Return each item's text, tokenized for the model."""

    def maps(self) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Yield each item's index and attention maps (L, H, queries, keys), in any order."""

    def scores(self) -> Scores:
        """Return the scores without intervention, (N, M + 1); the last column is the score of "none of them"."""

    def ablated(self, heads: Sequence[Head], mode: str) -> Scores:
        """Return the scores (N, M + 1) if the given heads are ablated at every token.

        Raises:
            UserError: `mode` is not one of `ABLATION_MODES`.
        """

    def knocked_out(self, edges: Edges) -> Scores:
        """Return the scores if the attention edges are masked before the softmax: (N, M + 1), as in `scores`."""

    def value_zeroed(self, edges: Edges) -> Scores:
        """Return the scores (N, M + 1) with the values along the edges zeroed; the attention weights do not change."""

    def patched(self, heads: Sequence[Head], rows: Mapping[int, NDArray[np.float32]]) -> Scores:
        """Return the scores (N, M + 1) with the pronoun's attention rows replaced in the given heads.

        `rows` maps a patched item to the new rows of its pronoun's Q tokens, (L, H, Q, T).
        """


ABLATION_MODES = ("zero", "mean", "resample", "uniform")
"""Replacements of an ablated head's output.

zero: zeros.
mean: the head's mean output over all tokens of all items.
resample: the head's output at the same position of a partner: the minimal pair's next sentence if it has the same
length, otherwise the next item of the language. Beyond the end of a shorter partner, its last output is repeated.
uniform: the mean of all values to which the head may attend.
"""


class EditedSubject(ABC):
    """Base class of models under test whose attention is edited batch by batch; batches have indices from 0."""

    examples: Sequence[Example]
    tokens: Sequence[TokenizedText]
    _device: torch.device

    def scores(self) -> Scores:
        return self._scores_under(lambda _: {})

    def ablated(self, heads: Sequence[Head], mode: str) -> Scores:
        match mode:
            case "zero":
                zeros = replace_head_outputs(dict.fromkeys(heads, torch.zeros((), device=self._device)))
                return self._scores_under(lambda _: zeros)
            case "mean":
                replaced = replace_head_outputs({head: self._means[head] for head in heads})
                return self._scores_under(lambda _: replaced)
            case "resample":
                outputs = self._resampled(heads)
                return self._scores_under(lambda batch: replace_head_outputs(outputs(batch)))
            case "uniform":
                uniform = uniform_weights(heads)
                return self._scores_under(lambda _: uniform)
        raise UserError(f"mode ({mode!r}) must be one of {', '.join(ABLATION_MODES)}")

    def knocked_out(self, edges: Edges) -> Scores:
        pairs = self._flat_edges(edges)
        return self._scores_under(lambda batch: knockout_edges(pairs(batch)))

    def value_zeroed(self, edges: Edges) -> Scores:
        pairs = self._flat_edges(edges)
        return self._scores_under(lambda batch: zero_edge_values(pairs(batch)))

    def patched(self, heads: Sequence[Head], rows: Mapping[int, NDArray[np.float32]]) -> Scores:
        def patch(batch: int) -> Intervention:
            new = list(self._new_rows(batch, heads, rows))
            if not new:
                return {}
            positions = torch.tensor([position for position, _ in new], device=self._device)
            weights = torch.from_numpy(np.stack([row for _, row in new], axis=1)).to(self._device)
            return patch_rows({one: (positions, weights[number]) for number, one in enumerate(heads)})

        return self._scores_under(patch)

    @cached_property
    def _means(self) -> dict[Head, Tensor]:
        by_layer = self._mean_output().items()
        return {Head(layer, head): mean for layer, means in by_layer for head, mean in enumerate(means)}

    @abstractmethod
    def _scores_under(self, intervention: Callable[[int], Intervention]) -> Scores:
        """Return the scores of all items under an intervention: (N, M + 1), as in `Subject.scores`.

        Args:
            intervention: function from the index of a batch to the edits for that batch.
        """

    @abstractmethod
    def _new_rows(
        self, batch: int, heads: Sequence[Head], rows: Mapping[int, NDArray[np.float32]]
    ) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Yield the flat position and the new attention rows, (heads, T), of each pronoun token in a batch."""

    @abstractmethod
    def _flat_edges(self, edges: Edges) -> Callable[[int], dict[Head, FlatEdges]]:
        """Return a function from the index of a batch to its attention edges, as flat positions keyed by head."""

    @abstractmethod
    def _mean_output(self) -> dict[int, Tensor]:
        """Return the heads' mean outputs over the tokens of all items, (H, D) for each layer with attention."""

    @abstractmethod
    def _resampled(self, heads: Sequence[Head]) -> Callable[[int], dict[Head, Tensor]]:
        """Return a function from the index of a batch to each head's replacement output in that batch, (B, T, D).

        The replacement is the head's output for the item's partner (`resampling_partners`).
        """


def stretched(outputs: Tensor, count: int) -> Tensor:
    """Return outputs (..., S, D) cut to `count` positions, or padded to `count` by repeating the last position."""
    return outputs[..., torch.arange(count, device=outputs.device).clamp(max=outputs.shape[-2] - 1), :]


class PackedSubject(EditedSubject):
    """`Subject` that wraps a `PronounModel` in evaluation mode, with the items packed into batches."""

    def __init__(self, model: PronounModel, data: EncodedSplit, batching: Batching) -> None:
        self.examples, self.tokens = data.examples, data.tokens
        self._model, self._answers = model, data.max_candidates + 1
        self._layers = [block.attention for block in model.encoder.blocks if isinstance(block, Block)]
        self._device = model.device
        self._batches = [
            batch.to(self._device) for batch in evaluation_batches(data, batching, slots_of(model.prediction))
        ]
        # Index of each item's batch, and flat position of the item's first token in it.
        self._batch_and_start: dict[int, tuple[int, int]] = {}
        for number, batch in enumerate(self._batches):
            for item, begin in zip(batch.items.tolist(), batch.item_starts.tolist(), strict=True):
                self._batch_and_start[item] = (number, begin)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self._layers), self._layers[0].heads

    def maps(self) -> Iterator[tuple[int, NDArray[np.float32]]]:
        for batch, recorders in self._recorded_batches():
            weights = torch.stack([recorder.recorded_weights for recorder in recorders], dim=1).float().cpu().numpy()
            length = batch.ids.shape[1]
            for item in batch.items.tolist():
                row, column = divmod(self._batch_and_start[item][1], length)
                own = slice(column, column + len(self.tokens[item].ids))
                yield item, weights[row, :, :, own, own]

    def _new_rows(
        self, batch: int, heads: Sequence[Head], rows: Mapping[int, NDArray[np.float32]]
    ) -> Iterator[tuple[int, NDArray[np.float32]]]:
        layer, head = [one.layer for one in heads], [one.head for one in heads]
        length = self._batches[batch].ids.shape[1]
        for item in self._batches[batch].items.tolist():
            if item in rows:
                begin, patch = self._batch_and_start[item][1], rows[item][layer, head]
                tokens = self.tokens[item].covering(self.examples[item].pronoun)
                whole = np.zeros((len(heads), len(tokens), length), dtype=np.float32)
                whole[..., begin % length : begin % length + patch.shape[-1]] = patch
                yield from ((begin + token, whole[:, number]) for number, token in enumerate(tokens))

    def _scores_under(self, intervention: Callable[[int], Intervention]) -> Scores:
        all_scores = np.empty((len(self.tokens), self._answers))
        for number, batch in enumerate(self._batches):
            with torch.inference_mode(), intervene(self._model.encoder, intervention(number)):
                scores = self._model.prediction_head.scores(self._model(batch), batch).double().cpu().numpy()
            all_scores[batch.items.cpu().numpy()] = scores
        return all_scores

    def _recorded_batches(self) -> Iterator[tuple[Batch, list[ActivationRecorder]]]:
        for batch in self._batches:
            recorders = {layer: ActivationRecorder() for layer in range(len(self._layers))}
            with torch.inference_mode(), intervene(self._model.encoder, recorders):
                self._model(batch)
            yield batch, list(recorders.values())

    def _flat_edges(self, edges: Edges) -> Callable[[int], dict[Head, FlatEdges]]:
        batch_of, begin = np.array([self._batch_and_start[item] for item in range(len(self.tokens))]).T

        def of_batch(batch: int) -> dict[Head, FlatEdges]:
            inside = batch_of[edges.item] == batch
            item, layer, head, query, key = (column[inside] for column in edges)
            pairs: dict[Head, FlatEdges] = {}
            for chosen in sorted(set(map(Head, layer.tolist(), head.tolist()))):
                in_head = (layer == chosen.layer) & (head == chosen.head)
                queries, keys = (
                    torch.from_numpy(begin[item[in_head]] + ends[in_head]).to(self._device) for ends in (query, key)
                )
                pairs[chosen] = (queries, keys)
            return pairs

        return of_batch

    def _mean_output(self) -> dict[int, Tensor]:
        sums: list[Tensor] = []
        count = 0
        for batch, recorders in self._recorded_batches():
            real = batch.segments >= 0
            count += int(real.sum())
            of_layers = [recorder.recorded_mixed.transpose(1, 2)[real].sum(dim=0) for recorder in recorders]
            sums.append(torch.stack(of_layers))
        return dict(enumerate(sum(sums[1:], sums[0]) / count))

    def _resampled(self, heads: Sequence[Head]) -> Callable[[int], dict[Head, Tensor]]:
        outputs_of: dict[int, Tensor] = {}
        for batch, recorders in self._recorded_batches():
            flat = torch.stack([recorders[one.layer].recorded_mixed[:, one.head].flatten(0, 1) for one in heads])
            for item in batch.items.tolist():
                begin = self._batch_and_start[item][1]
                outputs_of[item] = flat[:, begin : begin + len(self.tokens[item].ids)]
        partners = resampling_partners(self.examples, self.tokens)

        def of_batch(number: int) -> dict[Head, Tensor]:
            batch = self._batches[number]
            rows, length = batch.ids.shape
            any_item = outputs_of[int(batch.items[0])]
            replacement = any_item.new_zeros(len(heads), rows * length, any_item.shape[-1])
            for item in batch.items.tolist():
                begin, count = self._batch_and_start[item][1], len(self.tokens[item].ids)
                replacement[:, begin : begin + count] = stretched(outputs_of[partners[item]], count)
            shaped = replacement.view(len(heads), rows, length, -1)
            return {one: shaped[place] for place, one in enumerate(heads)}

        return of_batch


def resampling_partners(examples: Sequence[Example], tokens: Sequence[TokenizedText]) -> dict[int, int]:
    """Return each item's partner, whose outputs replace those of the ablated heads in the ablation mode "resample".

    It is the next sentence of the minimal pair if that has as many tokens, otherwise the next item in the same
    language.
    """
    languages = indices_by(example.language for example in examples)
    partners = {one: other for items in languages.values() for one, other in cyclic_pairs(items)}
    minimal_pairs = next_in_minimal_pair(examples).items()
    partners |= {one: other for one, other in minimal_pairs if len(tokens[one].ids) == len(tokens[other].ids)}
    return partners

"""Models under test (`Subject`) in causal tests, whose answers to N items can be computed with edited attention.

M is the largest number of candidates of an item, T the number of tokens of an item, S that of a row of a batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
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
    """Interface of a model under test in causal tests, with the N items on which it is tested.

    Token indices count from 0 in each item's text. Each method that returns `Scores`, (N, M + 1), runs the model on all
    items, and leaves the model unchanged. M is the largest number of candidates of an item; the last column holds the
    scores of the answer "none of them".
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
        """Return the scores of all answers without intervention, (N, M + 1); "none of them" is last."""

    def ablated(self, heads: Sequence[Head], mode: str) -> Scores:
        """Return the scores (N, M + 1) if the given heads are ablated at every token, in one of `ABLATION_MODES`.

        Raises:
            UserError: `mode` is not one of `ABLATION_MODES`.
        """

    def knocked_out(self, edges: Edges) -> Scores:
        """Return the scores (N, M + 1) if the given attention edges are masked before the softmax."""

    def value_zeroed(self, edges: Edges) -> Scores:
        """Return the scores (N, M + 1) if values along the given edges are zeroed, and attention weights unchanged."""

    def patched(self, heads: Sequence[Head], rows: Mapping[int, NDArray[np.float32]]) -> Scores:
        """Return the scores (N, M + 1) if the pronoun's attention rows are replaced in the given heads.

        `rows` maps the index of a patched item to the new rows of its pronoun's Q tokens, (L, H, Q, T).
        """


ABLATION_MODES = ("zero", "mean", "resample", "uniform")
"""Replacements of an ablated head's output.

zero: zeros.
mean: the head's mean output over all tokens of all items.
resample: the head's output at the same position of a partner: the minimal pair's next sentence if it has as many
tokens, otherwise the next item of the language. Beyond the end of a shorter partner, its last output is repeated.
uniform: the mean of the values of all tokens to which the query may attend.
"""


class PlacedText(NamedTuple):
    """Text from which a model answers an item, and its position in a batch; an item may have more than one text."""

    item: int  # index of the item
    rank: int  # index of the text among the item's texts
    start: int  # flat position, row * S + token, of the text's first token in the batch
    tokens: int  # number of tokens of the text
    alignment: Sequence[Sequence[int]]  # for each of the item's T tokens, its indices in the text

    def shares(self) -> NDArray[np.float32]:
        """Return a matrix (T, tokens of this text) that maps weights on the T tokens of the item to this text.

        Each row sums to 1: a token's weight is divided equally among the tokens of this text aligned with it.
        """
        shares = np.zeros((len(self.alignment), self.tokens), dtype=np.float32)
        for token, aligned in enumerate(self.alignment):
            shares[token, list(aligned)] = 1 / len(aligned)
        return shares


class BatchLayout(NamedTuple):
    """Layout of a batch: number of rows, number of tokens per row (S), and the texts in the rows."""

    rows: int
    length: int
    texts: Sequence[PlacedText]


class EditedSubject(ABC):
    """Base class of models under test (`Subject`) whose items are packed into batches, with indices from 0."""

    examples: Sequence[Example]
    tokens: Sequence[TokenizedText]
    _device: torch.device
    _layouts: Sequence[BatchLayout]
    _is_decoder: bool = False

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
            new = list(self._new_rows(self._layouts[batch], heads, rows))
            if not new:
                return {}
            positions = torch.tensor([position for position, _ in new], device=self._device)
            weights = torch.from_numpy(np.stack([row for _, row in new], axis=1)).to(self._device)
            return patch_rows({one: (positions, weights[number]) for number, one in enumerate(heads)})

        return self._scores_under(patch)

    @abstractmethod
    def _scores_under(self, intervention: Callable[[int], Intervention]) -> Scores:
        """Return the scores of all items, (N, M + 1), if `intervention(index)` edits the batch with each index."""

    @abstractmethod
    def _run(self, batch: int, intervention: Intervention) -> None:
        """Run one forward pass on the batch with this index, under an intervention that records activations."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Return the number of layers and heads."""

    def _recorded(self) -> Iterator[tuple[BatchLayout, dict[int, ActivationRecorder]]]:
        """Yield each batch's layout, and its recorded activations keyed by layer (only layers with attention)."""
        for number, batch in enumerate(self._layouts):
            recorders = {layer: ActivationRecorder() for layer in range(self.shape[0])}
            self._run(number, recorders)
            yield batch, {layer: each for layer, each in recorders.items() if hasattr(each, "recorded_mixed")}

    def _new_rows(
        self, batch: BatchLayout, heads: Sequence[Head], rows: Mapping[int, NDArray[np.float32]]
    ) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Yield the position in the flattened batch and the new attention rows, (heads, S), of each pronoun token."""
        layer, head = [one.layer for one in heads], [one.head for one in heads]
        for text in batch.texts:
            if text.item not in rows:
                continue
            pronoun = self.tokens[text.item].covering(self.examples[text.item].pronoun)
            given = rows[text.item][layer, head] @ text.shares()  # (heads, Q, tokens)
            column = text.start % batch.length
            for position in sorted({position for token in pronoun for position in text.alignment[token]}):
                standing = [number for number, token in enumerate(pronoun) if position in text.alignment[token]]
                own = given[:, standing].mean(axis=1)
                whole = np.zeros((len(heads), batch.length), dtype=np.float32)
                whole[:, column : column + text.tokens] = _seen_from(position, own) if self._is_decoder else own
                yield text.start + position, whole

    def _flat_edges(self, edges: Edges) -> Callable[[int], dict[Head, FlatEdges]]:
        """Return a function from the index of a batch to its attention edges, as flat positions keyed by head.

        An edge in the item becomes several edges in the text: from each token aligned with its query token to each
        token aligned with its key token.
        """
        of_item: defaultdict[int, list[tuple[int, int, int, int]]] = defaultdict(list)
        for item, layer, head, query, key in zip(*(column.tolist() for column in edges), strict=True):
            of_item[item].append((layer, head, query, key))

        def of_batch(batch: int) -> dict[Head, FlatEdges]:
            pairs: defaultdict[Head, list[tuple[int, int]]] = defaultdict(list)
            for text in self._layouts[batch].texts:
                for layer, head, query, key in of_item.get(text.item, ()):
                    ends = product(text.alignment[query], text.alignment[key])
                    pairs[Head(layer, head)] += ((text.start + first, text.start + second) for first, second in ends)
            columns = {head: torch.tensor(listed, device=self._device).T for head, listed in pairs.items()}
            return {head: (queries, keys) for head, (queries, keys) in columns.items()}

        return of_batch

    @cached_property
    def _means(self) -> dict[Head, Tensor]:
        """Return each head's mean output, (D,), over the tokens of all texts."""
        totals: dict[int, Tensor] = {}
        count = 0
        for batch, recorders in self._recorded():
            tokens = torch.cat([torch.arange(text.start, text.start + text.tokens) for text in batch.texts])
            count += len(tokens)
            for layer, recorder in recorders.items():
                own = recorder.recorded_mixed.transpose(1, 2).flatten(0, 1)[tokens.to(self._device)].sum(dim=0)
                totals[layer] = totals[layer] + own if layer in totals else own
        means = {layer: total / count for layer, total in totals.items()}
        return {Head(layer, head): mean for layer, of_heads in means.items() for head, mean in enumerate(of_heads)}

    def _resampled(self, heads: Sequence[Head]) -> Callable[[int], dict[Head, Tensor]]:
        """Return a function from the index of a batch to each head's outputs for the items' partners, (B, S, D)."""
        outputs: defaultdict[int, dict[int, Tensor]] = defaultdict(dict)  # (heads, tokens, D) by item and by rank
        for batch, recorders in self._recorded():
            flat = torch.stack([recorders[one.layer].recorded_mixed[:, one.head].flatten(0, 1) for one in heads])
            for text in batch.texts:
                outputs[text.item][text.rank] = flat[:, text.start : text.start + text.tokens]
        partners = resampling_partners(self.examples, self.tokens)

        def of_batch(number: int) -> dict[Head, Tensor]:
            batch = self._layouts[number]
            any_text = outputs[batch.texts[0].item][batch.texts[0].rank]
            replaced = any_text.new_zeros(len(heads), batch.rows * batch.length, any_text.shape[-1])
            for text in batch.texts:
                of_partner = outputs[partners[text.item]]
                other = of_partner[min(text.rank, len(of_partner) - 1)]  # the partner may have fewer texts
                replaced[:, text.start : text.start + text.tokens] = stretched(other, text.tokens)
            return dict(zip(heads, replaced.view(len(heads), batch.rows, batch.length, -1), strict=True))

        return of_batch


def stretched(outputs: Tensor, count: int) -> Tensor:
    """Return outputs (..., S, D) cut to `count` positions, or padded to `count` by repeating the last position."""
    return outputs[..., torch.arange(count, device=outputs.device).clamp(max=outputs.shape[-2] - 1), :]


def _seen_from(position: int, rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Set the weights on tokens after `position`, which a decoder cannot attend to, to 0; keep the sum of each row.

    A row without remaining weight becomes all 0.
    """
    whole, seen = rows.sum(axis=-1, keepdims=True), rows.copy()
    seen[..., position + 1 :] = 0
    left = seen.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(seen * whole, left, out=seen, where=left > 0))


class PackedSubject(EditedSubject):
    """Model under test (`Subject`) that wraps a `PronounModel` in evaluation mode."""

    def __init__(self, model: PronounModel, data: EncodedSplit, batching: Batching) -> None:
        self.examples, self.tokens = data.examples, data.tokens
        self._model, self._answers = model, data.max_candidates + 1
        self._device = model.device
        self._batches = [
            batch.to(self._device) for batch in evaluation_batches(data, batching, slots_of(model.prediction))
        ]
        self._layouts = [
            BatchLayout(len(batch.ids), batch.ids.shape[1], list(self._texts_in(batch))) for batch in self._batches
        ]

    def _texts_in(self, batch: Batch) -> Iterator[PlacedText]:
        for item, start in zip(batch.items.tolist(), batch.item_starts.tolist(), strict=True):
            count = len(self.tokens[item].ids)
            yield PlacedText(item, 0, start, count, [(token,) for token in range(count)])

    @property
    def shape(self) -> tuple[int, int]:
        layers = self._model.encoder.layers
        return len(layers), layers[0].attention.heads

    def maps(self) -> Iterator[tuple[int, NDArray[np.float32]]]:
        for batch, recorders in self._recorded():
            layers = [recorder.recorded_weights for recorder in recorders.values()]
            weights = torch.stack(layers, dim=1).float().cpu().numpy()
            for text in batch.texts:
                row, column = divmod(text.start, batch.length)
                own = slice(column, column + text.tokens)
                yield text.item, weights[row, :, :, own, own]

    def _scores_under(self, intervention: Callable[[int], Intervention]) -> Scores:
        all_scores = np.empty((len(self.tokens), self._answers))
        for number, batch in enumerate(self._batches):
            with torch.inference_mode(), intervene(self._model.encoder, intervention(number)):
                scores = self._model.prediction_head.scores(self._model(batch), batch).double().cpu().numpy()
            all_scores[batch.items.cpu().numpy()] = scores
        return all_scores

    def _run(self, batch: int, intervention: Intervention) -> None:
        with torch.inference_mode(), intervene(self._model.encoder, intervention):
            self._model(self._batches[batch])


def resampling_partners(examples: Sequence[Example], tokens: Sequence[TokenizedText]) -> dict[int, int]:
    """Return the index of each item's partner, from which the ablation mode "resample" takes the heads' outputs.

    The partner is the next sentence of the minimal pair if it has as many tokens, otherwise the next item in the same
    language.
    """
    languages = indices_by(example.language for example in examples)
    partners = {one: other for items in languages.values() for one, other in cyclic_pairs(items)}
    minimal_pairs = next_in_minimal_pair(examples).items()
    partners |= {one: other for one, other in minimal_pairs if len(tokens[one].ids) == len(tokens[other].ids)}
    return partners

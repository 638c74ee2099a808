"""Batches for training and evaluation, and random masking of words.

A row of a batch holds one item, or several packed items. The seed determines the order of the items in training.

Axes: N items, R rows per batch, T tokens per row, Q minimal pairs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from anaphora.base.batch import Batch, EncoderInput
from anaphora.base.errors import UserError
from anaphora.data.batches.encoded import EncodedSplit, Indices, RaggedArray
from anaphora.data.example import Example
from anaphora.data.grouping import indices_by
from anaphora.data.tokens.tokenizer import TokenizedText, Tokenizer
from anaphora.settings.training import Batching
from anaphora.settings.vocabulary import MASK, SPECIAL_TOKENS


def plan_batches(
    lengths: Indices, batching: Batching, order: Indices, units: Sequence[Sequence[int]] | None = None
) -> list[list[list[int]]]:
    """Assign items to rows and rows to batches.

    A unit is a list of items that share a batch and, if rows are packed, a row.

    Args:
        lengths: (N,) number of tokens of each item.
        order: indices of the units to assign. The first `batching.window` units are sorted by length and assigned, then
            the next `batching.window` units, and so on.
        units: item indices of each unit; None if each item is a unit.

    Returns:
        Batches as lists of rows, which are lists of item indices; each item of the units in `order` occurs once.
    """
    windows = [order[start : start + batching.window] for start in range(0, len(order), batching.window)]
    sizes = lengths
    if units is not None:
        size = np.sum if batching.kind == "packed" else np.max
        sizes = np.array([size(lengths[list(unit)]) for unit in units], dtype=np.int64)
    if batching.kind == "packed":
        packed = [row for window in windows for row in _pack_rows(window, sizes, batching.row_tokens)]
        longest = [int(sizes[row].sum()) for row in packed]
        rows = [[row if units is None else [item for unit in row for item in units[unit]]] for row in packed]
    else:
        by_length = [window[np.argsort(sizes[window], kind="stable")] for window in windows]
        # Alternate the direction, so that no batch has one window's longest and the next one's shortest items.
        sequence = [int(unit) for number, window in enumerate(by_length) for unit in window[:: 1 - 2 * (number % 2)]]
        longest = [int(sizes[unit]) for unit in sequence]
        rows = [[[item] for item in ((unit,) if units is None else units[unit])] for unit in sequence]
    batches: list[list[list[int]]] = []
    width = 0
    for unit_rows, tokens in zip(rows, longest, strict=True):
        width = max(width, tokens)
        if not batches or width * (len(batches[-1]) + len(unit_rows)) > batching.tokens:
            batches.append([])
            width = tokens
        batches[-1] += unit_rows
    return batches


def _pack_rows(items: Indices, lengths: Indices, capacity: int) -> list[list[int]]:
    """Pack items into rows of at most `capacity` tokens, by best-fit decreasing bin packing.

    An item of more than `capacity` tokens gets a row of its own.
    """
    rows: list[list[int]] = []
    with_room: list[tuple[int, int]] = []  # (free tokens, row), sorted
    for item in items[np.argsort(-lengths[items], kind="stable")]:
        length = int(lengths[item])
        fit = bisect_left(with_room, (length, -1))
        if fit == len(with_room):
            free, row = capacity, len(rows)
            rows.append([])
        else:
            free, row = with_room.pop(fit)
        rows[row].append(int(item))
        if free > length:
            remaining = (free - length, row)
            with_room.insert(bisect_left(with_room, remaining), remaining)
    return rows


class MinimalPairs:
    """Minimal pairs of a split: pairs of items with the same candidates in the same order, but different antecedents.

    Attributes:
        batch_units: lists of the indices of items that must share a batch: all items with the same `minimal_pair` and
            the same candidates, or one item without `minimal_pair`.
        pairs: (Q, 2) indices of the two items of each minimal pair.
    """

    def __init__(self, data: EncodedSplit) -> None:
        self.batch_units = list(indices_by(data.pair_sets.tolist()).values())
        within = [pair for unit in self.batch_units for pair in combinations(unit, 2)]
        pairs = np.array(within, dtype=np.int64).reshape(-1, 2)
        self.pairs: Indices = pairs[(data.gold[pairs[:, 0]] != data.gold[pairs[:, 1]]).any(axis=1)]
        # The index by first item lets a batch search only the pairs of its own items.
        firsts = self.pairs[:, 0]
        counts = np.bincount(firsts, minlength=len(data))
        self._pairs_of = RaggedArray(firsts.argsort(kind="stable"), counts)

    def pairs_among(self, items: Indices) -> Indices:
        """Return the minimal pairs among distinct `items`, as indices into `items`: (Q, 2)."""
        pairs = self.pairs[np.sort(self._pairs_of.take(items)[0])]
        order = items.argsort()
        places = np.minimum(items[order].searchsorted(pairs), len(items) - 1)
        indices: Indices = order[places]
        among: Indices = indices[(items[indices] == pairs).all(axis=1)]
        return among


class _Epoch(NamedTuple):
    number: int
    first_step: int
    batches: list[list[list[int]]]  # item indices of each row

    @property
    def end(self) -> int:
        return self.first_step + len(self.batches)


class TrainingBatches:
    """Training batches by step; the batch of a step depends only on the seed and the step, not on earlier batches.

    In an epoch, all items occur once, in random order. The first epochs may be limited to the groups with the shortest
    items: `batching.shortest_first` lists the share of the groups for each of these epochs.

    Args:
        slots: number of slots (numbers that mark the candidates in the input, assigned at random in each item); 0 if
            candidates are not marked.
        masked_share: share of the words that are masked, from 0 to 1.
        minimal_pairs: minimal pairs whose items share a batch; None to ignore minimal pairs.
        own_share: share of the unmasked words, from 0 to 1, whose tokens are predicted in addition to the masked ones.

    Raises:
        UserError: the split is empty.
    """

    def __init__(
        self,
        data: EncodedSplit,
        batching: Batching,
        seed: int,
        slots: int,
        masked_share: float,
        minimal_pairs: MinimalPairs | None = None,
        own_share: float = 0.0,
    ) -> None:
        if not len(data):
            raise UserError("the training split is empty")
        self.data, self.batching, self.seed = data, batching, seed
        self.slots, self.masked_share, self.own_share = slots, masked_share, own_share
        self.minimal_pairs = minimal_pairs
        self._length_ranks = length_ranks(data) if batching.shortest_first else np.zeros(0)
        self._latest: _Epoch | None = None

    def between(self, first: int, last: int) -> Iterator[Batch]:
        """Yield the batches of steps first, first + 1, ..., last - 1."""
        # A call usually continues where the last one ended; earlier epochs then need not be planned again.
        epoch = self._latest
        if epoch is None or first < epoch.first_step:
            epoch = self._plan(0, 0)
        for step in range(first, last):
            while epoch.end <= step:
                epoch = self._plan(epoch.number + 1, epoch.end)
            yield self._batch(epoch.batches[step - epoch.first_step], step)

    def _plan(self, epoch: int, first_step: int) -> _Epoch:
        draw = np.random.default_rng([self.seed, epoch, 1])
        units = None if self.minimal_pairs is None else self.minimal_pairs.batch_units
        order = draw.permutation(len(self.data) if units is None else len(units))
        if epoch < len(self.batching.shortest_first):
            first_items = order if units is None else np.array([units[unit][0] for unit in order])
            order = order[self._length_ranks[first_items] < self.batching.shortest_first[epoch]]
        batches = plan_batches(self.data.ids.lengths, self.batching, order, units)
        # The rows of a window are sorted by length; batches are shuffled, so that training does not follow this order.
        self._latest = _Epoch(epoch, first_step, [batches[number] for number in draw.permutation(len(batches))])
        return self._latest

    def _batch(self, rows: list[list[int]], step: int) -> Batch:
        draw = np.random.default_rng([self.seed, step, 2])
        batch = self.data.batch(rows, self.slots, draw if self.slots else None)
        if self.minimal_pairs is not None:
            batch = replace(batch, minimal_pairs=torch.from_numpy(self.minimal_pairs.pairs_among(batch.items.numpy())))
        if self.masked_share:
            batch = mask_words(batch, self.masked_share, self.data.vocabulary, draw)
        return draw_own_words(batch, self.own_share, draw) if self.own_share else batch


def length_ranks(data: EncodedSplit) -> NDArray[np.float64]:
    """Return the length rank of each item's group, as the share of groups that are shorter: (N,) in [0, 1).

    Only groups of the same language and cue type (such as causality) are compared. The length of a group is the mean
    length of its items in tokens. All items of a group have the same rank, so that an epoch of short items contains
    whole groups. An item without a group counts as a group of one item.
    """
    means = np.bincount(data.groups, data.ids.lengths) / np.bincount(data.groups)
    cells = data.cells[np.unique(data.groups, return_index=True)[1]]  # of the first item of each group
    sizes = np.bincount(cells)
    order = np.lexsort((means, cells))
    ranks = np.empty(len(means))
    ranks[order] = np.arange(len(means)) - (sizes.cumsum() - sizes)[cells[order]]
    shares: NDArray[np.float64] = (ranks / sizes[cells])[data.groups]
    return shares


def evaluation_batches(data: EncodedSplit, batching: Batching, slots: int) -> Iterator[Batch]:
    """Yield batches of items of similar length; every item occurs once."""
    order = np.argsort(data.ids.lengths, kind="stable")
    for rows in plan_batches(data.ids.lengths, batching, order):
        yield data.batch(rows, slots)


def single_batch(example: Example, tokenizer: Tokenizer, slots: int = 0) -> tuple[Batch, TokenizedText]:
    """Return a batch that consists of one example, and the example's tokens."""
    data = EncodedSplit([example], tokenizer)
    return data.batch([[0]], slots), data.tokens[0]


def encode_plain_text(text: str, tokenizer: Tokenizer) -> tuple[EncoderInput, TokenizedText]:
    """Encode a text without a queried pronoun; return the encoder input, a single row, and the text's tokens."""
    tokens = tokenizer.encode(text)
    ids = torch.tensor([tokens.ids])
    return EncoderInput(ids, torch.arange(ids.shape[1]).unsqueeze(0), torch.zeros_like(ids)), tokens


def mask_words(batch: Batch, share: float, vocabulary: int, draw: np.random.Generator) -> Batch:
    """Mask words with probability `share` for a masked-language-model loss: 80% [MASK], 10% random, 10% unchanged.

    After Devlin et al. 2019, section 3.1, with whole-word masking. Random tokens are drawn for each subword. Special
    tokens, padding, unknown words and the queried pronouns are never masked.
    """
    ids = batch.ids.flatten().numpy()
    word_of, chosen = _drawn_words(batch, share, draw)
    fate = draw.random(len(chosen))
    masked = np.flatnonzero(chosen[word_of])
    fates = fate[word_of[masked]]
    random_tokens = draw.integers(len(SPECIAL_TOKENS), vocabulary, len(masked))
    inputs = ids.copy()
    inputs[masked] = np.where(fates < 0.8, MASK, np.where(fates < 0.9, random_tokens, ids[masked]))
    return replace(batch, inputs=torch.from_numpy(inputs).view_as(batch.ids), masked_positions=torch.from_numpy(masked))


def draw_own_words(batch: Batch, share: float, draw: np.random.Generator) -> Batch:
    """Return a copy of the batch with `own_positions`, positions of unmasked tokens to predict, drawn at random.

    Words are drawn with probability `share`, all subwords together. Masked words, special tokens, padding, unknown
    words and the queried pronouns are never drawn.
    """
    word_of, chosen = _drawn_words(batch, share, draw)
    chosen[word_of[batch.masked_positions.numpy()]] = False
    return replace(batch, own_positions=torch.from_numpy(np.flatnonzero(chosen[word_of])))


def _drawn_words(batch: Batch, share: float, draw: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the index of each token's word in a batch, (R * T,), and whether each of the batch's words is drawn.

    Special tokens, unknown words and queried pronouns are never drawn.
    """
    ids, words = batch.ids.flatten().numpy(), batch.words.flatten().numpy()
    begins = np.ones(len(words), dtype=np.bool_)
    begins[1:] = words[1:] != words[:-1]  # [CLS], which is no word, separates two sentences
    word_of = begins.cumsum() - 1
    free = np.ones(int(begins.sum()), dtype=np.bool_)
    free[word_of[(ids < len(SPECIAL_TOKENS)) | (words < 0)]] = False
    free[word_of[batch.query_positions.numpy()]] = False
    return word_of, free & (draw.random(len(free)) < share)


def masked_for_evaluation(batches: Iterable[Batch], share: float, vocabulary: int) -> Iterator[Batch]:
    """Yield batches masked by `mask_words` with fixed seeds, so that evaluations are comparable."""
    for number, batch in enumerate(batches):
        yield mask_words(batch, share, vocabulary, np.random.default_rng([number, 4]))

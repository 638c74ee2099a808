"""Batches of examples as packed rows or length buckets, in an order that depends on (seed, epoch) only.

N items, T tokens per row, M candidates at most.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import torch
from numpy.typing import NDArray

from anaphora.base.batch import Batch, EncoderInput
from anaphora.base.errors import UserError
from anaphora.data.batches.encoded import EncodedSplit, Indices, RaggedArray
from anaphora.data.batches.masking import draw_own_words, mask_words
from anaphora.data.example import Example
from anaphora.data.tokens.tokenizer import TokenizedText, Tokenizer
from anaphora.settings.batching import Batching


def plan_batches(
    lengths: Indices, batching: Batching, order: Indices, units: Sequence[Sequence[int]] | None = None
) -> list[list[list[int]]]:
    """Assign items to rows and rows to batches.

    Args:
        lengths: tokens of every item.
        batching: packed rows, or one sentence a row in length buckets.
        order: the units in the order in which they are taken.
        units: the items of each; they share a batch, and a row where rows are packed. Without them an item is a unit.

    Returns:
        batches of rows of items; every item of `order` once.
    """
    windows = [order[start : start + batching.window] for start in range(0, len(order), batching.window)]
    if batching.kind == "packed":
        sizes = lengths if units is None else np.array([lengths[list(unit)].sum() for unit in units], dtype=np.int64)
        packed = [row for window in windows for row in _pack_rows(window, sizes, batching.row_tokens)]
        longest = [int(sizes[row].sum()) for row in packed]
        rows = [[row if units is None else [item for unit in row for item in units[unit]]] for row in packed]
    else:
        sizes = lengths if units is None else np.array([lengths[list(unit)].max() for unit in units], dtype=np.int64)
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
    """Pack rows of at most `capacity` tokens by best fit, longest first; a longer sentence gets its own row."""
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
    """The minimal pairs of a split: the same candidates in the same order, but another cue and another answer.

    Attributes:
        batch_units: the items in lists that share a batch; the items of a minimal pair in one list, the others alone.
        pairs: (Q, 2) two items of a minimal pair with different answers.
    """

    def __init__(self, data: EncodedSplit) -> None:
        sets: dict[object, list[int]] = {}
        for number, example in enumerate(data.examples):
            # If candidates differ in wording, answers cannot be compared one by one.
            names = tuple(example.words(index).lower() for index in range(len(example.candidates)))
            sets.setdefault((example.minimal_pair, names) if example.minimal_pair else number, []).append(number)
        self.batch_units = list(sets.values())
        pairs = (pair for unit in self.batch_units for pair in combinations(unit, 2))
        differing = [(first, second) for first, second in pairs if (data.gold[first] != data.gold[second]).any()]
        self.pairs: Indices = np.array(differing, dtype=np.int64).reshape(-1, 2)
        # The pairs that each item is the first of: a batch looks at those of its own items alone.
        firsts = self.pairs[:, 0]
        counts = np.bincount(firsts, minlength=len(data.examples))
        self._pairs_of = RaggedArray.joined(firsts.argsort(kind="stable"), counts)

    def pairs_among(self, items: Indices) -> Indices:
        """Return the minimal pairs among some different items, as indices into `items`: (Q, 2)."""
        pairs = self.pairs[np.sort(self._pairs_of.take(items)[0])]
        order = items.argsort()
        places = np.minimum(items[order].searchsorted(pairs), len(items) - 1)
        indices: Indices = order[places]
        among: Indices = indices[(items[indices] == pairs).all(axis=1)]
        return among


@dataclass(frozen=True)
class _Epoch:
    """The plan of an epoch: its number, its first step, and the rows of items of its batches."""

    number: int
    first_step: int
    batches: list[list[list[int]]]

    @property
    def end(self) -> int:
        """Return the first step of the next epoch."""
        return self.first_step + len(self.batches)


class TrainingBatches:
    """The batches of a training run by step number; the batch of a step depends on (seed, step) alone.

    Epochs follow one another without a break: each is a seeded shuffle of all items, planned again. The first ones may
    hold the shortest groups alone (`batching.shortest_first`).
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
        # A round begins where the one before it ended: the epochs before the latest plan need no new plan.
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
        # Within a window rows come longest first; the order of batches must not follow it.
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
    """Return the length rank of each item's group among those of its language and cue: (N,) in [0, 1), shortest 0.

    The length of a group is the mean of its items', so that an epoch of short groups holds quads and octads whole. A
    text is a group by itself.
    """
    groups: dict[object, list[int]] = {}
    for item in range(len(data)):
        groups.setdefault((data.examples[item].group or item) if data.examples else item, []).append(item)
    cells: dict[object, list[list[int]]] = {}
    for items in groups.values():
        first = data.examples[items[0]] if data.examples else None
        cells.setdefault(first and (first.language, first.factors.get("type")), []).append(items)
    ranks = np.zeros(len(data))
    for cell in cells.values():
        cell.sort(key=lambda items: float(data.ids.lengths[items].mean()))
        for rank, items in enumerate(cell):
            ranks[items] = rank / len(cell)
    return ranks


def evaluation_batches(data: EncodedSplit, batching: Batching, slots: int) -> Iterator[Batch]:
    """Yield every item once, sorted by length."""
    order = np.argsort(data.ids.lengths, kind="stable")
    for rows in plan_batches(data.ids.lengths, batching, order):
        yield data.batch(rows, slots)


def single_batch(example: Example, tokenizer: Tokenizer, slots: int = 0) -> tuple[Batch, TokenizedText]:
    """Return a batch of a single example, and its tokens."""
    data = EncodedSplit([example], tokenizer)
    return data.batch([[0]], slots), data.tokens[0]


def encode_plain_text(text: str, tokenizer: Tokenizer) -> tuple[EncoderInput, TokenizedText]:
    """Return a text without a pronoun question, as a single row, and its tokens."""
    tokens = tokenizer.encode(text)
    ids = torch.tensor([tokens.ids])
    return EncoderInput(ids, torch.arange(ids.shape[1]).unsqueeze(0), torch.zeros_like(ids)), tokens

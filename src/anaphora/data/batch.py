"""Examples as packed rows or length buckets, in an order that depends on (seed, epoch) alone.

N items, T tokens a row, M candidates at most.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anaphora.data.example import Example, Span
from anaphora.data.settings import Batching
from anaphora.data.tokenizer import Tokenizer, Tokens
from anaphora.errors import UserError
from anaphora.specials import MASK, PADDING, SPECIALS

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """Rows of packed sentences and what is asked of them; flat positions are row * T + token.

    Attributes:
        inputs: (R, T) what the encoder reads (masked where a masked-language-model loss hides words).
        ids: (R, T) the true tokens.
        places, segments: (R, T) place in the sentence; number of the sentence, -1 for padding.
        words: (R, T) number of the word in the sentence, -1 for [CLS] and padding; the pieces of a word share one.
        slots: (R, T) slot of the candidate that a token belongs to, 0 for none.
        query_positions, query_items: (K,) every pronoun token.
        candidate_positions, candidate_owners: (C,) every candidate token; item * M + candidate.
        present, gold: (N, M) which candidates there are, which are antecedents; of texts, the labels.
        candidate_slots: (N, M).
        masked_positions: (P,) flat positions of hidden words.
        items: (N,) number of each item in its split.
        twins: (Q, 2) two items of the batch that are twins with different answers; none where nobody asks for them.
    """

    inputs: Tensor
    ids: Tensor
    places: Tensor
    segments: Tensor
    words: Tensor
    slots: Tensor
    query_positions: Tensor
    query_items: Tensor
    candidate_positions: Tensor
    candidate_owners: Tensor
    present: Tensor
    gold: Tensor
    candidate_slots: Tensor
    masked_positions: Tensor
    items: Tensor
    twins: Tensor

    @property
    def real_tokens(self) -> int:
        """How many tokens are not padding."""
        return int((self.segments >= 0).sum())

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on another device."""
        return replace(self, **{name: value.to(device, non_blocking=True) for name, value in vars(self).items()})


class Ragged:
    """Lists of different lengths in one flat array."""

    def __init__(self, lists: Sequence[Sequence[int]]) -> None:
        self.lengths: Indices = np.fromiter((len(one) for one in lists), dtype=np.int64, count=len(lists))
        self.starts: Indices = np.concatenate(([0], self.lengths.cumsum()))[:-1]
        self.flat: NDArray[Any] = np.fromiter((value for one in lists for value in one), dtype=np.int64)

    @classmethod
    def joined(cls, flat: NDArray[Any], lengths: Indices) -> Ragged:
        """Lists that stand one after the other in an array already."""
        made = cls(())
        made.flat, made.lengths, made.starts = flat, lengths, lengths.cumsum() - lengths
        return made

    def take(self, chosen: Indices) -> tuple[NDArray[Any], Indices, Indices]:
        """The chosen lists, flattened: values, number of the list among the chosen, place in the list."""
        lengths = self.lengths[chosen]
        owner = np.repeat(np.arange(len(chosen)), lengths)
        within = np.arange(len(owner)) - np.repeat(lengths.cumsum() - lengths, lengths)
        return self.flat[np.repeat(self.starts[chosen], lengths) + within], owner, within


class Encoded:
    """A split as flat arrays: the tokens of every item, and where its pronoun and candidates stand."""

    def __init__(self, examples: Sequence[Example], tokenizer: Tokenizer) -> None:
        self.examples = examples
        self.tokens = tokenizer.encode_batch([example.text for example in examples])
        self.most = max([1, *(len(example.candidates) for example in examples)])
        self.vocabulary = tokenizer.size
        queries, candidates, names = [], [], []
        for number, (example, tokens) in enumerate(zip(examples, self.tokens, strict=True)):
            cover = _Cover(tokens)
            query = cover.of(example.pronoun)
            if not query:
                raise UserError(f"item {number}: no token covers the pronoun {example.pronoun} of {example.text!r}")
            queries.append(query)
            here: dict[int, int] = {}
            for name, mentions in enumerate(example.candidates):
                for span in mentions:
                    for token in cover.of(span):
                        here.setdefault(token, name)
            candidates.append(list(here))
            names.append(list(here.values()))
        self.ids = Ragged([tokens.ids for tokens in self.tokens])
        self.words = Ragged([tokens.words for tokens in self.tokens])
        self.queries = Ragged(queries)
        self.candidates = Ragged(candidates)
        self.names = Ragged(names)
        self.present = np.zeros((len(examples), self.most), dtype=bool)
        self.gold = np.zeros_like(self.present)
        for number, example in enumerate(examples):
            self.present[number, : len(example.candidates)] = True
            self.gold[number, list(example.antecedents)] = True

    def __len__(self) -> int:
        return len(self.ids.lengths)

    def longest(self) -> int:
        """Tokens of the longest text."""
        return int(self.ids.lengths.max(initial=0))

    def batch(self, rows: Sequence[Sequence[int]], slots: int = 0, shuffle: np.random.Generator | None = None) -> Batch:
        """Pack the items of each row one after the other.

        Args:
            rows: the items of each row.
            slots: how many slots there are to mark candidates with; 0 marks none.
            shuffle: draws each item's slots at random, so that a slot says nothing about the order; without it the
                candidates take slots 1, 2, ... in order.
        """
        items = np.fromiter((item for row in rows for item in row), dtype=np.int64)
        lengths = self.ids.lengths[items]
        row_of = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
        ends = lengths.cumsum()
        row_ends = np.fromiter((self.ids.lengths[list(row)].sum() for row in rows), dtype=np.int64, count=len(rows))
        width = int(row_ends.max())
        start = ends - lengths - np.repeat(row_ends.cumsum() - row_ends, [len(row) for row in rows]) + row_of * width

        def empty(fill: int) -> Indices:
            return np.full(len(rows) * width, fill, dtype=np.int64)

        ids, places, segments, words, marked = empty(PADDING), empty(0), empty(-1), empty(-1), empty(0)
        values, owner, within = self.ids.take(items)
        flat = start[owner] + within
        ids[flat], places[flat], segments[flat] = values, within, owner
        words[flat], _, _ = self.words.take(items)
        query, query_items, _ = self.queries.take(items)
        candidate, candidate_items, _ = self.candidates.take(items)
        names, _, _ = self.names.take(items)
        candidate_positions = start[candidate_items] + candidate
        chosen_slots = self._slots(len(items), slots, shuffle)
        if slots:
            marked[candidate_positions] = chosen_slots[candidate_items, names]
        shape = (len(rows), width)
        tokens = torch.from_numpy(ids).view(shape)
        return Batch(
            inputs=tokens,
            ids=tokens,
            places=torch.from_numpy(places).view(shape),
            segments=torch.from_numpy(segments).view(shape),
            words=torch.from_numpy(words).view(shape),
            slots=torch.from_numpy(marked).view(shape),
            query_positions=torch.from_numpy(start[query_items] + query),
            query_items=torch.from_numpy(query_items),
            candidate_positions=torch.from_numpy(candidate_positions),
            candidate_owners=torch.from_numpy(candidate_items * self.most + names),
            present=torch.from_numpy(self.present[items]),
            gold=torch.from_numpy(self.gold[items]),
            candidate_slots=torch.from_numpy(chosen_slots),
            masked_positions=torch.empty(0, dtype=torch.long),
            items=torch.from_numpy(items),
            twins=torch.empty(0, 2, dtype=torch.long),
        )

    def _slots(self, items: int, slots: int, shuffle: np.random.Generator | None) -> Indices:
        if slots and slots < self.most:
            raise UserError(f"task.readout.slots ({slots}) must be at least the {self.most} candidates of an item")
        if not slots or shuffle is None:
            return np.tile(np.arange(1, self.most + 1), (items, 1)) if slots else np.zeros((items, self.most), np.int64)
        return shuffle.random((items, slots)).argsort(axis=1)[:, : self.most] + 1


class _Cover:
    """Which tokens of a text share a character with a span, without reading all of them."""

    def __init__(self, tokens: Tokens) -> None:
        self._spans = tokens.spans
        self._starts: list[int] = []
        self._ends: list[int] = []
        end = 0
        for start, stop in tokens.spans:
            # Spans are in order; a special token is put where the one before it ended, so that the order stays.
            start, end = (start, stop) if start < stop else (end, end)
            self._starts.append(start)
            self._ends.append(end)

    def of(self, span: Span) -> list[int]:
        """The tokens that share a character with a span: `Tokens.covering`, for many spans of one text."""
        run = range(bisect_right(self._ends, span[0]), bisect_left(self._starts, span[1]))
        return [token for token in run if self._spans[token] != (0, 0)]


def hide_words(batch: Batch, share: float, vocabulary: int, draw: np.random.Generator) -> Batch:
    """Hide words for a masked-language-model loss: 80 % [MASK], 10 % random, 10 % kept (Devlin et al. 2019, 3.1).

    A word is hidden with all its pieces (whole-word masking), each replaced on its own. Special tokens, padding,
    unknown words and pronouns are never hidden.
    """
    ids, words = batch.ids.flatten().numpy(), batch.words.flatten().numpy()
    sentences = batch.segments.flatten().numpy()
    begins = np.ones(len(words), dtype=np.bool_)
    begins[1:] = (words[1:] != words[:-1]) | (sentences[1:] != sentences[:-1])
    word_of = begins.cumsum() - 1
    free = np.ones(int(begins.sum()), dtype=np.bool_)
    free[word_of[(ids < len(SPECIALS)) | (words < 0)]] = False
    free[word_of[batch.query_positions.numpy()]] = False
    chosen = free & (draw.random(len(free)) < share)
    fate = draw.random(len(free))
    hidden = np.flatnonzero(chosen[word_of])
    fates = fate[word_of[hidden]]
    random_tokens = draw.integers(len(SPECIALS), vocabulary, len(hidden))
    inputs = ids.copy()
    inputs[hidden] = np.where(fates < 0.8, MASK, np.where(fates < 0.9, random_tokens, ids[hidden]))
    return replace(batch, inputs=torch.from_numpy(inputs).view_as(batch.ids), masked_positions=torch.from_numpy(hidden))


def hidden_alike(batches: Iterable[Batch], share: float, vocabulary: int) -> Iterator[Batch]:
    """Batches whose words are hidden as by `hide_words`, the same ones whoever asks and however often."""
    for number, batch in enumerate(batches):
        yield hide_words(batch, share, vocabulary, np.random.default_rng([number, 4]))


def plan(
    lengths: Indices, chosen: Batching, order: Indices, units: Sequence[Sequence[int]] | None = None
) -> list[list[list[int]]]:
    """Which items share a row and which rows a batch.

    Args:
        lengths: tokens of every item.
        chosen: packed rows, or one sentence a row in length buckets.
        order: the units in the order in which they are taken.
        units: the items of each; they share a batch, and a row where rows are packed. Without them an item is a unit.

    Returns:
        batches of rows of items; every item of `order` once.
    """
    windows = [order[start : start + chosen.window] for start in range(0, len(order), chosen.window)]
    if chosen.kind == "packed":
        sizes = lengths if units is None else np.array([lengths[list(unit)].sum() for unit in units], dtype=np.int64)
        packed = [row for window in windows for row in _pack(window, sizes, chosen.row_tokens)]
        longest = [int(sizes[row].sum()) for row in packed]
        rows = [[row if units is None else [item for unit in row for item in units[unit]]] for row in packed]
    else:
        sizes = lengths if units is None else np.array([lengths[list(unit)].max() for unit in units], dtype=np.int64)
        by_length = [window[np.argsort(sizes[window], kind="stable")] for window in windows]
        # Up and down in turns, so that no batch holds one window's longest and the next one's shortest.
        taken = [int(unit) for number, window in enumerate(by_length) for unit in window[:: 1 - 2 * (number % 2)]]
        longest = [int(sizes[unit]) for unit in taken]
        rows = [[[item] for item in ((unit,) if units is None else units[unit])] for unit in taken]
    batches: list[list[list[int]]] = []
    widest = 0
    for together, tokens in zip(rows, longest, strict=True):
        widest = max(widest, tokens)
        if not batches or widest * (len(batches[-1]) + len(together)) > chosen.tokens:
            batches.append([])
            widest = tokens
        batches[-1] += together
    return batches


def _pack(items: Indices, lengths: Indices, capacity: int) -> list[list[int]]:
    """Best fit, longest first: rows of at most `capacity` tokens (a longer sentence has a row of its own)."""
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
            left = (free - length, row)
            with_room.insert(bisect_left(with_room, left), left)
    return rows


class Twins:
    """Which items of a split are twins: the same candidates in the same order, but another cue and another answer.

    Attributes:
        units: the items in lists that share a batch, twins in one list, the others alone.
        pairs: (Q, 2) each two twins with different answers.
    """

    def __init__(self, data: Encoded) -> None:
        sets: dict[object, list[int]] = {}
        for number, example in enumerate(data.examples):
            # Twins whose candidates are not written alike have no answers that can be compared one by one.
            names = tuple(example.words(index).lower() for index in range(len(example.candidates)))
            sets.setdefault((example.twin, names) if example.twin else number, []).append(number)
        self.units = list(sets.values())
        both = (pair for unit in self.units for pair in combinations(unit, 2))
        found = [(one, other) for one, other in both if (data.gold[one] != data.gold[other]).any()]
        self.pairs: Indices = np.array(found, dtype=np.int64).reshape(-1, 2)

    def among(self, items: Indices) -> Indices:
        """The pairs of twins among some items, by their places there: (Q, 2)."""
        places = np.full(int(max(items.max(initial=0), self.pairs.max(initial=0))) + 1, -1, dtype=np.int64)
        places[items] = np.arange(len(items))
        found: Indices = places[self.pairs]
        return found[(found >= 0).all(axis=1)]


class TrainingBatches:
    """The batches of a training run by step number; what a step holds depends on (seed, step) alone.

    Epochs follow one another without a break: each is a seeded shuffle of all items, planned anew.
    """

    def __init__(
        self,
        data: Encoded,
        chosen: Batching,
        seed: int,
        slots: int,
        hidden_share: float,
        twins: Twins | None = None,
    ) -> None:
        if not len(data):
            raise UserError("the training split is empty")
        self.twins = twins
        self.data, self.chosen, self.seed = data, chosen, seed
        self.slots, self.hidden_share = slots, hidden_share

    def between(self, first: int, last: int) -> Iterator[Batch]:
        """The batches of steps first, first + 1, ..., last - 1."""
        epoch, before = 0, 0
        while before < last:
            batches = self._epoch(epoch)
            for step in range(max(first, before), min(last, before + len(batches))):
                yield self._batch(batches[step - before], step)
            epoch, before = epoch + 1, before + len(batches)

    def _epoch(self, epoch: int) -> list[list[list[int]]]:
        draw = np.random.default_rng([self.seed, epoch, 1])
        units = None if self.twins is None else self.twins.units
        order = draw.permutation(len(self.data) if units is None else len(units))
        batches = plan(self.data.ids.lengths, self.chosen, order, units)
        # Within a window rows come longest first; the order of batches must not follow it.
        return [batches[number] for number in draw.permutation(len(batches))]

    def _batch(self, rows: list[list[int]], step: int) -> Batch:
        draw = np.random.default_rng([self.seed, step, 2])
        batch = self.data.batch(rows, self.slots, draw if self.slots else None)
        if self.twins is not None:
            batch = replace(batch, twins=torch.from_numpy(self.twins.among(batch.items.numpy())))
        return hide_words(batch, self.hidden_share, self.data.vocabulary, draw) if self.hidden_share else batch


def evaluation_batches(data: Encoded, chosen: Batching, slots: int) -> Iterator[Batch]:
    """Every item once, sorted by length."""
    order = np.argsort(data.ids.lengths, kind="stable")
    for rows in plan(data.ids.lengths, chosen, order):
        yield data.batch(rows, slots)


def one(example: Example, tokenizer: Tokenizer, slots: int = 0) -> tuple[Batch, Tokens]:
    """A batch of a single example, and its tokens."""
    data = Encoded([example], tokenizer)
    return data.batch([[0]], slots), data.tokens[0]


def unasked(text: str, tokenizer: Tokenizer) -> tuple[tuple[Tensor, Tensor, Tensor], Tokens]:
    """A text about which nothing is asked: ids, places and segments, each (1, T), and its tokens."""
    tokens = tokenizer.encode(text)
    ids = torch.tensor([tokens.ids])
    return (ids, torch.arange(ids.shape[1]).unsqueeze(0), torch.zeros_like(ids)), tokens

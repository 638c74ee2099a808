"""Splits encoded as flat arrays: token ids, word indices, and token positions of pronouns and candidates."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Sequence
from copy import copy
from itertools import chain
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from anaphora.base.batch import Batch
from anaphora.base.errors import UserError
from anaphora.base.translation import N_
from anaphora.data.example import Example, Span
from anaphora.data.grouping import codes_of
from anaphora.data.tokens.tokenizer import TokenizedText, Tokenizer
from anaphora.settings.vocabulary import PADDING

Indices = NDArray[np.int64]
ENCODED_AT_ONCE = 2048
"""Number of texts tokenized at a time, since tokens as Python objects are a hundred times as large as arrays."""


class RaggedArray:
    """Lists of different lengths, stored in one flat array of integers.

    Attributes:
        flat: the concatenated lists.
        lengths, starts: (N,) length of each list, and its first index in `flat`.
    """

    def __init__(self, flat: NDArray[Any], lengths: Indices) -> None:
        self.flat, self.lengths, self.starts = flat, lengths, lengths.cumsum() - lengths

    @classmethod
    def of_lists(cls, lists: Sequence[Sequence[int]]) -> RaggedArray:
        """Build a ragged array from N lists of integers."""
        lengths = np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))
        return cls(np.fromiter(chain.from_iterable(lists), dtype=np.int32), lengths)

    @classmethod
    def concatenated(cls, arrays: Sequence[RaggedArray]) -> RaggedArray:
        """Build a ragged array with the lists of all `arrays`, in order."""
        if not arrays:
            return cls.of_lists(())
        return cls(
            np.concatenate([array.flat for array in arrays]), np.concatenate([array.lengths for array in arrays])
        )

    def take(self, chosen: Indices) -> tuple[NDArray[Any], Indices, Indices]:
        """Return the concatenated values of the lists with the indices `chosen`.

        Returns:
            Three arrays (V,): the values, the position in `chosen` of each value's list, and the index in that list.
        """
        lengths = self.lengths[chosen]
        owner = np.repeat(np.arange(len(chosen)), lengths)
        within = np.arange(len(owner)) - np.repeat(lengths.cumsum() - lengths, lengths)
        return self.flat[np.repeat(self.starts[chosen], lengths) + within], owner, within


class EncodedSplit:
    """N items of a split as flat arrays: tokens of each item, and positions of its pronoun and up to M candidates.

    Args:
        keeps_tokens: whether to keep each item's `TokenizedText` in `tokens`, which training does not need.

    Attributes:
        ids, words: token ids and word indices of each item.
        queries: positions of the pronoun's tokens in each item.
        candidates, names: positions of candidate tokens in each item, and the candidate index of each of these tokens.
        present, gold: (N, M) whether an item has this candidate, and whether this candidate is an antecedent.
        pair_sets: (N,) integer codes, equal for items with the same `minimal_pair` and the same candidates. An item
            without `minimal_pair` has a unique code.
        groups: (N,) integer codes, equal for items with the same `group`. An item without `group` has a unique code.
        cells: (N,) integer codes, equal for items with the same language and the same type of cue (deciding words).

    Raises:
        UserError: no token covers the pronoun of an item.
    """

    def __init__(self, examples: Sequence[Example], tokenizer: Tokenizer, *, keeps_tokens: bool = True) -> None:
        self.examples = examples
        self.tokens: list[TokenizedText] = []
        self.vocabulary = tokenizer.size
        # The tokens of a random tokenizer depend on the number of texts in a call.
        size = len(examples) if tokenizer.is_random or keeps_tokens else ENCODED_AT_ONCE
        parts = []
        candidates: list[int] = []
        antecedents: list[tuple[int, ...]] = []
        codes = [np.empty((3, 0), dtype=np.int32)]
        known: tuple[dict[Hashable, int], ...] = ({}, {}, {})
        for start in range(0, len(examples), max(1, size)):
            some = examples[start : start + size]
            tokens = tokenizer.encode_batch([example.text for example in some])
            parts.append(self._arrays_of(some, tokens, start))
            candidates += [len(example.candidates) for example in some]
            antecedents += [example.antecedents for example in some]
            labels = zip(*(_labels(number, example) for number, example in enumerate(some, start)), strict=True)
            codes.append(np.array([codes_of(each, seen) for each, seen in zip(labels, known, strict=True)], np.int32))
            if keeps_tokens:
                self.tokens += tokens
        self.ids, self.words, self.queries, self.candidates, self.names = (
            RaggedArray.concatenated([part[number] for part in parts]) for number in range(5)
        )
        self.pair_sets, self.groups, self.cells = np.concatenate(codes, axis=1)
        self.max_candidates = max([1, *candidates])
        self.present = np.arange(self.max_candidates) < np.reshape(candidates, (-1, 1))
        self.gold = np.zeros_like(self.present)
        for number, indices in enumerate(antecedents):
            self.gold[number, list(indices)] = True

    @staticmethod
    def _arrays_of(examples: Sequence[Example], texts: Sequence[TokenizedText], first: int) -> list[RaggedArray]:
        """Return `ids`, `words`, `queries`, `candidates` and `names` of consecutive items from index `first` on."""
        queries, candidates, names = [], [], []
        for number, (example, tokens) in enumerate(zip(examples, texts, strict=True), start=first):
            cover = _SpanCover(tokens)
            query = cover.of(example.pronoun)
            if not query:
                message = N_("item {number}: no token covers the pronoun {pronoun} of {text!r}")
                raise UserError(message, number=number, pronoun=example.pronoun, text=example.text)
            queries.append(query)
            candidate_of: dict[int, int] = {}
            for name, mentions in enumerate(example.candidates):
                for span in mentions:
                    for token in cover.of(span):
                        candidate_of.setdefault(token, name)
            candidates.append(list(candidate_of))
            names.append(list(candidate_of.values()))
        ids, words = [tokens.ids for tokens in texts], [tokens.words for tokens in texts]
        return [
            RaggedArray.of_lists(ids),
            RaggedArray.of_lists(words),
            *map(RaggedArray.of_lists, (queries, candidates, names)),
        ]

    def __len__(self) -> int:
        return len(self.ids.lengths)

    def share_nothing(self) -> None:
        """Set `pair_sets`, `groups` and `cells` for items without minimal pairs and groups, such as texts.

        In `pair_sets` and `groups`, each item gets a code of its own; in `cells`, all items get the same code.
        """
        self.pair_sets = self.groups = np.arange(len(self), dtype=np.int32)
        self.cells = np.zeros_like(self.groups)

    def with_ids(self, ids: Sequence[Sequence[int]]) -> Self:
        """Return a copy with other token ids; word indices and positions stay.

        Raises:
            ValueError: the number of items, or of an item's tokens, differs.
        """
        changed = copy(self)
        changed.ids = RaggedArray.of_lists(ids)
        if not np.array_equal(changed.ids.lengths, self.ids.lengths):
            raise ValueError("ids: every item must keep its number of tokens")
        return changed

    def max_tokens(self) -> int:
        """Return the number of tokens of the longest item."""
        return int(self.ids.lengths.max(initial=0))

    def batch(self, rows: Sequence[Sequence[int]], slots: int = 0, shuffle: np.random.Generator | None = None) -> Batch:
        """Build a batch; the tokens of the items in one row are concatenated.

        Args:
            rows: indices of the items of each row.
            slots: number of slots, the numbers that mark candidates in the input; 0 if candidates are not marked.
            shuffle: random generator that assigns slots to each item's candidates, so that slots do not reveal the
                order of the candidates. If it is None, the candidates get the slots 1, 2, ... in order.

        Raises:
            UserError: an item of the split has more candidates than there are slots.
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

        ids, positions, segments, words, marks = empty(PADDING), empty(0), empty(-1), empty(-1), empty(0)
        values, owner, within = self.ids.take(items)
        flat = start[owner] + within
        ids[flat], positions[flat], segments[flat] = values, within, owner
        words[flat], _, _ = self.words.take(items)
        query, query_items, _ = self.queries.take(items)
        candidate, candidate_items, _ = self.candidates.take(items)
        names, _, _ = self.names.take(items)
        candidate_positions = start[candidate_items] + candidate
        chosen_slots = self._slots(len(items), slots, shuffle)
        if slots:
            marks[candidate_positions] = chosen_slots[candidate_items, names]
        shape = (len(rows), width)
        tokens = torch.from_numpy(ids).view(shape)
        return Batch(
            inputs=tokens,
            ids=tokens,
            positions=torch.from_numpy(positions).view(shape),
            segments=torch.from_numpy(segments).view(shape),
            words=torch.from_numpy(words).view(shape),
            slots=torch.from_numpy(marks).view(shape),
            query_positions=torch.from_numpy(start[query_items] + query),
            query_items=torch.from_numpy(query_items),
            candidate_positions=torch.from_numpy(candidate_positions),
            candidate_owners=torch.from_numpy(candidate_items * self.max_candidates + names),
            present=torch.from_numpy(self.present[items]),
            gold=torch.from_numpy(self.gold[items]),
            candidate_slots=torch.from_numpy(chosen_slots),
            masked_positions=torch.empty(0, dtype=torch.long),
            own_positions=torch.empty(0, dtype=torch.long),
            items=torch.from_numpy(items),
            minimal_pairs=torch.empty(0, 2, dtype=torch.long),
        )

    def _slots(self, items: int, slots: int, shuffle: np.random.Generator | None) -> Indices:
        if slots and slots < self.max_candidates:
            message = N_("task.prediction.slots ({slots}) must be at least the {candidates} candidates of an item")
            raise UserError(message, slots=slots, candidates=self.max_candidates)
        if not slots:
            return np.zeros((items, self.max_candidates), np.int64)
        if shuffle is None:
            return np.tile(np.arange(1, self.max_candidates + 1), (items, 1))
        return shuffle.random((items, slots)).argsort(axis=1)[:, : self.max_candidates] + 1


def _labels(number: int, example: Example) -> tuple[Hashable, Hashable, Hashable]:
    """Return three keys of an item: for minimal pair and candidates, for group, and for language and cue type.

    `EncodedSplit` stores the keys as integer codes in `pair_sets`, `groups` and `cells`. If the item has no minimal
    pair or no group, its index `number` is the key.
    """
    # Answers can be compared only if the candidates have the same words in the same order.
    names = tuple([example.words(index).lower() for index in range(len(example.candidates))])
    return (
        (example.minimal_pair, names) if example.minimal_pair else number,
        example.group or number,
        (example.language, example.factors.get("type")),
    )


class _SpanCover:
    """Sorted character spans of a text's tokens, for a fast search of the tokens that overlap a span."""

    def __init__(self, tokens: TokenizedText) -> None:
        self._spans = tokens.spans
        self._starts: list[int] = []
        self._ends: list[int] = []
        end = 0
        for start, stop in tokens.spans:
            # Spans are sorted; a special token gets the end of the token before it, so that they stay sorted.
            start, end = (start, stop) if start < stop else (end, end)
            self._starts.append(start)
            self._ends.append(end)

    def of(self, span: Span) -> list[int]:
        """Return the indices of the tokens that overlap a span, as `TokenizedText.covering` does."""
        run = range(bisect_right(self._ends, span[0]), bisect_left(self._starts, span[1]))
        return [token for token in run if self._spans[token] != (0, 0)]

"""Sets of words in a text as hashed features of a linear model, hashed once per distinct text.

Training takes many epochs, and texts that differ only in names have the same features, so caching saves most hashing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Columns = NDArray[np.int32]

_BUCKETS = 2**22  # buckets of hashed features; a power of two
_TEXTS_AT_ONCE = 2_000
_FACTORS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], dtype=np.uint64)


class WordSets:
    """Sets of up to `count` words in the training texts, as rows of a sparse matrix.

    Only buckets that occur in these texts have a column, because each step of the model updates all weights, and single
    words fill only a few hundred of four million buckets. All other buckets share column 0, whose weight stays 0.
    """

    def __init__(self, texts: Sequence[Ints], count: int) -> None:
        """Hash the texts.

        Args:
            texts: sorted ids of the distinct words in each text.
            count: maximum number of words in a set, 1 to 3.
        """
        self._count = count
        numbers: dict[bytes, int] = {}
        self._row_of = [numbers.setdefault(words.tobytes(), len(numbers)) for words in texts]
        self._rows = _buckets_of_sets([np.frombuffer(words, np.int64) for words in numbers], count)
        reached = np.zeros(_BUCKETS, dtype=np.bool_)
        for row in self._rows:
            reached[row] = True
        self._column_of: Columns = np.where(reached, reached.cumsum(), 0).astype(np.int32)
        self._columns = int(reached.sum()) + 1
        for row in self._rows:
            row[:] = self._column_of[row]

    def matrix(self, items: Sequence[int] | Ints):  # type: ignore[no-untyped-def]  # scipy has no types
        """Return the rows of the given training texts, scaled to unit length: a sparse (items, columns) matrix."""
        return _sparse([self._rows[self._row_of[item]] for item in items], self._columns)

    def matrix_of(self, texts: Sequence[Ints]):  # type: ignore[no-untyped-def]
        """Return the rows of other texts, scaled to unit length: a sparse (texts, columns) matrix."""
        return _sparse([self._column_of[row] for row in _buckets_of_sets(texts, self._count)], self._columns)


def _sparse(rows: Sequence[Columns], columns: int):  # type: ignore[no-untyped-def]
    from scipy.sparse import csr_matrix

    lengths = np.array([len(row) for row in rows])
    values = np.repeat(1 / np.sqrt(np.maximum(lengths, 1)), lengths)
    starts = np.concatenate(([0], np.cumsum(lengths)))
    # Both index arrays need the same type, otherwise scipy copies the columns.
    starts = starts.astype(np.int32) if starts[-1] <= np.iinfo(np.int32).max else starts
    return csr_matrix((values, np.concatenate(rows), starts), shape=(len(rows), columns))


def _buckets_of_sets(texts: Sequence[Ints], count: int) -> list[Columns]:
    """Return the hash buckets of all sets of 1 to `count` words in each text, ordered by size of the set."""
    rows: list[Columns] = [np.zeros(0, np.int32)] * len(texts)
    by_length: dict[int, list[int]] = {}
    for number, words in enumerate(texts):
        by_length.setdefault(len(words), []).append(number)
    by_length.pop(0, None)  # a text without words has no sets
    for length, alike in by_length.items():  # texts of one length at once
        for start in range(0, len(alike), _TEXTS_AT_ONCE):
            numbers = alike[start : start + _TEXTS_AT_ONCE]
            stacked = np.array([texts[number] for number in numbers], dtype=np.uint64)
            hashed = np.concatenate([_hashed_sets(stacked, size) for size in range(1, min(count, length) + 1)], axis=1)
            for number, row in zip(numbers, hashed, strict=True):
                rows[number] = row
    return rows


def _hashed_sets(words: NDArray[np.uint64], size: int) -> Columns:
    """Return the hash buckets of all sets of `size` words in each text: (N, W) -> (N, S)."""
    places = _sets_of(words.shape[1], size)
    mixed = np.zeros((len(words), len(places)), dtype=np.uint64)
    for column, factor in zip(places.T, _FACTORS, strict=False):
        mixed ^= words[:, column] + np.uint64(1)
        mixed *= factor
        mixed ^= mixed >> np.uint64(29)
    return (mixed & np.uint64(_BUCKETS - 1)).astype(np.int32)


@lru_cache(maxsize=256)
def _sets_of(count: int, size: int) -> Ints:
    """Return all combinations of `size` indices below `count`, one per row."""
    return np.array(list(combinations(range(count), size)))

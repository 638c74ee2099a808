"""Integer codes for labels, and grouping of items by label or by total size."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


def codes_of(labels: Iterable[Hashable], known: dict[Hashable, int] | None = None) -> list[int]:
    """Encode labels as integers from 0, in order of first occurrence.

    `known` has the codes of earlier labels; the codes of new labels are added to it.
    """
    numbering = {} if known is None else known
    return [numbering.setdefault(label, len(numbering)) for label in labels]


def indices_by(labels: Iterable[K | None]) -> dict[K, list[int]]:
    """Return the indices of the items with each label, in order of first occurrence; the label None is left out."""
    indices: dict[K, list[int]] = {}
    for index, label in enumerate(labels):
        if label is not None:
            indices.setdefault(label, []).append(index)
    return indices


def portions(sizes: Iterable[float], most: float) -> list[list[int]]:
    """Divide a sequence of items into portions of consecutive items, and return the item indices of each portion.

    The sizes of the items in a portion sum to at most `most`; an item larger than `most` is a portion by itself.
    """
    together: list[list[int]] = []
    held = 0.0
    for index, size in enumerate(sizes):
        held += size
        if not together or held > most:
            together.append([])
            held = size
        together[-1].append(index)
    return together

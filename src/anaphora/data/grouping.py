"""Numbering and grouping of items by a label or by size."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


def codes_of(labels: Iterable[Hashable], known: dict[Hashable, int] | None = None) -> list[int]:
    """Return an integer code for each label, from 0 in the order in which labels first occur.

    Labels in `known` have the code given there, and new labels are added to it.
    """
    numbering = {} if known is None else known
    return [numbering.setdefault(label, len(numbering)) for label in labels]


def indices_by(labels: Iterable[K | None]) -> dict[K, list[int]]:
    """Return the indices at which each label except None occurs, by label in the order of first occurrence."""
    indices: dict[K, list[int]] = {}
    for index, label in enumerate(labels):
        if label is not None:
            indices.setdefault(label, []).append(index)
    return indices


def portions(sizes: Iterable[float], most: float) -> list[list[int]]:
    """Divide the indices of items with the given sizes into consecutive portions.

    The sizes of a portion's items sum to at most `most`; an item larger than `most` is a portion by itself.
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

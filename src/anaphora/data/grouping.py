"""Numbering and grouping of items by a label or by size."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


def codes_of(labels: Iterable[Hashable], known: dict[Hashable, int] | None = None) -> list[int]:
    """Return an integer code for each label, numbered from 0 by first occurrence; new labels are added to `known`."""
    numbering = {} if known is None else known
    return [numbering.setdefault(label, len(numbering)) for label in labels]


def indices_by(labels: Iterable[K | None]) -> dict[K, list[int]]:
    """Return the indices at which each label occurs, labels in order of first occurrence; None is left out."""
    indices: dict[K, list[int]] = {}
    for index, label in enumerate(labels):
        if label is not None:
            indices.setdefault(label, []).append(index)
    return indices


def portions(sizes: Iterable[int], most: int) -> list[list[int]]:
    """Divide indices into consecutive portions of total size at most `most`; a larger item is a portion by itself."""
    together: list[list[int]] = []
    held = 0
    for index, size in enumerate(sizes):
        held += size
        if not together or held > most:
            together.append([])
            held = size
        together[-1].append(index)
    return together

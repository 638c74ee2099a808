"""The cells of every table (language and kind of cue), the clusters of intervals, and rounding.

N items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anaphora.analysis.results.scores import ALL, KINDS, Groups
from anaphora.analysis.results.typed_json import Interval
from anaphora.analysis.scores.heads import is_main
from anaphora.analysis.scores.statistics import cluster_interval
from anaphora.data.example import Example

T = TypeVar("T")

Cells = Callable[[Sequence[Example]], Iterator[tuple[str, str, NDArray[np.bool_]]]]
"""What a table is cut by: language, the cell's name, and (N,) which items are in it."""


def cells(examples: Sequence[Example]) -> Iterator[tuple[str, str, NDArray[np.bool_]]]:
    """Yield the main items of each language by kind of cue, then all: language, kind or "all", and a mask (N,)."""
    main = is_main(examples)
    languages = np.array([example.language for example in examples], dtype=object)
    kinds = np.array([example.factors.get("kind", "") for example in examples], dtype=object)
    for language in sorted(set(languages[main])):
        spoken = main & (languages == language)
        for kind in KINDS:
            if (spoken & (kinds == kind)).any():
                yield language, kind, spoken & (kinds == kind)
        yield language, ALL, spoken


def claim_cells(examples: Sequence[Example]) -> list[tuple[str, str, NDArray[np.bool_]]]:
    """Return the cells of the claim: language and kind of cue; "all" in a language whose items have no kind."""
    every = list(cells(examples))
    with_kinds = {language for language, kind, _ in every if kind != ALL}
    return [cell for cell in every if cell[1] != ALL or cell[0] not in with_kinds]


def clusters(examples: Sequence[Example]) -> list[tuple[str, str]]:
    """Return the cluster of each item for the bootstrap: its template, else its group, else the item itself."""
    return [
        ("template", example.factors["template"])
        if example.factors.get("template")
        else ("group", example.group)
        if example.group
        else ("item", str(item))
        for item, example in enumerate(examples)
    ]


def rounded(value: float | np.floating | None) -> float | None:
    """Return a number with 6 digits; None if it could not be computed."""
    return None if value is None or np.isnan(value) else round(float(value), 6)


def bootstrap_interval(
    values: ArrayLike, labels: Sequence[tuple[str, str]], bounds: tuple[float, float] = (-1.0, 1.0)
) -> Interval | None:
    """Return the 95 % interval of a mean over clusters, rounded; None if unknown or if `has_interval` is false.

    Args:
        values: shares, or differences of shares.
        labels: the cluster of each.
        bounds: see `cluster_interval`.
    """
    numbers = np.asarray(values, dtype=np.float64)
    ends = None if np.isnan(numbers).any() else cluster_interval(numbers, labels, bounds=bounds)
    return rounded_interval(ends)


def rounded_interval(ends: tuple[float, float] | None) -> Interval | None:
    """Return the two ends with 6 digits."""
    return None if ends is None else Interval(*(round(end, 6) for end in ends))


def by_language_and_kind(rows: Iterator[tuple[str, str, T]]) -> Groups[T]:
    """Return (language, kind, content) groups as {language: {kind: content}}."""
    groups: Groups[T] = {}
    for language, kind, content in rows:
        groups.setdefault(language, {})[kind] = content
    return groups

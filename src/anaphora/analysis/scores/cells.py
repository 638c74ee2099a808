"""What every table is cut by: cells of language and kind of cue, the clusters that intervals draw, and rounding.

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
    """The main items of each language by kind of cue, then all of them: language, kind or "all", and (N,) which."""
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
    """The cells about which a claim is made: language and kind of cue; "all" in a language whose items have no kind."""
    every = list(cells(examples))
    with_kinds = {language for language, kind, _ in every if kind != ALL}
    return [cell for cell in every if cell[1] != ALL or cell[0] not in with_kinds]


def clusters(examples: Sequence[Example]) -> list[tuple[str, str]]:
    """What a bootstrap draws as a whole: the items of a template, else of a group, else each item alone."""
    return [
        ("template", example.factors["template"])
        if example.factors.get("template")
        else ("group", example.group)
        if example.group
        else ("item", str(item))
        for item, example in enumerate(examples)
    ]


def rounded(value: float | np.floating | None) -> float | None:
    """A number with 6 digits; None for what could not be computed."""
    return None if value is None or np.isnan(value) else round(float(value), 6)


def bootstrap_interval(
    values: ArrayLike, labels: Sequence[tuple[str, str]], bounds: tuple[float, float] = (-1.0, 1.0)
) -> Interval | None:
    """The 95 % interval of a mean over clusters, rounded; None for unknown values, or if `has_interval` is false.

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
    """Group (language, kind, content) as {language: {kind: content}}."""
    groups: Groups[T] = {}
    for language, kind, content in rows:
        groups.setdefault(language, {})[kind] = content
    return groups

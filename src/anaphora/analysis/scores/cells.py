"""Division of items into groups (cells) by language and cue category, clusters for bootstrap intervals, and rounding.

N is the number of items.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anaphora.analysis.results.scores import ALL, KINDS, Groups
from anaphora.analysis.results.typed_json import Interval
from anaphora.analysis.scores.heads import HeadScores, is_main
from anaphora.analysis.scores.statistics import cluster_interval
from anaphora.data.corpora.division import group_key
from anaphora.data.example import Example
from anaphora.data.grouping import codes_of

T = TypeVar("T")

Cells = Callable[[Sequence[Example]], Iterator[tuple[str, str, NDArray[np.bool_]]]]
"""Function that divides items into groups, and yields the language, the name and the mask (N,) of each group."""


def cells(examples: Sequence[Example]) -> Iterator[tuple[str, str, NDArray[np.bool_]]]:
    """Yield the groups of items for which there are main results, as (language, kind, mask (N,)).

    For each language, there is a group for each cue category that occurs (`kind`), then one with all items ("all").
    Items that do not count in the main results (`Example.is_main`) are in no group.
    """
    main = is_main(examples)
    languages = languages_of(examples)
    kinds = factor_values(examples, "kind")
    for language in sorted(set(languages[main])):
        spoken = main & (languages == language)
        for kind in KINDS:
            if (spoken & (kinds == kind)).any():
                yield language, kind, spoken & (kinds == kind)
        yield language, ALL, spoken


def languages_of(examples: Sequence[Example]) -> NDArray[np.object_]:
    """Return each example's language: (N,)."""
    return np.array([example.language for example in examples], dtype=object)


def factor_values(examples: Sequence[Example], name: str) -> NDArray[np.object_]:
    """Return each example's value of a factor, an entry of `Example.factors`, (N,); "" if it lacks the factor."""
    return np.array([example.factors.get(name, "") for example in examples], dtype=object)


def claim_cells(examples: Sequence[Example]) -> list[tuple[str, str, NDArray[np.bool_]]]:
    """Return the groups of items for which separate claims are tested, as (language, kind, mask (N,)).

    There is a group for each language and cue category (`kind`). A language whose items have no cue category has one
    group, "all".
    """
    every = list(cells(examples))
    with_kinds = {language for language, kind, _ in every if kind != ALL}
    return [cell for cell in every if cell[1] != ALL or cell[0] not in with_kinds]


def clusters(examples: Sequence[Example]) -> NDArray[np.int64]:
    """Return the index of each item's bootstrap cluster, (N,).

    Items with the same template (sentence pattern) form a cluster. Items without a template are clustered by group,
    minimal pair or text (`group_key`).
    """
    templates = factor_values(examples, "template")
    names: list[Hashable] = [
        ("template", template) if template else ("group", group_key(example))
        for example, template in zip(examples, templates, strict=True)
    ]
    return np.array(codes_of(names), dtype=np.int64)


def rounded(value: float | np.floating | None) -> float | None:
    """Round a number to 6 decimal places; return None for None and NaN."""
    return None if value is None or np.isnan(value) else round(float(value), 6)


def bootstrap_interval(
    values: ArrayLike, labels: Sequence[Hashable] | NDArray[np.int64], bounds: tuple[float, float] = (-1.0, 1.0)
) -> Interval | None:
    """Return the rounded 95 % cluster bootstrap interval of the mean of `values`, clipped to `bounds`.

    It is None if a value is NaN, or if there are too few clusters (`has_interval`).
    """
    numbers = np.asarray(values, dtype=np.float64)
    ends = None if np.isnan(numbers).any() else cluster_interval(numbers, labels, bounds=bounds)
    return None if ends is None else Interval(*(round(end, 6) for end in ends))


def mean_and_interval(
    values: NDArray[np.float64], labels: Sequence[Hashable] | NDArray[np.int64], bounds: tuple[float, float]
) -> tuple[float | None, Interval | None]:
    """Return the rounded mean of `values` and its `bootstrap_interval`; both are None without values or with NaN."""
    return (rounded(values.mean()), bootstrap_interval(values, labels, bounds)) if len(values) else (None, None)


def by_language_and_kind(rows: Iterable[tuple[str, str, T]]) -> Groups[T]:
    """Collect tuples (language, kind, content) as {language: {kind: content}}."""
    groups: Groups[T] = {}
    for language, kind, content in rows:
        groups.setdefault(language, {})[kind] = content
    return groups


def by_language(scores: HeadScores, languages: Collection[str], measure: Callable[[HeadScores], T]) -> dict[str, T]:
    """Apply `measure` to the scores of each language's items; languages without items are left out."""
    spoken = languages_of(scores.examples)
    present = [language for language in languages if (spoken == language).any()]
    return {language: measure(scores.select(spoken == language)) for language in present}


def each_cell(examples: Sequence[Example], content: Callable[[NDArray[np.bool_]], T], by: Cells = cells) -> Groups[T]:
    """Return {language: {kind: result}} for the groups of items that `by` yields.

    `content` computes the result of a group from its mask, (N,).
    """
    return by_language_and_kind((language, kind, content(items)) for language, kind, items in by(examples))

"""Groups of items with the same wording: minimal pairs and whole quads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.scores.heads import Floats
from anaphora.data.example import Example, codes_of


def set_products(correct: NDArray[np.floating], sets: Sequence[str]) -> tuple[Floats, NDArray[np.int64]]:
    """Return the product of the correctness of each set of items: 1 only where every item is right.

    A tie counts its expectation under random tie-breaking: half for one even tie in an otherwise right set.

    Args:
        correct: (N, ...) in [0, 1].
        sets: each item's set, a minimal pair or quad; "" and sets of one item are left out.

    Returns:
        (S, ...) products, and (S,) the number of each set's first item.
    """
    codes = np.array(codes_of(sets))
    outside = {codes[item] for item, name in enumerate(sets) if not name}
    sizes = np.bincount(codes) if len(codes) else np.zeros(0, np.int64)
    alone = sizes[codes] < 2 if len(codes) else np.zeros(0, np.bool_)
    inside = np.flatnonzero(~(alone | np.isin(codes, list(outside))))
    order = inside[np.argsort(codes[inside], kind="stable")]
    if not len(order):
        return np.zeros((0, *correct.shape[1:])), np.zeros(0, np.int64)
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    return np.multiply.reduceat(correct[order].astype(np.float64), starts, axis=0), order[starts]


def mean_of_groups(values: Floats) -> Floats:
    """Return the mean over groups; NaN where there are none: (G, ...) -> (...)."""
    return np.asarray(values.mean(axis=0) if len(values) else np.full(values.shape[1:], np.nan))


def minimal_pair_accuracy(correct: NDArray[np.floating], examples: Sequence[Example]) -> Floats:
    """Return how often all items that differ in the cue alone are right: 0 for a policy of position or entity.

    Args:
        correct: (N, ...) in [0, 1].
        examples: the N items.

    Returns:
        (...), a scalar for (N,); NaN where no item has a minimal pair.
    """
    return mean_of_groups(set_products(correct, minimal_pairs_of(examples))[0])


def minimal_pairs_of(examples: Sequence[Example]) -> list[str]:
    """Return each item's minimal pair; "" where it has none."""
    return [example.minimal_pair for example in examples]


def quads_of(examples: Sequence[Example]) -> list[str]:
    """Return each item's quad where that is complete, two cues by two orders, else "".

    A group that asks about two pronouns is a quad of eight items, and an octad, a quad in each of two voices, is one
    too. Larger groups are none, since all of 36 items right is another question than all of 4. Items without the factor
    `order` are a quad if the same two candidates stand first twice each, and each is once the antecedent then.
    """
    members: dict[str, list[Example]] = {}
    for example in examples:
        members.setdefault(example.group, []).append(example)
    quads = {group for group, items in members.items() if group and _is_quad(items)}
    return [each.group if each.group in quads else "" for each in examples]


_ONE_ANSWER = "third"
"""The stratum of the built-in corpus whose groups ask, in both orders, about a third person."""


def _is_quad(items: Sequence[Example]) -> bool:
    if len(items) != 4 * _repetitions(items[0]):
        return False
    orders = Counter(example.factors.get("order", "") for example in items)
    if set(orders) == {""}:
        return _is_quad_by_its_words(items)
    if "" in orders or len(orders) != 2 or len(set(orders.values())) != 1:
        return False
    # Of a quad a policy of position must be wrong somewhere; where a third person is meant there is but one answer.
    meant = {(example.factors["order"], example.antecedents) for example in items}
    return len(meant) > len(orders) or items[0].factors.get("stratum") == _ONE_ANSWER


def _is_quad_by_its_words(items: Sequence[Example]) -> bool:
    if not all(len(example.focal) == 2 and len(example.antecedents) == 1 for example in items):
        return False
    readings = {
        (tuple(example.words(index).lower() for index in example.focal), example.focal.index(example.antecedents[0]))
        for example in items
        if example.antecedents[0] in example.focal
    }
    orders = {order for order, _ in readings}
    return len(readings) == 4 and len({frozenset(order) for order in orders}) == 1 and len(orders) == 2


def _repetitions(example: Example) -> int:
    """Return how many items of a group share their cue and order: one a pronoun and voice."""
    return int(example.factors.get("pronouns", "1")) * int(example.factors.get("voices", "1"))

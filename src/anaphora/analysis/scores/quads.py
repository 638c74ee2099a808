"""Minimal pairs and quads of items, and the share of pairs or quads in which all items are right.

The items of a minimal pair differ only in the cue. A quad consists of four items: each of two cues with both orders of
the candidates. N is the number of items.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.maps.answers import Floats
from anaphora.data.example import Example
from anaphora.data.grouping import indices_by


def set_products(correct: NDArray[np.floating], sets: Sequence[str]) -> tuple[Floats, NDArray[np.int64]]:
    """Return the product of correctness over each set of items (minimal pair or quad): 1 only if every item is right.

    With ties, the product is the expected value if each tie is broken at random.

    Args:
        correct: correctness of the items in [0, 1], (N, ...).
        sets: name of each item's set, "" for an item without one; sets of one item are left out.

    Returns:
        The products (S, ...), and the index of each set's first item (S,).
    """
    members = [items for items in indices_by(name or None for name in sets).values() if len(items) > 1]
    if not members:
        return np.zeros((0, *correct.shape[1:])), np.zeros(0, np.int64)
    order, sizes = np.concatenate(members), list(map(len, members))
    starts = np.cumsum([0, *sizes[:-1]])
    products = np.multiply.reduceat(correct[order].astype(np.float64), starts, axis=0)
    return products, np.array([items[0] for items in members])


def sets_inside(sets: Sequence[str], first: NDArray[np.int64], items: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the indices of the sets of items that lie completely within a mask of items, (N,).

    Args:
        sets: name of each item's set, as for `set_products`.
        first: index of each set's first item, (S,), from `set_products`.
    """
    cut = {name for name, is_inside in zip(sets, items, strict=True) if not is_inside}
    return np.array([number for number, item in enumerate(first) if sets[item] not in cut], dtype=np.int64)


def minimal_pair_accuracy(correct: NDArray[np.floating], examples: Sequence[Example]) -> Floats:
    """Return the share of minimal pairs in which every item is right; NaN without pairs.

    `correct` is the correctness of the items, (N, ...). Predictions that ignore the cue get 0 if the items of each
    pair have different antecedents and there are no ties.
    """
    products, _ = set_products(correct, minimal_pairs_of(examples))
    return np.asarray(products.mean(axis=0) if len(products) else np.full(products.shape[1:], np.nan))


def minimal_pairs_of(examples: Sequence[Example]) -> list[str]:
    """Return the name of each item's minimal pair; "" if it has none."""
    return [example.minimal_pair for example in examples]


def items_of_minimal_pairs(examples: Sequence[Example]) -> list[list[int]]:
    """Return the item indices of each minimal pair with two or more items."""
    pairs = indices_by(name or None for name in minimal_pairs_of(examples))
    return [items for items in pairs.values() if len(items) > 1]


def next_in_minimal_pair(examples: Sequence[Example]) -> dict[int, int]:
    """Return the index of the next item in each item's minimal pair; the last item is followed by the first.

    Items without a minimal pair are left out.
    """
    return {one: other for items in items_of_minimal_pairs(examples) for one, other in cyclic_pairs(items)}


def cyclic_pairs(items: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Return pairs of each item and its successor; the successor of the last item is the first."""
    return pairwise([*items, items[0]])


def quads_of(examples: Sequence[Example]) -> list[str]:
    """Return the name of each item's quad; "" for an item that is not in a complete quad.

    A quad is a group of four items: each of two cues with both orders of the candidates (factor `order`). If the
    sentences have several pronouns, or the group contains active and passive sentences, a quad has four items for each
    pronoun and voice. Groups of any other size are not quads: a head is right on all items of a larger group much more
    rarely, so that the accuracies could not be compared.

    In data without the factor `order`, a group of four items is a quad if it has the same two candidates in both
    orders, and each of them is the antecedent once in each order.
    """
    members = indices_by(example.group or None for example in examples)
    quads = {group for group, items in members.items() if _is_quad([examples[item] for item in items])}
    return [each.group if each.group in quads else "" for each in examples]


_ONE_ANSWER = "third"
"""Stratum (set of items) of the built-in corpus in which the antecedent is a third person in both orders."""


def _is_quad(items: Sequence[Example]) -> bool:
    # In a group, the items of each pronoun and of each voice share a cue and an order.
    repetitions = int(items[0].factors.get("pronouns", "1")) * int(items[0].factors.get("voices", "1"))
    if len(items) != 4 * repetitions:
        return False
    orders = Counter(example.factors.get("order", "") for example in items)
    if set(orders) == {""}:
        return _is_quad_by_its_words(items)
    if "" in orders or len(orders) != 2 or len(set(orders.values())) != 1:
        return False
    # In a quad, a choice by position must be wrong in some item, unless the antecedent is always a third person.
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

"""Outcomes of the causal tests per item."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.results.scores import Head

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Progress = Callable[[str], None]

MATCHED_EDGES = ("matched_query", "matched_heads", "matched_distance")
"""Edges that stand in for the pronoun's edge to its antecedent, with as many attended tokens. Special tokens and
the attending token itself are left out.

matched_query: of each head, the strongest edge of another word of the sentence.
matched_heads: the pronoun's strongest edge to a word that is neither a candidate nor the cue, in the heads outside the
scope where it is strongest, as many as the scope has; none where the scope holds every head.
matched_distance: in the same heads, from the pronoun to words that are neither, as far from it as the antecedent.
"""

RANDOM_SETS = 5
"""Random sets of heads beside each set of the best ones."""


class KnockedOut(NamedTuple):
    """A knockout's outcome, (N,) each: still right or not, the removed weight, and whether there is such an edge."""

    right: Floats
    mass: Floats
    has_edge: Bools


class AblatedTogether(NamedTuple):
    """An ablation of a set of heads, and of as many others of the same layers: which items are still right, (N,)."""

    heads: list[Head]
    right: Floats
    random: list[Floats]


class AlignedPatch(NamedTuple):
    """Pattern patches between sentences of any lengths: which items take part, (N,), and whose answers flip."""

    pairs: Bools
    head: Bools
    layer: Bools  # all heads of that head's layer


class PatternPatch(NamedTuple):
    """Pattern patches: which items take part and which cannot, (N,), and whose answers flip to the other one."""

    pairs: Bools
    skipped: Bools
    by_count: dict[int, Bools]  # the best 1, 2, ... heads, up to all
    head: Bools
    layer: Bools  # all heads of that head's layer
    aligned: AlignedPatch


class DoseResponse(NamedTuple):
    """A map's score of an edge and the cost of its knockout, for every candidate of every item with a record."""

    item: NDArray[np.int64]
    score: Floats
    loss: Floats

"""Per-item outcomes of the causal tests; N items."""

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
"""Control edges for the pronoun's edge to its antecedent, with equally many keys. Special tokens and the query itself
are never keys.

matched_query: in each head, the strongest edge of another word of the sentence.
matched_heads: the pronoun's strongest edge to words other than the candidates and the cue, in the heads outside the
scope where this edge is strongest. As many heads are taken as the scope has.
matched_distance: in the heads of the scope, the pronoun's edge to such words as far from it as the antecedent.
"""

RANDOM_SETS = 5
"""Number of random sets of heads that each set of best heads is compared with."""


class KnockedOut(NamedTuple):
    """Outcome of a knockout, (N,) each: correctness, removed weight, and a mask of the items with such an edge."""

    right: Floats
    mass: Floats
    has_edge: Bools


class AblatedTogether(NamedTuple):
    """Outcome of ablating a set of heads, and random sets of the same size: correctness, (N,) each."""

    heads: list[Head]
    right: Floats
    random: list[Floats]


class AlignedPatch(NamedTuple):
    """Outcome of patches between sentences of any lengths: masks of tested items and of flipped answers, (N,) each."""

    pairs: Bools
    head: Bools
    layer: Bools  # all heads of that head's layer


class PatternPatch(NamedTuple):
    """Outcome of pattern patches: masks of tested items, of skipped items and of flipped answers, (N,) each."""

    pairs: Bools
    skipped: Bools
    by_count: dict[int, Bools]  # by number of best heads
    head: Bools
    layer: Bools  # all heads of that head's layer
    aligned: AlignedPatch


class DoseResponse(NamedTuple):
    """Item indices, scores in one map and knockout costs of E edges from a pronoun to a candidate: (E,) each."""

    item: NDArray[np.int64]
    score: Floats
    loss: Floats

"""Significance of heads' accuracy, and effects of a candidate's properties on the weight that a head gives it.

The properties are whether the candidate is the antecedent ("meaning"), whether it comes first ("position"), and its
name ("entity").
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.results.scores import Groups, Head
from anaphora.analysis.results.typed_json import Interval
from anaphora.analysis.scores.cells import (
    by_language_and_kind,
    claim_cells,
    clusters,
    each_cell,
    mean_and_interval,
    rounded,
)
from anaphora.analysis.scores.heads import HeadScores
from anaphora.analysis.scores.quads import quads_of
from anaphora.analysis.scores.statistics import DIFFERENCES, holm, permutation_p, permutation_p_max
from anaphora.data.grouping import indices_by

EFFECTS = ("meaning", "position", "entity")


@dataclass(frozen=True, kw_only=True)
class Significance:
    """Permutation p-value of a head's candidate accuracy, without and with Holm's correction."""

    p: float | None
    p_holm: float | None


@dataclass(frozen=True, kw_only=True)
class HeadsOnDevelopment:
    """P-values of all heads on the development split, (L, H), corrected for the number of heads.

    None in layers without attention.
    """

    p: tuple[tuple[float | None, ...], ...]


def significance(scores: HeadScores, head: Head) -> Groups[Significance]:
    """Return permutation p-values of a head's candidate accuracy on items of the main results (`Example.is_main`).

    They are keyed by language and cue category (`kind`), and corrected by Holm's method for the number of such groups.
    They are valid only for a head that was chosen on other items.
    """
    claims = claim_cells(scores.examples)
    raw = [permutation_p(scores.select(items), head) for _, _, items in claims]
    rows = zip(claims, raw, holm(raw), strict=True)
    return by_language_and_kind(
        (language, kind, Significance(p=rounded(p), p_holm=rounded(corrected)))
        for (language, kind, _), p, corrected in rows
    )


def heads_on_development(development: HeadScores) -> HeadsOnDevelopment:
    """Return the p-values of all heads' candidate accuracies on the development split (`permutation_p_max`)."""
    return HeadsOnDevelopment(p=tuple(tuple(map(rounded, row)) for row in permutation_p_max(development)))


@dataclass(frozen=True, kw_only=True)
class Effect:
    """Mean of one of the `Effects` over quads, with its interval; None if there are no quads."""

    value: float | None
    interval: Interval | None
    quads: int


@dataclass(frozen=True, kw_only=True)
class Effects:
    """Effects of a candidate's properties on the weight that a head gives it.

    Attributes:
        meaning: effect of being the antecedent.
        position: effect of being mentioned first.
        entity: effect of the candidate's name.
    """

    meaning: Effect
    position: Effect
    entity: Effect


def effects(scores: HeadScores, head: Head) -> Groups[Effects]:
    """Return the effects of meaning, position and entity on one head's weights, computed from quads.

    A quad consists of four items: two cues, each with both orders of the candidates A and B. The cue decides between A
    and B (`Example.focal`). Let d = weight on A - weight on B, for each item of a quad:

    - meaning is the mean of d times +1 if A is the antecedent, else -1,
    - position is the mean of d times +1 if A comes first, else -1,
    - entity is the absolute mean of d, because the names A and B are arbitrary and signed values would cancel over
      quads.

    In a quad each antecedent occurs in each order equally often, so that the three are orthogonal contrasts of a 2 x 2
    design. All lie in [-1, 1], in shares of the pronoun's attention.

    Returns:
        The effects on items of the main results (`Example.is_main`) by language and cue category (`kind`): mean over
        quads, 95 % bootstrap interval over templates, and number of quads. Quads are used if they are complete and the
        cue decides between the same two candidates in all their items.
    """
    members = indices_by(group or None for group in quads_of(scores.examples))
    mass = scores.candidate_mass[:, head.layer, head.head].astype(np.float64)
    effects_of = {name: _effects_of_quad(scores, mass, items) for name, items in members.items()}
    quads = [(members[name], values) for name, values in effects_of.items() if values is not None]
    labels = clusters(scores.examples)

    def effect(values: NDArray[np.float64], quad_clusters: NDArray[np.int64]) -> Effect:
        value, interval = mean_and_interval(values, quad_clusters, DIFFERENCES)
        return Effect(value=value, interval=interval, quads=len(values))

    def cell(items: NDArray[np.bool_]) -> Effects:
        inside = [(quad[0], values) for quad, values in quads if items[quad].all()]
        values = np.array([of_quad for _, of_quad in inside]).reshape(-1, len(EFFECTS))
        quad_labels = labels[[first for first, _ in inside]]
        return Effects(**{name: effect(column, quad_labels) for name, column in zip(EFFECTS, values.T, strict=True)})

    return each_cell(scores.examples, cell)


def _effects_of_quad(scores: HeadScores, mass: NDArray[np.float64], items: list[int]) -> tuple[float, ...] | None:
    """Return the effects of meaning, position and entity in one quad; None if `effects` does not use the quad.

    `mass` is the head's weight on each candidate, (N, M), and `items` holds the indices of the quad's items.
    """
    names: set[tuple[str, ...]] = set()
    difference, right, first = [], [], []
    for item in items:
        example = scores.examples[item]
        if len(example.focal) != 2:
            return None
        one, other = sorted(example.focal, key=lambda index: example.words(index).lower())
        names.add((example.words(one).lower(), example.words(other).lower()))
        difference.append(mass[item, one] - mass[item, other])
        right.append(1 if one in example.antecedents else -1)
        first.append(1 if one < other else -1)
    same = len(names) == 1 and len(set(next(iter(names)))) == 2
    counts = Counter(zip(right, first, strict=True))
    if not same or len(counts) != 4 or len(set(counts.values())) != 1:
        return None
    d = np.array(difference)
    return float(np.mean(d * right)), float(np.mean(d * first)), float(abs(d.mean()))

"""Effects of meaning, order and identity of the candidates on a head's weights."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.results.scores import Groups, Head
from anaphora.analysis.results.typed_json import Interval
from anaphora.analysis.scores.cells import bootstrap_interval, by_language_and_kind, cells, clusters, rounded
from anaphora.analysis.scores.heads import HeadScores
from anaphora.analysis.scores.quads import quads_of

EFFECTS = ("meaning", "position", "entity")


@dataclass(frozen=True, kw_only=True)
class Effect:
    """A contrast of the four cells of a quad: the mean over quads."""

    value: float | None
    interval: Interval | None
    quads: int


@dataclass(frozen=True, kw_only=True)
class Effects:
    """The effects of the right answer, the first-mentioned candidate and a fixed candidate on the head's weight."""

    meaning: Effect
    position: Effect
    entity: Effect


def effects(scores: HeadScores, head: Head) -> Groups[Effects]:
    """Return the effects of meaning, position and entity on one head's row, from quads: two cues by two orders.

    With d = mass on A - mass on B in each sentence of a quad, A and B its two focal candidates:

    - meaning is the mean of d with the sign of the right answer (+ where A is the antecedent),
    - position is the mean of d with the sign of who comes first (+ where A does),
    - entity is the mean of d. Which of the two is called A says nothing, so that signed values of many quads would
      cancel whatever each of them prefers: A is the one with more mass in its quad, and the value is 0 or more.

    In a quad each right answer meets each order equally often, so that the three do not mix: they are the contrasts
    of a 2 x 2 design. All lie in [-1, 1], in shares of the pronoun's attention.

    Args:
        scores: the scored items; main items count.
        head: the head that development chose.

    Returns:
        By language and kind of cue: the mean over quads, its 95 % bootstrap interval over templates, and the number of
        quads. A quad counts if it is complete, it has two focal candidates, and these have the same words in every
        sentence; sets of three or more cues are no quads.
    """
    quads = _quad_effects(scores, head)
    labels = clusters(scores.examples)

    def cell(items: NDArray[np.bool_]) -> Effects:
        inside = [quad for quad in quads if items[quad.first]]
        quad_clusters = [labels[quad.first] for quad in inside]
        return Effects(**{name: _effect([getattr(quad, name) for quad in inside], quad_clusters) for name in EFFECTS})

    return by_language_and_kind((language, kind, cell(items)) for language, kind, items in cells(scores.examples))


def _effect(values: list[float], quad_clusters: list[tuple[str, str]]) -> Effect:
    return Effect(
        value=rounded(np.mean(values)) if values else None,
        interval=bootstrap_interval(values, quad_clusters) if values else None,
        quads=len(values),
    )


@dataclass(frozen=True)
class _QuadEffects:
    """The effects in one quad, with the number of its first item."""

    first: int
    meaning: float
    position: float
    entity: float


def _quad_effects(scores: HeadScores, head: Head) -> list[_QuadEffects]:
    members: defaultdict[str, list[int]] = defaultdict(list)
    for item, group in enumerate(quads_of(scores.examples)):
        if group:
            members[group].append(item)
    mass = scores.candidate_mass[:, head.layer, head.head].astype(np.float64)
    return [quad for items in members.values() if (quad := _effects_of_quad(scores, mass, items)) is not None]


def _effects_of_quad(scores: HeadScores, mass: NDArray[np.float64], items: list[int]) -> _QuadEffects | None:
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
    return _QuadEffects(items[0], float(np.mean(d * right)), float(np.mean(d * first)), float(abs(d.mean())))

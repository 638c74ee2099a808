"""What a head follows: the meaning of the sentence, the place of the candidates, or the candidates themselves."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.cells import cells, clusters, interval, nested, rounded
from anaphora.analysis.scores import Head, HeadScores, quads_of

EFFECTS = ("meaning", "position", "entity")


def effects(scores: HeadScores, head: Head) -> dict[str, dict[str, Any]]:
    """The effects of meaning, position and entity on one head's row, from blocks of two cues by two orders.

    With d = mass on A - mass on B in each cell of a block, A and B its two focal candidates:

    - meaning is the mean of d with the sign of the right answer (+ where A is the antecedent),
    - position is the mean of d with the sign of who comes first (+ where A does),
    - entity is the mean of d. Which of the two is called A says nothing, so that signed values of many blocks would
      cancel whatever each of them prefers: A is the one with more mass in its block, and the value is 0 or more.

    In a block each right answer meets each order equally often, so that the three do not mix: they are the contrasts
    of a 2 x 2 design. All lie in [-1, 1], in shares of the pronoun's attention.

    Args:
        scores: the scored items; main items count.
        head: the head that development chose.

    Returns:
        {language: {kind or "all": {effect: {"value", "interval", "blocks"}}}}; the mean over blocks, its 95 % bootstrap
        interval over templates (None below two), and how many blocks there are. A value without blocks is None.
        A block counts if its cells are complete, it has two focal candidates, and these have the same words in every
        cell; blocks of three or more cues are no quads.
    """
    blocks = _blocks(scores, head)
    labels = clusters(scores.examples)

    def cell(items: NDArray[np.bool_]) -> dict[str, Any]:
        inside = [block for block in blocks if items[block.first]]
        drawn = [labels[block.first] for block in inside]
        return {name: _effect([getattr(block, name) for block in inside], drawn) for name in EFFECTS}

    return nested((language, kind, cell(items)) for language, kind, items in cells(scores.examples))


def _effect(values: list[float], drawn: list[tuple[str, str]]) -> dict[str, Any]:
    return {
        "value": rounded(np.mean(values)) if values else None,
        "interval": interval(values, drawn) if values else None,
        "blocks": len(values),
    }


@dataclass(frozen=True)
class _Block:
    """The effects in one block, with the position of its first item."""

    first: int
    meaning: float
    position: float
    entity: float


def _blocks(scores: HeadScores, head: Head) -> list[_Block]:
    members: defaultdict[str, list[int]] = defaultdict(list)
    for item, group in enumerate(quads_of(scores.examples)):
        if group:
            members[group].append(item)
    mass = scores.candidate_mass[:, head.layer, head.head].astype(np.float64)
    return [block for items in members.values() if (block := _block(scores, mass, items)) is not None]


def _block(scores: HeadScores, mass: NDArray[np.float64], items: list[int]) -> _Block | None:
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
    return _Block(items[0], float(np.mean(d * right)), float(np.mean(d * first)), float(abs(d.mean())))

"""Shortcut baselines that need no fitting: they use a candidate's position, role, length or number of mentions.

A `Policy` returns a score for each of the M candidates of an example, (M,), and predicts the candidate with the highest
score. In a tie among k candidates, each counts 1 / k.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from anaphora.analysis.maps.answers import Floats
from anaphora.base.language import CHINESE_RANGES
from anaphora.data.example import Example

Policy = Callable[[Example], Floats]

WORDS = re.compile(rf"[{CHINESE_RANGES}]|[^\W_]+(?:['’-][^\W_]+)*")
_MAX_OFFSET = 40  # largest offset, in words, of a positional shortcut
_AT_ONCE = 50  # examples scored by one call of a `PolicyOfMany`


@dataclass(frozen=True)
class PolicyOfMany:
    """Shortcut that scores the candidates of many examples in one call, to save time."""

    scores: Callable[[Sequence[Example]], Floats]  # function that returns the concatenated scores

    def __call__(self, example: Example) -> Floats:
        return self.scores([example])


def scores_of_each(policy: Policy, examples: Sequence[Example]) -> Iterator[Floats]:
    """Yield a shortcut's scores of the M candidates of each example, (M,)."""
    if not isinstance(policy, PolicyOfMany):
        yield from map(policy, examples)
        return
    for start in range(0, len(examples), _AT_ONCE):
        some = examples[start : start + _AT_ONCE]
        ends = np.cumsum([len(example.candidates) for example in some])
        yield from np.split(policy.scores(some), ends[:-1])


def nearest(example: Example) -> Floats:
    """Score candidates by the distance of their nearest mention from the pronoun, in characters; nearest is best."""
    left, right = example.pronoun
    gaps = ([max(start - right, left - end) for start, end in spans] for spans in example.candidates)
    return np.array([-min(of_candidate) for of_candidate in gaps], dtype=float)


def first(example: Example) -> Floats:
    """Score candidates by their order in the text; the first has the highest score."""
    return -np.arange(len(example.candidates), dtype=float)


def longest(example: Example) -> Floats:
    """Score candidates by the length of their longest mention, in characters."""
    return np.array([max(end - start for start, end in spans) for spans in example.candidates], dtype=float)


def most_mentioned(example: Example) -> Floats:
    """Score candidates by their number of mentions."""
    return np.array([len(spans) for spans in example.candidates], dtype=float)


def subject(example: Example) -> Floats:
    """Score 1 for the candidate that is the grammatical subject, and 0 for others.

    The factor `subject` of an example is the candidate's index; without it, all scores are 0.
    """
    scores = np.zeros(len(example.candidates))
    if "subject" in example.factors:
        scores[int(example.factors["subject"])] = 1
    return scores


POLICIES: Mapping[str, Policy] = {
    "nearest": nearest,
    "first": first,
    "subject": subject,
    "longest": longest,
    "most_mentioned": most_mentioned,
}
"""Shortcuts that need no fitting, by name, without the random choice."""


def focal_correctness(policy: Policy, examples: Sequence[Example]) -> Floats:
    """Return the correctness of a shortcut's choice among the candidates that the cue distinguishes, (N,)."""
    scored = zip(scores_of_each(policy, examples), examples, strict=True)
    return np.array([focal_shares(scores[None], example)[0] for scores, example in scored])


def random_choice(example: Example) -> Floats:
    """Score all candidates equally, which amounts to a random choice."""
    return np.zeros(len(example.candidates))


def positional_scores(example: Example) -> Floats:
    """Return the scores that each of P positional shortcuts gives the M candidates, (P, M).

    Some shortcuts prefer the candidate with a given rank, from 0 to 5, counted from the first candidate, from the last,
    or by distance from the pronoun. The others prefer the candidate nearest to a given offset from the pronoun, from
    -40 to 40 words.
    """
    place = np.arange(len(example.candidates), dtype=float)
    outwards = np.argsort(np.argsort(-nearest(example), kind="stable")).astype(np.float64)
    ranked = -np.abs(np.stack((place, place[::-1], outwards)) - np.arange(6)[:, None, None])
    offsets = np.arange(-_MAX_OFFSET, _MAX_OFFSET + 1)[:, None]
    return np.concatenate((ranked.reshape(-1, len(place)), -np.abs(token_offsets(example) - offsets)))


def focal_shares(scores: Floats, example: Example) -> Floats:
    """Return the correctness of P shortcuts that choose among the candidates that the cue distinguishes, (P,).

    If several of these candidates (`Example.focal`) tie for the highest score, the correctness is the share of
    antecedents among them.

    Args:
        scores: scores of the M candidates by each shortcut, (P, M).
    """
    focal = example.focal
    scores = scores[:, list(focal)]
    picked = scores == scores.max(axis=1, keepdims=True)
    right = np.array([index in example.antecedents for index in focal])
    return np.asarray((picked & right).sum(axis=1) / picked.sum(axis=1))


def token_offsets(example: Example) -> Floats:
    """Return the distance in words from the pronoun to each candidate's first mention, (M,).

    The distance is negative if the mention comes before the pronoun.
    """
    starts = [match.start() for match in WORDS.finditer(example.text)]
    pronoun = bisect_left(starts, example.pronoun[0])
    return np.array([bisect_left(starts, spans[0][0]) - pronoun for spans in example.candidates], dtype=float)

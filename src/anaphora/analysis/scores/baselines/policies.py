"""Policies that use only the example: they answer by position, length or mention.

A policy gives every candidate of an example a score, (M,) for M candidates; the highest is its answer, a tie among k
counts 1 / k.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anaphora.base.language import CHINESE_RANGES
from anaphora.data.example import Example, Span

Floats = NDArray[np.float64]
Policy = Callable[[Example], Floats]

WORDS = re.compile(rf"[{CHINESE_RANGES}]|[^\W_]+(?:['’-][^\W_]+)*")
_MAX_OFFSET = 40  # tokens; a fixed offset beyond it is not tried
_AT_ONCE = 50  # examples


@dataclass(frozen=True)
class PolicyOfMany:
    """A policy that takes less time for many examples at once.

    Attributes:
        scores: those of the candidates of several examples, one after the other.
    """

    scores: Callable[[Sequence[Example]], Floats]

    def __call__(self, example: Example) -> Floats:
        return self.scores([example])


def scores_of_each(policy: Policy, examples: Sequence[Example]) -> Iterator[Floats]:
    """Yield the scores that a policy gives the candidates of each example."""
    if not isinstance(policy, PolicyOfMany):
        yield from map(policy, examples)
        return
    for start in range(0, len(examples), _AT_ONCE):
        some = examples[start : start + _AT_ONCE]
        ends = np.cumsum([len(example.candidates) for example in some])
        yield from np.split(policy.scores(some), ends[:-1])


def nearest(example: Example) -> Floats:
    """Return the mention with the fewest characters between it and the pronoun."""
    return np.array([-min(_gap(span, example.pronoun) for span in spans) for spans in example.candidates], dtype=float)


def first(example: Example) -> Floats:
    """Return the candidate that is mentioned first."""
    return -np.arange(len(example.candidates), dtype=float)


def longest(example: Example) -> Floats:
    """Return the candidate whose longest mention has most characters."""
    return np.array([max(end - start for start, end in spans) for spans in example.candidates], dtype=float)


def most_mentioned(example: Example) -> Floats:
    """Return the candidate with most mentions."""
    return np.array([len(spans) for spans in example.candidates], dtype=float)


def subject(example: Example) -> Floats:
    """Return the grammatical subject if the factor `subject` names it; otherwise all candidates are equal."""
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
"""The policies that need no training split."""


def focal_correctness(policy: Policy, examples: Sequence[Example]) -> Floats:
    """Return the correctness of a policy among the focal candidates: (N,), a tie among k counting 1 / k."""
    scored = zip(scores_of_each(policy, examples), examples, strict=True)
    return np.array([_right(scores, example) for scores, example in scored])


def random_choice(example: Example) -> Floats:
    """Return equal scores for every candidate, as a random choice."""
    return np.zeros(len(example.candidates))


def _right(scores: Floats, example: Example) -> float:
    """Return the share of the highest scores among the focal candidates that are antecedents."""
    best = max(scores[index] for index in example.focal)
    picked = [index for index in example.focal if scores[index] == best]
    return sum(index in example.antecedents for index in picked) / len(picked)


def _gap(span: Span, pronoun: Span) -> int:
    return max(span[0] - pronoun[1], pronoun[0] - span[1])


def positional_scores(example: Example) -> Floats:
    """Return the scores of every policy that chooses by rank among the candidates: (P, M).

    Ranks 0 to 5, each counted from the first candidate, from the last one and outwards from the pronoun; then the
    offsets from the pronoun, from the most tokens before it to the most behind it.
    """
    place = np.arange(len(example.candidates), dtype=float)
    outwards = np.argsort(np.argsort(-nearest(example), kind="stable")).astype(np.float64)
    ranked = -np.abs(np.stack((place, place[::-1], outwards)) - np.arange(6)[:, None, None])
    offsets = np.arange(-_MAX_OFFSET, _MAX_OFFSET + 1)[:, None]
    return np.concatenate((ranked.reshape(-1, len(place)), -np.abs(token_offsets(example) - offsets)))


def focal_shares(scores: Floats, example: Example) -> Floats:
    """Return for each of P policies the share of antecedents among its top-scored focal candidates: (P, M) -> (P,)."""
    focal = example.focal
    scores = scores[:, list(focal)]
    picked = scores == scores.max(axis=1, keepdims=True)
    right = np.array([index in example.antecedents for index in focal])
    shares: Floats = (picked & right).sum(axis=1) / picked.sum(axis=1)
    return shares


def token_starts(text: str) -> list[int]:
    """Return the start of each word of a text."""
    return [match.start() for match in WORDS.finditer(text)]


def token_offsets(example: Example) -> Floats:
    """Return the tokens between pronoun and each candidate's first mention; negative before the pronoun."""
    starts = token_starts(example.text)
    pronoun = bisect_left(starts, example.pronoun[0])
    return np.array([bisect_left(starts, spans[0][0]) - pronoun for spans in example.candidates], dtype=float)

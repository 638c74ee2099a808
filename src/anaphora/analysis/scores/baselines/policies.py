"""Policies that need nothing but the example: they answer by position, length or mention.

A policy gives every candidate of an example a score, (M,) for M candidates; the highest is its answer, a tie among k
counts 1 / k.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from anaphora.base.language import CHINESE_RANGES
from anaphora.data.example import Example, Span

Floats = NDArray[np.float64]
Policy = Callable[[Example], Floats]

WORDS = re.compile(rf"[{CHINESE_RANGES}]|[^\W_]+(?:['’-][^\W_]+)*")
_MAX_OFFSET = 40  # tokens; a fixed offset beyond it is not tried


def nearest(example: Example) -> Floats:
    """The mention with the fewest characters between it and the pronoun."""
    return np.array([-min(_gap(span, example.pronoun) for span in spans) for spans in example.candidates], dtype=float)


def first(example: Example) -> Floats:
    """The candidate that is mentioned first."""
    return -np.arange(len(example.candidates), dtype=float)


def longest(example: Example) -> Floats:
    """The candidate whose longest mention has most characters."""
    return np.array([max(end - start for start, end in spans) for spans in example.candidates], dtype=float)


def most_mentioned(example: Example) -> Floats:
    """The candidate with most mentions."""
    return np.array([len(spans) for spans in example.candidates], dtype=float)


def subject(example: Example) -> Floats:
    """The grammatical subject, where the factor `subject` names it; no opinion elsewhere."""
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


def correctness(policy: Policy, examples: Sequence[Example]) -> Floats:
    """How right a policy is when it may choose any candidate: (N,) in [0, 1], a tie among k counting 1 / k."""
    return np.array([_right(policy(example), example, range(len(example.candidates))) for example in examples])


def focal_correctness(policy: Policy, examples: Sequence[Example]) -> Floats:
    """How right a policy is when it may choose among the focal candidates alone: (N,) in [0, 1]."""
    return np.array([_right(policy(example), example, example.focal) for example in examples])


def chance(examples: Sequence[Example]) -> Floats:
    """How right a blind choice among the focal candidates is: (N,)."""
    return focal_correctness(random_choice, examples)


def random_choice(example: Example) -> Floats:
    """Every candidate alike: what is left where the pronoun tells nothing."""
    return np.zeros(len(example.candidates))


def _right(scores: Floats, example: Example, allowed: Sequence[int]) -> float:
    """The share of the highest scores among the allowed candidates that are antecedents."""
    best = max(scores[index] for index in allowed)
    picked = [index for index in allowed if scores[index] == best]
    return sum(index in example.antecedents for index in picked) / len(picked)


def _gap(span: Span, pronoun: Span) -> int:
    return max(span[0] - pronoun[1], pronoun[0] - span[1])


def positional_policies() -> list[Policy]:
    """The policies that choose by rank among the candidates."""

    def from_first(rank: int) -> Policy:
        return lambda example: -abs(np.arange(len(example.candidates), dtype=float) - rank)

    def from_last(rank: int) -> Policy:
        return lambda example: -abs(np.arange(len(example.candidates), dtype=float)[::-1] - rank)

    def outwards(rank: int) -> Policy:
        def scores(example: Example) -> Floats:
            order = np.argsort(np.argsort(-nearest(example), kind="stable")).astype(np.float64)
            return -np.abs(order - rank)

        return scores

    def at_offset(offset: int) -> Policy:
        return lambda example: -abs(token_offsets(example) - offset)

    ranked = [build(rank) for rank in range(6) for build in (from_first, from_last, outwards)]
    return [*ranked, *(at_offset(offset) for offset in range(-_MAX_OFFSET, _MAX_OFFSET + 1))]


@lru_cache(maxsize=4096)  # one text is cut into words for every offset that is tried
def token_starts(text: str) -> list[int]:
    """Where each word of a text starts."""
    return [match.start() for match in WORDS.finditer(text)]


def token_offsets(example: Example) -> Floats:
    """How many tokens after the pronoun each candidate's first mention begins; before it, a negative number."""
    starts = token_starts(example.text)
    pronoun = bisect_left(starts, example.pronoun[0])
    return np.array([bisect_left(starts, spans[0][0]) - pronoun for spans in example.candidates], dtype=float)

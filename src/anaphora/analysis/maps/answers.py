"""A model's answers about pronouns: a candidate or "none of them"; a model without a prediction head has none.

N items of M candidates at most. An answer is the number of a candidate or `NO_CANDIDATE`; the answers of a model that
may have no prediction head are `Answers | None`. Scores (N, M + 1) tell how well each candidate answers, last "none of
them"; the highest is the answer, and two names that are the same tokens to a model have the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anaphora.data.example import Example

NO_CANDIDATE = -1
"""The answer "none of them"."""

CandidateNumbers = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Answers:
    """A model's answer to each of N items.

    Attributes:
        candidates: (N,) the number of the candidate that the model names, or `NO_CANDIDATE`; the first of several with
            the highest score.
        correct: (N,) 1 if that is right, else 0; for ties, the share of tied answers that are right.
    """

    candidates: CandidateNumbers
    correct: Floats

    @classmethod
    def about(cls, examples: Sequence[Example], candidates: CandidateNumbers) -> Answers:
        """Return the answers to some examples, checked against their antecedents."""
        right = [is_correct(answer, example) for answer, example in zip(candidates.tolist(), examples, strict=True)]
        return cls(candidates, np.array(right, dtype=np.float64))

    @classmethod
    def from_scores(cls, examples: Sequence[Example], scores: NDArray[np.floating]) -> Answers:
        """Return the answers with the highest of some scores, (N, M + 1)."""
        strongest = scores.argmax(axis=1).astype(np.int64)
        candidates = np.where(strongest == scores.shape[1] - 1, NO_CANDIDATE, strongest)
        return cls(candidates, shares_right(scores, right_answers(examples, scores.shape[1])))

    @classmethod
    def in_order(cls, parts: Iterable[tuple[NDArray[np.int64], Answers]]) -> Answers:
        """Return the answers to all items from those to parts of them, each part with the numbers of its items."""
        numbers, answers = zip(*parts, strict=True)
        order = np.argsort(np.concatenate(numbers))
        whole = cls.joined(answers)
        return cls(whole.candidates[order], whole.correct[order])

    @classmethod
    def joined(cls, parts: Sequence[Answers]) -> Answers:
        """Return the answers to some items and then to others."""
        return cls(
            np.concatenate([part.candidates for part in parts]), np.concatenate([part.correct for part in parts])
        )

    @property
    def undecided(self) -> Bools:
        """Return (N,) whether a right and a wrong answer share the highest score, so that the result is arbitrary."""
        return (self.correct > 0) & (self.correct < 1)


def right_answers(examples: Sequence[Example], scores: int) -> Bools:
    """Return which answers, with "none of them" last, are right: (N, scores)."""
    right = np.zeros((len(examples), scores), dtype=np.bool_)
    for row, example in zip(right, examples, strict=True):
        row[list(example.antecedents) or [NO_CANDIDATE]] = True
    return right


def shares_right(scores: NDArray[np.floating], right: Bools) -> Floats:
    """Return the share of an item's highest scores that belong to right answers: (N, K) and (N, K) -> (N,)."""
    highest = scores == scores.max(axis=1, keepdims=True)
    shares: Floats = (highest & right).sum(axis=1) / highest.sum(axis=1)
    return shares


def is_correct(answer: int, example: Example) -> bool:
    """Check whether an answer is an antecedent, or "none of them" if there is no antecedent."""
    return answer in example.antecedents if example.antecedents else answer == NO_CANDIDATE


def correctness(answers: Answers | None, items: int) -> NDArray[np.float64]:
    """Return whether each item is answered correctly, (N,), as numbers; NaN without an answer."""
    return np.full(items, np.nan) if answers is None else answers.correct

"""Predicted antecedents of the pronouns of N items, called answers.

An item is a pronoun in a text, with up to M candidates. An answer is the index of a candidate, or `NO_CANDIDATE` for
"none of them". Scores, (N, M + 1), have a column for each candidate and a last column for "none of them"; the answer is
the one with the highest score. If the model answers by predicting a token, candidates that consist of the same tokens
have equal scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anaphora.data.example import Example

NO_CANDIDATE = -1
"""Index that stands for the answer "none of them"."""
UNDECIDED = -3
"""Index that stands for a tie between right and wrong answers, so that it is not counted as the first tied answer."""

CandidateNumbers = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers of a model to N items."""

    candidates: CandidateNumbers  # index of the predicted candidate, or `NO_CANDIDATE`, (N,); the first in a tie
    correct: Floats  # 1 for a right answer, else 0, (N,); in a tie, the share of tied answers that are right
    silent: Floats  # 1 for "none of them", else 0, (N,); in a tie, the share of tied answers that are "none of them"

    @classmethod
    def about(cls, examples: Sequence[Example], candidates: CandidateNumbers) -> Answers:
        """Return the answers with the given indices of candidates, (N,), and with their correctness."""
        most = max((len(example.candidates) for example in examples), default=0)
        right = right_answers(examples, most + 1)[np.arange(len(examples)), candidates]
        return cls(candidates, right.astype(np.float64), (candidates == NO_CANDIDATE).astype(np.float64))

    @classmethod
    def from_scores(cls, examples: Sequence[Example], scores: NDArray[np.floating]) -> Answers:
        """Return the answers with the highest scores; `scores` is (N, M + 1), with "none of them" last."""
        strongest = scores.argmax(axis=1).astype(np.int64)
        candidates = np.where(strongest == scores.shape[1] - 1, NO_CANDIDATE, strongest)
        none = np.broadcast_to(np.arange(scores.shape[1]) == scores.shape[1] - 1, scores.shape)
        right = right_answers(examples, scores.shape[1])
        return cls(candidates, shares_right(scores, right), shares_right(scores, none))

    @classmethod
    def in_order(cls, parts: Iterable[tuple[NDArray[np.int64], Answers]]) -> Answers:
        """Concatenate answers to batches of items, and sort them by item.

        Args:
            parts: for each batch, the indices of its n items in the split, (n,), and the answers to these items.
        """
        numbers, answers = zip(*parts, strict=True)
        order = np.argsort(np.concatenate(numbers))
        whole = cls.joined(answers)
        return cls(whole.candidates[order], whole.correct[order], whole.silent[order])

    @classmethod
    def joined(cls, parts: Sequence[Answers]) -> Answers:
        """Concatenate answers to consecutive parts of the items."""
        return cls(
            np.concatenate([part.candidates for part in parts]),
            np.concatenate([part.correct for part in parts]),
            np.concatenate([part.silent for part in parts]),
        )

    @property
    def undecided(self) -> Bools:
        """Return a mask of the items on which right and wrong answers tie for the highest score, (N,)."""
        return (self.correct > 0) & (self.correct < 1)


def right_answers(examples: Sequence[Example], scores: int) -> Bools:
    """Return a mask of right answers, (N, `scores`). "None of them" is last, and is right if there is no antecedent."""
    right = np.zeros((len(examples), scores), dtype=np.bool_)
    for row, example in zip(right, examples, strict=True):
        row[list(example.antecedents) or [NO_CANDIDATE]] = True
    return right


def shares_right(scores: NDArray[np.floating], right: Bools) -> Floats:
    """Return the share of right answers among those with the highest score: (N,), 1 or 0 without a tie.

    The scores of K answers and the mask of the right ones are (N, K).
    """
    highest = scores == scores.max(axis=1, keepdims=True)
    return np.asarray((highest & right).sum(axis=1) / highest.sum(axis=1))


def shares_chosen(scores: NDArray[np.floating]) -> Floats:
    """Return 1 for the answer with the highest score, 1 / k for each of k tied answers, else 0: (N, K) -> (N, K)."""
    highest = scores == scores.max(axis=1, keepdims=True)
    return np.asarray(highest / highest.sum(axis=1, keepdims=True))


def correctness(answers: Answers | None, items: int) -> NDArray[np.float64]:
    """Return the correctness of answers to N items, (N,); NaN for all items if `answers` is None."""
    return np.full(items, np.nan) if answers is None else answers.correct

"""A model's answers about pronouns: a candidate, or "none of them"; without a prediction head it has no answers.

N items. An answer is the number of a candidate or `NO_CANDIDATE`; the answers of a model that may have no prediction
head are `Answers | None`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anaphora.data.example import Example

NO_CANDIDATE = -1
"""The answer "none of them"."""

CandidateNumbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Answers:
    """A model's answer to each of N items.

    Attributes:
        candidates: (N,) the number of the candidate that the model names, or `NO_CANDIDATE`.
        correct: (N,) 1 where that is right, else 0.
    """

    candidates: CandidateNumbers
    correct: NDArray[np.float64]

    @classmethod
    def about(cls, examples: Sequence[Example], candidates: CandidateNumbers) -> Answers:
        """The answers to some examples, checked against their antecedents."""
        right = [is_correct(answer, example) for answer, example in zip(candidates.tolist(), examples, strict=True)]
        return cls(candidates, np.array(right, dtype=np.float64))


def is_correct(answer: int, example: Example) -> bool:
    """Whether an answer names an antecedent, or no candidate where there is none."""
    return answer in example.antecedents if example.antecedents else answer == NO_CANDIDATE


def correctness(answers: Answers | None, items: int) -> NDArray[np.float64]:
    """Whether each of some items is answered rightly, (N,), for means; NaN, no value, where nothing is answered."""
    return np.full(items, np.nan) if answers is None else answers.correct


def named_candidates(strongest: CandidateNumbers, scores: int) -> CandidateNumbers:
    """Answers from the place of the highest of so many scores: those of the candidates, and of "none of them" last."""
    return np.where(strongest == scores - 1, NO_CANDIDATE, strongest)

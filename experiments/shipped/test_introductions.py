"""Tests that an answer is correct if it is an antecedent, and confident from a probability of 0.9 on."""

from __future__ import annotations

import pytest

from anaphora.api.pronoun_answers import CandidateProbability, PronounAnswer
from anaphora.data.own_sentence import example_from_query
from experiments.shipped.introductions import counts


@pytest.mark.parametrize(
    ("of_fox", "expected"), [(0.95, (1, 1)), (0.9, (1, 1)), (0.89, (1, 0)), (0.3, (0, 0)), (0.05, (0, 0))]
)
def test_an_answer_counts_by_antecedent_and_probability(of_fox: float, expected: tuple[int, int]) -> None:
    text = "The fox saw a hen before it ran away."
    example = example_from_query(text, "it", ["fox", "hen"], "fox")
    candidates = tuple(
        CandidateProbability(example.words(number), example.candidates[number][0], probability)
        for number, probability in enumerate((of_fox, 1 - of_fox))
    )
    assert counts([example], [PronounAnswer(text, "it", candidates, 0.0)]) == expected

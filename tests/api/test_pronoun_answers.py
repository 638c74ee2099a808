from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import anaphora
from anaphora.analysis.causal.causal_tests import run_subject
from anaphora.api import OpenRun
from anaphora.api.pronoun_answers import CandidateProbability, PronounAnswer
from anaphora.base.errors import UserError
from anaphora.data.own_sentence import example_from_query

QUESTIONS: list[Any] = [
    ("Anna met Tom before she went to the park.", "she", ["Tom", "Anna"]),
    ("小红见到美玲以后，她走了。", "她", ["小红、美玲"]),
    example_from_query("Tom saw Anna, Mary and Emma before he left the park.", "he", ["Tom", "Anna", "Mary", "Emma"]),
]


@pytest.fixture(scope="module")
def run(finished: Path) -> OpenRun:
    return anaphora.load(finished)


def test_every_candidate_has_its_probability_in_the_order_of_the_question(run: OpenRun) -> None:
    answers = run.answers(QUESTIONS)
    assert [[one.words for one in answer.candidates] for answer in answers] == [
        ["Tom", "Anna"],
        ["小红", "美玲"],
        ["Tom", "Anna", "Mary", "Emma"],
    ]
    examples = [one if not isinstance(one, tuple) else example_from_query(*one) for one in QUESTIONS]
    for answer, example in zip(answers, examples, strict=True):
        scores = run_subject(run.run, [example]).scores()[0]
        shares = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
        by_span = {spans[0]: share for spans, share in zip(example.candidates, shares, strict=False)}
        for one in answer.candidates:
            assert answer.text[slice(*one.span)] == one.words
            assert one.probability == pytest.approx(by_span[one.span], abs=1e-5)
        assert answer.none_of_them == pytest.approx(shares[-1], abs=1e-5)
        assert sum(one.probability for one in answer.candidates) + answer.none_of_them == pytest.approx(1)


def test_one_question_and_many_get_the_same_answers(run: OpenRun) -> None:
    together = run.answers(QUESTIONS)
    assert anaphora.answers(run, []) == []
    for question, answer in zip(QUESTIONS, together, strict=True):
        (alone,) = anaphora.answers(run, [question])
        np.testing.assert_allclose(
            [one.probability for one in alone.candidates], [one.probability for one in answer.candidates], atol=1e-5
        )
        if isinstance(question, tuple) and len(question[2]) > 1:
            assert run.answer(*question) == alone.answer


def test_an_answer_is_printed_with_its_probabilities() -> None:
    both = (CandidateProbability("Tom", (9, 12), 0.251), CandidateProbability("Anna", (0, 4), 0.7))
    answer = PronounAnswer("Anna met Tom before she went to the park.", "she", both, none_of_them=0.0)
    assert str(answer) == "she: Tom 0.25, Anna 0.70"
    assert str(replace(answer, none_of_them=0.049)) == "she: Tom 0.25, Anna 0.70, none of them 0.05"
    twice = (CandidateProbability("Anna", (0, 4), 0.25), CandidateProbability("Anna", (9, 13), 0.75))
    answer = PronounAnswer("Anna met Anna before she went.", "she", twice, none_of_them=0.0)
    assert str(answer) == "she: Anna:1 0.25, Anna:2 0.75"


def test_words_that_the_vocabulary_lacks_are_named(run: OpenRun) -> None:
    (answer,) = run.answers([("Anna met Tom☃ before she went to the park.", "she", ["Anna", "Tom"])])
    assert answer.unread == ("☃",)


@pytest.mark.parametrize(
    ("questions", "message"),
    [
        ("Anna met Tom.", r"questions \('Anna met Tom.'\) must be a list, each \(text, pronoun, \[candidate, ...\]\)"),
        ([("Anna met Tom.", "she")], r"questions\[0\]: \('Anna met Tom.', 'she'\) must be \(text, pronoun"),
        ([QUESTIONS[0], (3, "she", ["Anna"])], r"questions\[1\]: \(3, 'she', \['Anna'\]\) must be"),
        ([QUESTIONS[0], ("Anna left.", "she", ["Anna"])], r"questions\[1\]: pronoun \('she'\) is not in the text"),
        ([("Anna left as she was ill.", "she", [])], r"questions\[0\]: an answer needs at least one candidate"),
        ([("Anna left as she was ill.", "she", "Anna")], r"questions\[0\]: candidates \('Anna'\) must be a list"),
    ],
)
def test_a_wrong_question_is_named_by_its_number(run: OpenRun, questions: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        run.answers(questions)


def test_a_run_that_labels_texts_answers_no_questions(labelled: Path) -> None:
    with pytest.raises(UserError, match="answers no pronoun question"):
        anaphora.load(labelled).answers(QUESTIONS)

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from anaphora.analysis.maps.answers import NO_CANDIDATE, Answers
from anaphora.analysis.maps.capture import capture, predict_answers, whole_maps
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.example import Example
from anaphora.model.pronoun_model import PronounModel
from anaphora.runs.directory import Run, load
from anaphora.runs.items import encode, evaluation_splits
from anaphora.settings.model.prediction import NoPrediction


@pytest.fixture(scope="module")
def run(finished: Path) -> Run:
    return load(finished)


@pytest.fixture(scope="module")
def data(run: Run) -> EncodedSplit:
    return encode(run, evaluation_splits(run, "test").measured)


def test_items_come_in_the_splits_order_with_the_rows_of_their_own_sentence(run: Run, data: EncodedSplit) -> None:
    captured = capture(run.model, data, run.config.batching)
    assert [record.example for record in captured.records] == list(data.examples)
    for record in captured.records[::5]:
        tokens, maps = whole_maps(run.model, run.tokenizer, record.example)
        own = tokens.covering(record.example.pronoun)
        np.testing.assert_allclose(record.weights, maps[:, :, own].mean(axis=2), atol=1e-5)
        assert record.spans == tokens.spans


def test_packing_changes_neither_rows_nor_answers(run: Run, data: EncodedSplit) -> None:
    packed = capture(run.model, data, run.config.batching)
    alone = capture(
        run.model, data, replace(run.config.batching, tokens=data.max_tokens(), row_tokens=data.max_tokens())
    )
    assert packed.answers is not None and alone.answers is not None
    np.testing.assert_array_equal(packed.answers.candidates, alone.answers.candidates)
    for one, other in zip(packed.records, alone.records, strict=True):
        np.testing.assert_allclose(one.weights, other.weights, atol=1e-5)


def test_an_answer_is_the_best_score_and_right_if_it_is_an_antecedent(run: Run, data: EncodedSplit) -> None:
    captured = capture(run.model, data, run.config.batching)
    assert captured.answers is not None
    named = captured.answers.candidates.tolist()
    assert set(named) <= {0, 1}
    wanted = [answer in example.antecedents for answer, example in zip(named, data.examples, strict=True)]
    assert captured.correct.tolist() == [float(each) for each in wanted]


def test_a_model_without_a_prediction_head_answers_nothing(run: Run, data: EncodedSplit) -> None:
    model = PronounModel(run.config.model, NoPrediction(), run.tokenizer.size).eval()
    captured = capture(model, data, run.config.batching)
    assert captured.answers is None
    assert predict_answers(model, data, run.config.batching) is None
    assert np.isnan(captured.correct).all()
    assert len(captured.records) == len(data)


@pytest.mark.parametrize(
    ("antecedents", "answer", "right"),
    [
        ((0,), 0, True),
        ((0,), 1, False),
        ((0, 1), 1, True),
        ((0,), NO_CANDIDATE, False),
        ((), NO_CANDIDATE, True),
        ((), 0, False),
    ],
)
def test_none_of_them_is_right_where_nothing_is_meant(antecedents: tuple[int, ...], answer: int, right: bool) -> None:
    example = Example(
        text="a b c", language="en", pronoun=(4, 5), candidates=(((0, 1),), ((2, 3),)), antecedents=antecedents
    )
    assert Answers.about([example], np.array([answer])).correct.tolist() == [right]

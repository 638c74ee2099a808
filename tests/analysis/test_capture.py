from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from anaphora.analysis.capture import is_right, look, whole_maps
from anaphora.analysis.settings import Analysis
from anaphora.checkpoint import Run, load
from anaphora.data.batch import Encoded
from anaphora.data.example import Example
from anaphora.model.settings import NoReadout
from anaphora.workflow import encode, material_of


@pytest.fixture(scope="module")
def run(finished: Path) -> Run:
    return load(finished)


@pytest.fixture(scope="module")
def data(run: Run) -> Encoded:
    return encode(run, material_of(run, Analysis(run=str(run.directory))).measured)


def test_items_come_in_the_splits_order_with_the_rows_of_their_own_sentence(run: Run, data: Encoded) -> None:
    readout = run.config.task.readout
    seen = look(run.resolver, data, run.config.batching, readout)
    assert [record.example for record in seen.records] == list(data.examples)
    for record in seen.records[::5]:
        tokens, maps = whole_maps(run.resolver, run.tokenizer, record.example, readout)
        own = tokens.covering(record.example.pronoun)
        np.testing.assert_allclose(record.weights, maps[:, :, own].mean(axis=2), atol=1e-5)
        assert record.spans == tokens.spans


def test_packing_changes_neither_rows_nor_answers(run: Run, data: Encoded) -> None:
    readout = run.config.task.readout
    packed = look(run.resolver, data, run.config.batching, readout)
    alone = look(
        run.resolver, data, replace(run.config.batching, tokens=data.longest(), row_tokens=data.longest()), readout
    )
    np.testing.assert_array_equal(packed.answers, alone.answers)
    for one, other in zip(packed.records, alone.records, strict=True):
        np.testing.assert_allclose(one.weights, other.weights, atol=1e-5)


def test_an_answer_is_the_best_score_and_right_if_it_is_an_antecedent(run: Run, data: Encoded) -> None:
    seen = look(run.resolver, data, run.config.batching, run.config.task.readout)
    assert set(seen.answers.tolist()) <= {0, 1}
    wanted = [answer in example.antecedents for answer, example in zip(seen.answers, data.examples, strict=True)]
    assert seen.correct.tolist() == [float(each) for each in wanted]


def test_a_model_without_a_readout_answers_nothing(run: Run, data: Encoded) -> None:
    torch.manual_seed(0)
    seen = look(run.resolver, data, run.config.batching, NoReadout())
    assert set(seen.answers.tolist()) == {-2}
    assert np.isnan(seen.correct).all()
    assert len(seen.records) == len(data)


@pytest.mark.parametrize(
    ("antecedents", "answer", "right"),
    [((0,), 0, True), ((0,), 1, False), ((0, 1), 1, True), ((0,), -1, False), ((), -1, True), ((), 0, False)],
)
def test_none_of_them_is_right_where_nothing_is_meant(antecedents: tuple[int, ...], answer: int, right: bool) -> None:
    example = Example(
        text="a b c", language="en", pronoun=(4, 5), candidates=(((0, 1),), ((2, 3),)), antecedents=antecedents
    )
    assert is_right(answer, example) is right

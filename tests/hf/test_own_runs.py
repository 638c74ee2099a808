"""Tests that a masked-language-model run has the same causal results as its weights in `transformers`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import anaphora
from anaphora.analysis.causal.language_models import LanguageModelSubject, MaskedRun
from anaphora.analysis.causal.subjects import ABLATION_MODES, Edges
from anaphora.analysis.results.scores import Head
from anaphora.data.own_sentence import example_from_query
from anaphora.runs.directory import Run, load
from anaphora.training.run import train

BERT_LIKE = ("model/position=learned", "model.norm.placement=post", "model.norm.embedding=true")
MASKED_ALONE = ("task/prediction=none", "task.masked_lm=0.3", "model.output_transform=true")
EXAMPLES = [
    example_from_query("Anna helped Emma because she was weak.", "she", ["Anna", "Emma"], "Anna"),
    example_from_query("The old man left the park because he was tired.", "he", ["The old man", "park"], "The old man"),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, tiny: Callable[..., Any]) -> Run:
    folder = tmp_path_factory.mktemp("masked")
    return load(train(tiny(folder, *BERT_LIKE, *MASKED_ALONE)))


@pytest.fixture(scope="module")
def ours(run: Run) -> LanguageModelSubject:
    return LanguageModelSubject(MaskedRun(run), EXAMPLES)


@pytest.fixture
def exported(run: Run, tmp_path: Path, script: Callable[..., Any]) -> LanguageModelSubject:
    pytest.importorskip("transformers")
    from anaphora.hf.editable import TransformersLanguageModel
    from anaphora.hf.reader import open_model

    assert script("export", f"run={run.directory}", f"output={tmp_path / 'out'}").status == 0
    return LanguageModelSubject(TransformersLanguageModel(open_model(tmp_path / "out")), EXAMPLES)


def test_the_answers_and_the_maps_are_those_of_its_export(
    ours: LanguageModelSubject, exported: LanguageModelSubject
) -> None:
    assert ours.shape == exported.shape
    assert [tokens.ids for tokens in ours.tokens] == [tokens.ids for tokens in exported.tokens]
    np.testing.assert_allclose(ours.scores(), exported.scores(), atol=1e-5)
    theirs = dict(exported.maps())
    for item, maps in ours.maps():
        np.testing.assert_allclose(maps, theirs[item], atol=1e-5)


@pytest.mark.parametrize("mode", ABLATION_MODES)
def test_an_ablated_head_changes_the_answers_as_in_its_export(
    ours: LanguageModelSubject, exported: LanguageModelSubject, mode: str
) -> None:
    ablated = ours.ablated([Head(0, 0)], mode)
    assert abs(ablated[:, :2] - ours.scores()[:, :2]).max() > 1e-4
    np.testing.assert_allclose(ablated, exported.ablated([Head(0, 0)], mode), atol=1e-5)


def test_edges_and_rows_are_edited_as_in_its_export(ours: LanguageModelSubject, exported: LanguageModelSubject) -> None:
    (pronoun,) = ours.tokens[0].covering(ours.examples[0].pronoun)
    edge = Edges(*(np.array([number]) for number in (0, 1, 0, pronoun, 1)))
    for edited in ("knocked_out", "value_zeroed"):
        scores = getattr(ours, edited)(edge)
        assert abs(scores[0, :2] - ours.scores()[0, :2]).max() > 1e-5
        np.testing.assert_allclose(scores, getattr(exported, edited)(edge), atol=1e-5)
    uniform = np.full_like(dict(ours.maps())[0][:, :, [pronoun]], 1 / len(ours.tokens[0].ids))
    patched = ours.patched([Head(0, 0)], {0: uniform})
    assert abs(patched[0, :2] - ours.scores()[0, :2]).max() > 1e-4
    np.testing.assert_allclose(patched, exported.patched([Head(0, 0)], {0: uniform}), atol=1e-5)


def test_its_scores_come_with_causal_tests(run: Run, table: Path) -> None:
    pytest.importorskip("pandas")
    scores = anaphora.score(str(run.directory), data="jsonl", path=table, causal_items=8)
    assert scores.untested is None
    assert scores.evidence.causal is not None

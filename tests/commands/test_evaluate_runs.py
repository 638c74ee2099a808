from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anaphora.analysis.tasks.task_accuracy import MODEL, OWN_FOLDS_SUFFIX, answer_transfer
from anaphora.base.errors import UserError
from anaphora.commands.evaluate import Evaluation, evaluate, evaluate_runs
from anaphora.data.example import Example
from anaphora.data.store import load as load_corpus
from anaphora.runs.directory import load
from anaphora.settings.data import OwnExamples
from anaphora.training.run import train


@pytest.fixture(scope="module")
def other(table: Path, tmp_path_factory: pytest.TempPathFactory) -> OwnExamples:
    """Return sentences that the runs have not seen, and two that they have seen."""
    rows = [json.loads(line) for line in table.read_text(encoding="utf-8").splitlines()]
    path = tmp_path_factory.mktemp("other") / "items.jsonl"
    new = [{**row, "text": row["text"][:-1] + "!", "split": "test"} for row in rows]
    known = [{**row, "split": "test"} for row in rows[:2]]
    path.write_text("".join(json.dumps(row) + "\n" for row in new + known), encoding="utf-8")
    return OwnExamples(path=str(path))


def test_items_that_the_runs_have_seen_are_left_out(
    finished: Path, other: OwnExamples, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = evaluate_runs(
        Evaluation(runs=[str(finished)], data=other, by=["template"], output=str(tmp_path / "table.csv"))
    )
    assert {row["items"] for row in rows if not row["factor"]} == {60}
    printed = capsys.readouterr().out
    assert (
        "left out: 2 items" in printed and "jsonl, test split, answered by runs on jsonl, number of runs: 1;" in printed
    )
    assert (tmp_path / "table.csv").exists()
    names = {row["policy"] for row in rows}
    assert {MODEL, "chance", "nearest", "bag_of_words", f"bag_of_words{OWN_FOLDS_SUFFIX}"} <= names


def test_a_factor_that_the_items_lack_is_refused_before_the_runs_answer(
    finished: Path, other: OwnExamples, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anaphora.analysis.tasks.task_accuracy.answer_transfer", None)
    for wrong in ({"by": ["colour"]}, {"contrast": "colour"}):
        with pytest.raises(UserError, match=r"\('colour'\) must be one of the factors"):
            evaluate_runs(Evaluation(runs=[str(finished)], data=other, **wrong))


def test_each_run_is_asked_and_shortcuts_learn_from_the_runs_data(finished: Path, other: OwnExamples) -> None:
    run = load(finished)
    corpus, items = load_corpus(run.config.data), load_corpus(other).examples("test")
    training = corpus.examples("train")
    reversed_answers = [_otherwise(example) for example in training]
    answers = answer_transfer([run, run], [training, reversed_answers], items, folds=3, seed=0)
    first, second = (each.candidates.tolist() for each in answers.answers)
    assert len(first) == len(items) and first == second
    right = answers.shortcuts["entity_cue"]
    assert right.shape == (2, len(items))
    assert right[0].mean() > 0.9 and right[1].mean() < 0.1  # fitted on the rule, and on its opposite
    assert answers.shortcuts[f"entity_cue{OWN_FOLDS_SUFFIX}"].mean() > 0.9  # pronoun and name are the rule here


def test_no_shortcut_learns_from_the_group_that_it_is_asked_about(finished: Path, other: OwnExamples) -> None:
    """Each group has its own words, so a model that learns them is at chance on other folds."""
    run = load(finished)
    examples = [
        Example(
            text=f"Ann{number} met Bob{number} before she left",
            language="en",
            pronoun=(len(f"Ann{number} met Bob{number} before "), len(f"Ann{number} met Bob{number} before she")),
            candidates=(
                ((0, len(f"Ann{number}")),),
                ((len(f"Ann{number} met "), len(f"Ann{number} met Bob{number}")),),
            ),
            antecedents=(0,),
            group=str(number),
        )
        for number in range(12)
    ]
    answers = answer_transfer([run], [load_corpus(run.config.data).examples("train")], examples, folds=4, seed=0)
    assert np.allclose(answers.shortcuts[f"most_frequent{OWN_FOLDS_SUFFIX}"], 0.5)
    assert {"words", "words_and_pairs", f"words{OWN_FOLDS_SUFFIX}", f"words_and_pairs{OWN_FOLDS_SUFFIX}"} <= set(
        answers.shortcuts
    )


def test_runs_that_cannot_be_put_into_one_row_are_refused(
    finished: Path, tiny: Callable[..., Any], other: OwnExamples, table: Path, tmp_path: Path
) -> None:
    longer = train(tiny(tmp_path, "optimizer.clip=2"))
    with pytest.raises(UserError, match="other settings"):
        evaluate_runs(Evaluation(runs=[str(finished), str(longer)], data=other))
    with pytest.raises(UserError, match="no item that the runs have not seen"):
        evaluate_runs(Evaluation(runs=[str(finished)], data=OwnExamples(path=str(table))))


def test_runs_whose_data_are_gone_are_compared_in_their_folder_or_each_is_measured_alone(
    finished: Path, other: OwnExamples, table: Path, tmp_path: Path
) -> None:
    """The comparison leaves out what the runs have seen, so naming other data does not help."""
    moved = tmp_path / "run"
    shutil.copytree(finished, moved)
    config = moved / "config.yaml"
    config.write_text(config.read_text(encoding="utf-8").replace(str(table), "gone.jsonl"), encoding="utf-8")
    with pytest.raises(UserError, match=r"measure the run alone \(run=\.\.\.\) on other data"):
        evaluate_runs(Evaluation(runs=[str(moved)], data=other))
    evaluate(Evaluation(run=str(moved), data=other, output=str(tmp_path / "alone")))
    assert (tmp_path / "alone" / "test_answers.json").exists()


def test_a_runs_own_test_split_is_asked_as_far_as_its_texts_are_new(
    tiny: Callable[..., Any], table: Path, tmp_path: Path
) -> None:
    rows = [json.loads(line) for line in table.read_text(encoding="utf-8").splitlines()]
    names = ("group", "minimal_pair")
    new = [
        {
            **row,
            "text": row["text"][:-1] + "!",
            "split": "test",
            **{name: f"new {row[name]}" for name in names if name in row},
        }
        for row in rows[:12]
    ]
    own = tmp_path / "items.jsonl"
    own.write_text("".join(json.dumps(row) + "\n" for row in rows + new), encoding="utf-8")
    run = train(tiny(tmp_path, f"data.path={own}"))
    answers = evaluate_runs(Evaluation(runs=[str(run)], data=OwnExamples(path=str(own))))
    assert {row["items"] for row in answers if not row["factor"]} == {12}


def _otherwise(example: Example) -> Example:
    return replace(example, antecedents=tuple(1 - index for index in example.antecedents))


def test_a_head_of_a_network_without_attention_is_refused(tiny: Callable[..., Any], tmp_path: Path) -> None:
    run = train(tiny(tmp_path, "model/attention=gru", "trainer.limit_steps=1"))
    with pytest.raises(UserError, match="no attention maps"):
        evaluate(Evaluation(run=str(run), layer=0, head=0))
    evaluate(Evaluation(run=str(run)))

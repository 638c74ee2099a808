"""Tests that a run's own data are those on which it was trained."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from anaphora.base.errors import UserError
from anaphora.data.example import Example, sample_quads
from anaphora.data.store import Corpus
from anaphora.data.tokens.vocabulary import word_vocabulary
from anaphora.runs.directory import Run, load
from anaphora.runs.items import (
    StoredExamples,
    StreamedExamples,
    corpus_of,
    counts_of,
    evaluation_splits,
    model_digest,
    questions_of,
)
from anaphora.settings.data import ExternalCorpus
from anaphora.training.reuse import finish_training
from conftest import Script


@pytest.fixture
def run(finished: Path) -> Run:
    return load(finished)


def reading(run: Run, rows: list[dict[str, object]], path: Path) -> Run:
    """Return the run with settings that name another file, with these rows."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    data = run.config.data
    assert isinstance(data, ExternalCorpus)
    return dataclasses.replace(
        run, config=dataclasses.replace(run.config, data=dataclasses.replace(data, path=str(path)))
    )


def data_file_of(directory: Path) -> str:
    """Return the data file in a run's settings."""
    data = load(directory).config.data
    assert isinstance(data, ExternalCorpus)
    return data.path


def rows_of(run: Run) -> list[dict[str, object]]:
    data = run.config.data
    assert isinstance(data, ExternalCorpus)
    return [json.loads(line) for line in Path(data.path).read_text(encoding="utf-8").splitlines()]


def test_the_same_rows_in_another_file_and_order_are_the_runs_own_data(run: Run, tmp_path: Path) -> None:
    moved = reading(run, rows_of(run), tmp_path / "moved.jsonl")
    assert corpus_of(moved).examples("test") == corpus_of(run).examples("test")


@pytest.mark.parametrize("kind", [StoredExamples, StreamedExamples])
@pytest.mark.parametrize("numbers", [None, [3, 1, 2]])
def test_examples_of_a_split_are_those_with_the_given_indices(
    kind: type[StoredExamples], numbers: list[int] | None, run: Run
) -> None:
    corpus = corpus_of(run)
    every = corpus.examples("test")
    expected = every if numbers is None else [every[number] for number in numbers]
    examples = kind(corpus, "test", numbers)
    assert list(examples) == expected and len(examples) == len(expected)
    assert examples[1] == expected[1] and list(examples[1:]) == expected[1:]
    assert examples.questions() == [example.question for example in expected]
    assert counts_of(examples) == counts_of(expected) == [(2, 1)] * len(expected)


def test_a_file_that_has_changed_since_training_is_refused(run: Run, tmp_path: Path) -> None:
    changed = reading(run, rows_of(run)[8:], tmp_path / "changed.jsonl")
    with pytest.raises(UserError, match=r"changed\.jsonl\) no longer gives the training items of run"):
        evaluation_splits(changed, "test")
    assert evaluation_splits(changed, "test", data=changed.config.data).measured


def test_a_file_with_other_answers_is_refused(run: Run, tmp_path: Path) -> None:
    flipped = [{**row, "antecedents": [1 - number for number in row["antecedents"]]} for row in rows_of(run)]  # type: ignore[attr-defined]
    with pytest.raises(UserError, match="no longer gives the training items of run"):
        evaluation_splits(reading(run, flipped, tmp_path / "flipped.jsonl"), "test")


def test_a_file_with_other_spans_is_refused(run: Run, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = rows_of(run)
    for row in rows:
        last = max(row["candidates"])
        last[1] = re.compile(r"\W*\w*").match(row["text"], last[1]).end()  # type: ignore[union-attr]
    with pytest.raises(UserError, match="no longer gives the training items of run"):
        evaluation_splits(reading(run, rows, tmp_path / "longer.jsonl"), "test")


def test_a_finished_run_is_not_used_again_for_a_file_that_has_changed(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "run")
    run = load(tmp_path / "run")
    config = dataclasses.replace(run.config, output=str(tmp_path), name="run")
    assert finish_training(config, "") == tmp_path / "run"
    data = Path(data_file_of(tmp_path / "run"))
    before = data.read_bytes()
    try:
        reading(run, rows_of(run)[8:], data)
        with pytest.raises(UserError, match="no longer gives the training items of run"):
            finish_training(config, "")
    finally:
        data.write_bytes(before)


def test_a_run_of_before_that_recorded_no_texts_is_measured_as_ever(own_run: Path, tmp_path: Path) -> None:
    record = json.loads((own_run / "training.json").read_text(encoding="utf-8"))
    del record["training_examples"]
    (own_run / "training.json").write_text(json.dumps(record), encoding="utf-8")
    old = load(own_run)
    assert evaluation_splits(reading(old, rows_of(old)[8:], tmp_path / "changed.jsonl"), "test").measured


def test_an_exported_run_keeps_what_it_was_trained_on(finished: Path, run: Run, tmp_path: Path, script: Script) -> None:
    status, _, err = script("export", f"run={finished}", "format=anaphora", f"output={tmp_path / 'exported'}")
    assert status == 0, err
    exported = load(tmp_path / "exported")
    with pytest.raises(UserError, match="no longer gives the training items"):
        corpus_of(reading(exported, rows_of(run)[8:], tmp_path / "changed.jsonl"))


def test_a_stopped_run_is_not_resumed_on_another_file(
    unfinished: Path, finished: Path, tmp_path: Path, script: Script
) -> None:
    stopped = Path(shutil.copytree(unfinished, tmp_path / "stopped"))
    data = data_file_of(finished)
    rows = Path(data).read_text(encoding="utf-8").splitlines()
    (tmp_path / "changed.jsonl").write_text("\n".join(rows[8:]) + "\n", encoding="utf-8")
    config = (stopped / "config.yaml").read_text(encoding="utf-8")
    (stopped / "config.yaml").write_text(config.replace(data, str(tmp_path / "changed.jsonl")), encoding="utf-8")
    status, _, err = script("train", f"resume={stopped}")
    assert status != 0 and "no longer gives the training items of run" in err and "Traceback" not in err


@pytest.mark.parametrize("items", [None, 24])
def test_the_training_split_of_a_command_is_decoded_only_when_it_is_read(
    run: Run, items: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = corpus_of(run).examples("train")
    decoded: list[str] = []
    stored = Corpus.examples

    def noted(corpus: Corpus, split: str, numbers: Sequence[int] | None = None) -> list[Example]:
        decoded.append(split)
        return stored(corpus, split, numbers)

    monkeypatch.setattr(Corpus, "examples", noted)
    splits = evaluation_splits(run, "test", items=items)
    questions = questions_of(splits.training)
    assert "train" not in decoded and len(splits.training) == len(questions)
    assert list(splits.training) == (sample_quads(training, items) if items else training)
    assert questions == [example.question for example in splits.training] and decoded.count("train") == 1


def test_the_digest_of_a_model_changes_with_its_settings_and_its_tokenizer(run: Run) -> None:
    model = dataclasses.replace(run.config.model, tied_output=not run.config.model.tied_output)
    other_settings = dataclasses.replace(run, config=dataclasses.replace(run.config, model=model))
    other_tokenizer = dataclasses.replace(run, tokenizer=word_vocabulary(["Anna helped Emma."]))
    assert len({model_digest(one) for one in (run, other_settings, other_tokenizer)}) == 3
    assert model_digest(run) == model_digest(dataclasses.replace(run))

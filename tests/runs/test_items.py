"""A run's own data are those that it was trained on."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from anaphora.base.errors import UserError
from anaphora.runs.directory import Run, load
from anaphora.runs.items import corpus_of, evaluation_splits
from anaphora.settings.data import ExternalCorpus


@pytest.fixture
def run(finished: Path) -> Run:
    return load(finished)


def reading(run: Run, rows: list[dict[str, object]], path: Path) -> Run:
    """The run, its settings naming another file with these rows."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    data = run.config.data
    assert isinstance(data, ExternalCorpus)
    return dataclasses.replace(
        run, config=dataclasses.replace(run.config, data=dataclasses.replace(data, path=str(path)))
    )


def rows_of(run: Run) -> list[dict[str, object]]:
    data = run.config.data
    assert isinstance(data, ExternalCorpus)
    return [json.loads(line) for line in Path(data.path).read_text(encoding="utf-8").splitlines()]


def test_the_same_rows_in_another_file_and_order_are_the_runs_own_data(run: Run, tmp_path: Path) -> None:
    moved = reading(run, rows_of(run), tmp_path / "moved.jsonl")
    assert corpus_of(moved).examples("test") == corpus_of(run).examples("test")


def test_a_file_that_has_changed_since_training_is_refused(run: Run, tmp_path: Path) -> None:
    changed = reading(run, rows_of(run)[8:], tmp_path / "changed.jsonl")
    with pytest.raises(UserError, match=r"changed\.jsonl\) does not hold the training split of run"):
        evaluation_splits(changed, "test")
    assert evaluation_splits(changed, "test", data=changed.config.data).measured


def test_a_run_of_before_that_recorded_no_texts_is_measured_as_ever(own_run: Path, tmp_path: Path) -> None:
    record = json.loads((own_run / "training.json").read_text(encoding="utf-8"))
    del record["training_texts"]
    (own_run / "training.json").write_text(json.dumps(record), encoding="utf-8")
    old = load(own_run)
    assert evaluation_splits(reading(old, rows_of(old)[8:], tmp_path / "changed.jsonl"), "test").measured

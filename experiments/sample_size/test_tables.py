"""Tests of the tables: items from a scored run, seeds from several runs and from a study."""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from anaphora.base.errors import UserError
from anaphora.base.files import write_json
from anaphora.studies.grid import StudyCell
from anaphora.studies.plan import StudyPlan
from anaphora.studies.records import RunRecord
from anaphora.studies.summary import summarise
from experiments.sample_size.settings import SampleSize
from experiments.sample_size.tables import print_sample_sizes


@pytest.fixture(scope="module")
def scored(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the finished run with scores, for reading only."""
    from anaphora.commands.score import Scoring, score

    run = Path(shutil.copytree(finished, tmp_path_factory.mktemp("scored") / "one"))
    score(Scoring(run=str(run), untrained=0))
    return run


def rows(**settings: Any) -> dict[tuple[str, str, str], dict[str, Any]]:
    return {(row["of"], row["language"], row["kind"]): row for row in print_sample_sizes(SampleSize(**settings))}


def test_a_run_tells_how_many_items_a_difference_needs(scored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rows(runs=[str(scored)])["one", "en", "all"]["against_a_value"] is None  # all items are of one template
    monkeypatch.setattr("experiments.sample_size.tables.clusters", lambda items: [one.text for one in items])
    few = rows(runs=[str(scored)], points=5)
    stored = json.loads((scored / "metrics.json").read_text())["languages"]
    for language in ("en", "zh"):
        row = few["one", language, "all"]
        assert row["mean"] == pytest.approx(stored[language]["candidate_accuracy"], abs=1e-4)
        assert row["items"] == stored[language]["items"]
        half = rows(runs=[str(scored)], points=2.5)["one", language, "all"]
        assert half["each_of_two"] == pytest.approx(4 * row["each_of_two"], abs=8)
        assert row["each_of_two"] == pytest.approx(2 * row["against_a_value"], abs=2)


def test_the_answers_spread_is_that_of_the_answers(scored: Path) -> None:
    stored = json.loads((scored / "metrics.json").read_text())["languages"]["en"]
    assert rows(runs=[str(scored)], measure="task_accuracy")["one", "en", "all"]["mean"] == pytest.approx(
        stored["task_accuracy"], abs=1e-4
    )


def test_several_runs_tell_of_seeds_and_of_pairs_of_items(scored: Path, tmp_path: Path) -> None:
    for name, move in (("a", 0.0), ("b", 0.1)):
        run = Path(shutil.copytree(scored, tmp_path / name))
        stored = json.loads((run / "metrics.json").read_text())
        stored["languages"]["en"]["candidate_accuracy"] = 0.5 + move
        (run / "metrics.json").write_text(json.dumps(stored))
    both = rows(runs=[str(tmp_path / "?")], output=str(tmp_path / "sizes.csv"))
    assert both["2 runs", "en", "all"]["deviation"] == pytest.approx(0.1 / 2**0.5)
    assert both["2 runs", "en", "all"]["each_of_two"] == 33
    difference = both["b - a", "en", "all"]  # the items' scores are the same ones
    assert (difference["mean"], difference["against_a_value"], difference["each_of_two"]) == (0, None, None)
    with (tmp_path / "sizes.csv").open() as file:
        assert {row["needed"] for row in csv.DictReader(file)} == {"items", "seeds"}


def study(path: Path, **values: list[float | None]) -> Path:
    factors = {"part": {name: [f"{name}=1"] for name in values if name != "base"}}
    plan = StudyPlan(name="study", question="?", prediction="!", factors=factors, seeds=[0, 1, 2, 3])
    cells = [StudyCell(name, "part", (name,), (), None) for name in values]  # type: ignore[arg-type]
    records = [
        RunRecord(
            cell=name,
            seed=seed,
            status="finished",
            groups={"en": {"set": {"candidate_accuracy": shares[seed] if seed < len(shares) else None}}},
        )
        for name, shares in values.items()
        for seed in plan.seeds
    ]
    path.mkdir(exist_ok=True)
    write_json(path / "study.json", summarise(plan, cells, records).to_json())
    return path


def test_a_study_tells_of_its_cells_and_of_their_differences_seed_by_seed(tmp_path: Path) -> None:
    folder = study(tmp_path / "study", base=[0.8, 0.9, 0.7, None], other=[0.81, 0.92, 0.71, 0.5], few=[0.5, None])
    table = rows(study_folder=str(folder))
    assert set(table) == {("base", "en", "set"), ("other", "en", "set"), ("other - base", "en", "set")}
    assert table["base", "en", "set"]["seeds"] == 3
    paired = table["other - base", "en", "set"]
    assert (paired["deviation"], paired["each_of_two"]) == (pytest.approx(0.0057735, rel=1e-3), None)
    assert paired["against_a_value"] < table["other", "en", "set"]["against_a_value"]
    assert rows(study_folder=str(folder / "study.json")) == table


def test_a_published_range_is_enough_for_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = print_sample_sizes(SampleSize(spread=[90.4, 95.4, 5], points=5))
    assert row["deviation"] == pytest.approx(0.0215, abs=1e-4)
    assert (row["against_a_value"], row["each_of_two"]) == (4, 5)
    assert "90.4 to 95.4" in capsys.readouterr().out


def refusal(**settings: Any) -> str:
    with pytest.raises(UserError) as error:
        print_sample_sizes(SampleSize(**settings))
    assert "\n" not in str(error.value)
    return str(error.value)


def test_scores_that_are_missing_or_of_other_items_are_named(scored: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(scored, tmp_path / "run"))
    path = run / "tables" / "scores_test.parquet"
    table = parquet.read_table(path)
    parquet.write_table(table.filter(pyarrow.compute.field("item") > 3), path)
    assert "does not hold the items of the test split of the run's own data; score the run again" in refusal(
        runs=[str(run)]
    )
    path.write_bytes(b"PAR1")
    assert "not a table of scores; score the run again" in refusal(runs=[str(run)])
    path.unlink()
    again = f"score the run again with anaphora score run={run} split=test overwrite=true"
    assert f"{path} is missing: {again}" in refusal(runs=[str(run)])
    (run / "metrics.json").unlink()
    assert "metrics.json is missing: score the run first" in refusal(runs=[str(run)])


def test_runs_that_give_no_answers_are_named(scored: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(scored, tmp_path / "run"))
    path = run / "tables" / "scores_test.parquet"
    table = parquet.read_table(path)
    column = table.schema.get_field_index("task_correct")
    silent = pyarrow.array([None] * len(table), table.schema.field(column).type)
    parquet.write_table(table.set_column(column, "task_correct", silent), path)
    assert refusal(runs=[str(run)], measure="task_accuracy") == (
        f"runs ({run}): no item has task_accuracy; name runs that answer, or choose measure=candidate_accuracy"
    )
    assert rows(runs=[str(run)])


def test_studies_that_are_missing_or_say_nothing_are_named(tmp_path: Path) -> None:
    assert f"study_folder ({tmp_path / 'none'}): there is no {tmp_path / 'none' / 'study.json'}" in refusal(
        study_folder=str(tmp_path / "none")
    )
    one = study(tmp_path / "one", base=[0.5])
    assert "no cell has candidate_accuracy for two or more seeds" in refusal(study_folder=str(one))
    content = json.loads((one / "study.json").read_text())
    (one / "study.json").write_text(json.dumps({**content, "cells": 3}))
    assert "cells: 3 is not a list; run that study again" in refusal(study_folder=str(one))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "give scored runs (runs=[...]), a study (study_folder=...) or a published range (spread=[...])"),
        ({"runs": ["x"], "points": 0}, "points (0) must be above 0 and at most 100"),
        ({"runs": ["x"], "power": 1}, "power (1) must be above 0 and below 1"),
        ({"runs": ["x"], "alpha": 0.9}, "alpha (0.9) must be below power (0.8)"),
        ({"runs": ["x"], "measure": "lift"}, "measure ('lift') must be one of candidate_accuracy, task_accuracy"),
        ({"spread": [95, 90, 5]}, "spread ([95, 90, 5]) must be lowest, highest (in percent) and seeds"),
        ({"spread": [90, 95]}, "spread ([90, 95]) must be lowest, highest (in percent) and seeds"),
        ({"spread": [90, 95, 1]}, "spread ([90, 95, 1]) must be lowest, highest (in percent) and seeds"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        SampleSize(**settings)

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from published import write_folder
from safetensors.torch import load_file

from anaphora.base.errors import UserError
from anaphora.base.files import locked_directory
from anaphora.base.language import CHINESE_CHARACTER
from anaphora.runs.directory import WRITTEN, RunFiles
from anaphora.settings.run import config_yaml
from anaphora.studies import jobs as study_jobs
from anaphora.studies import run as engine
from anaphora.studies.grid import Job, cells_of, jobs_of
from anaphora.studies.plan import StudyPlan
from anaphora.studies.records import FAILURE_FILE, MEASURED_FILE, Query, read_record

ROOT = Path(__file__).parents[2]
CONFIGS = ROOT / "configs"


@pytest.fixture
def planned(table: Path, tmp_path: Path) -> Callable[..., StudyPlan]:
    """Return a function that returns a study of two cells on the small table, with short runs and the given changes."""
    base = ["trainer=smoke", "data=jsonl", f"data.path={table}", "model.width=16", "model.layers=2",
            "batching.tokens=96", "batching.row_tokens=32", "optimizer.steps=4", "validation.every=2"]  # fmt: skip

    def made(**changes: Any) -> StudyPlan:
        chosen: dict[str, Any] = {
            "name": "small",
            "question": "Does it?",
            "prediction": "It does.",
            "base": base,
            "factors": {"heads": {"one": ["model.attention.heads=1"]}},
            "seeds": [0],
            "output": str(tmp_path),
            "formats": ["png"],
        }
        return StudyPlan(**(chosen | changes))

    return made


def jobs(plan: StudyPlan) -> list[Job]:
    return jobs_of(plan, cells_of(plan, CONFIGS))


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (["model.layrs=1"], "study small, cell wrong: .*layrs"),
        (["model.width=7"], r"study small, cell wrong: model.width \(7\) must be a multiple"),
        (["seed=3"], "study small, cell wrong: seed=3 sets seed, which the study decides"),
        (["model.attention.heads=2"], "study small, cell wrong: its settings are those of cell base; it would change"),
    ],
)
def test_a_wrong_cell_stops_the_study_before_anything_runs(
    cell: list[str], message: str, planned: Callable[..., StudyPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "train_and_measure", lambda *_: pytest.fail("something ran"))
    with pytest.raises(UserError, match=message):
        engine.run_study(planned(factors={"x": {"wrong": cell}}), CONFIGS)


def test_data_that_are_not_there_stop_the_study_before_anything_runs(
    planned: Callable[..., StudyPlan], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "train_and_measure", lambda *_: pytest.fail("something ran"))
    cells = {"heads": {"one": ["model.attention.heads=1"]}, "data": {"gone": ["data.path=gone.jsonl"]}}
    with pytest.raises(UserError, match=r"study small, cell gone: data\.path \(gone\.jsonl\): there is no such file"):
        engine.run_study(planned(factors=cells), CONFIGS)
    assert not (tmp_path / "small").exists()


@pytest.mark.usefixtures("checkpoints_stay", "undrawn")
def test_runs_are_ordinary_run_directories_taken_up_where_a_kill_left_them(
    planned: Callable[..., StudyPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study_jobs, "locked_run", locked_directory)  # measuring a finished run removes its checkpoints
    plan = planned()
    summary = engine.run_study(plan, CONFIGS)
    root = Path(plan.output) / "small"
    assert {path.name for path in root.iterdir()} >= {"base", "one", "study.json", "study.csv", "study.html"}
    base, one = (RunFiles(root / name / "seed_0") for name in ("base", "one"))
    weights = base.weights.read_bytes(), one.weights.read_bytes()
    measured = (one.directory / MEASURED_FILE).stat().st_mtime_ns
    # A kill during the base's training: its last checkpoint is there, its weights are not.
    base.weights.unlink()
    (base.directory / MEASURED_FILE).unlink()
    assert read_record(jobs(plan)[0], Query(plan.measures, plan.split, plan.items)).status == "unfinished"
    assert engine.run_study(plan, CONFIGS) == summary
    assert (base.weights.read_bytes(), one.weights.read_bytes()) == weights
    assert (one.directory / MEASURED_FILE).stat().st_mtime_ns == measured
    with pytest.raises(UserError, match=r"one/seed_0 holds a run with other settings; choose another output="):
        engine.run_study(planned(factors={"layers": {"one": ["model.layers=1"]}}), CONFIGS)


def test_a_study_finds_its_finished_runs_though_their_data_were_moved(
    planned: Callable[..., StudyPlan], table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "write_study", lambda *_: None)
    plan = planned(factors={}, measures=["scores"])
    study = engine.run_study(plan, CONFIGS)
    weights = RunFiles(jobs(plan)[0].directory).weights
    written = weights.stat().st_mtime_ns
    moved = tmp_path / "moved" / table.name
    moved.parent.mkdir()
    shutil.copy(table, moved)
    base = [f"data.path={moved}" if override.startswith("data.path=") else override for override in plan.base]
    assert engine.run_study(replace(plan, base=base), CONFIGS).cells[0].groups == study.cells[0].groups
    assert weights.stat().st_mtime_ns == written
    with pytest.raises(UserError, match="base/seed_0 holds a run with other settings; choose another output="):
        engine.run_study(replace(plan, base=[*base, "data.dev_share=0.3"]), CONFIGS)


def test_measures_on_other_items_are_replaced_only_if_that_is_wanted(
    planned: Callable[..., StudyPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "write_study", lambda *_: None)
    cells: dict[str, Any] = {"factors": {}, "measures": ["scores"]}
    engine.run_study(planned(**cells), CONFIGS)
    run = jobs(planned(**cells))[0].directory
    engine.run_study(planned(**cells | {"measures": ["scores", "roles"]}), CONFIGS)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    for change, values in (
        ({"split": "dev"}, ('split="test"', 'split="dev"')),
        ({"items": 4}, ("items=null", "items=4")),
        ({"measures": ["scores"]}, ('measures=["scores", "roles"]', 'measures=["scores"]')),
    ):
        with pytest.raises(UserError, match="holds the results with ") as refused:
            engine.run_study(planned(**cells | {"measures": ["scores", "roles"]} | change), CONFIGS)
        assert all(value in str(refused.value) for value in values)
        assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
    study = engine.run_study(planned(**cells, items=4, overwrite=True), CONFIGS)
    assert [cell.runs[0].status for cell in study.cells] == ["finished"]
    record = json.loads((run / WRITTEN).read_text())["metrics.json"]
    assert record == {"data": "the run's own", "items": 4, "layer": None, "head": None, "untrained": 0}


@pytest.mark.usefixtures("undrawn")
def test_a_run_that_fails_is_reported_and_the_others_go_on(
    planned: Callable[..., StudyPlan], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(config: Any, *_: Any, **__: Any) -> Any:
        raise RuntimeError(f"no memory for {config.model.attention.heads} heads")

    monkeypatch.setattr(study_jobs, "load_or_train", broken)
    plan = planned()
    summary = engine.run_study(plan, CONFIGS)
    assert [cell.runs[0].status for cell in summary.cells] == ["failed", "failed"]
    assert summary.cells[1].runs[0].error == "no memory for 1 heads"
    assert "one, seed 0: failed: no memory for 1 heads" in capsys.readouterr().out


def test_a_study_that_would_take_too_long_stops_after_its_first_run(
    planned: Callable[..., StudyPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    worked: list[str] = []

    def quick(config: Any, *_: Any) -> None:
        directory = Path(config.output) / config.name
        worked.append(directory.parent.name)
        directory.mkdir(parents=True)
        known = {"measures": ["scores"], "split": "test", "items": None}
        content = {"query": known, "head": None, "train_seconds": 1.0, "groups": {}}
        (directory / MEASURED_FILE).write_text(json.dumps(content))

    monkeypatch.setattr(engine, "train_and_measure", quick)
    seconds = iter(range(0, 6000, 60))
    monkeypatch.setattr("anaphora.studies.jobs.time.perf_counter", lambda: float(next(seconds)))
    with pytest.raises(UserError, match=r"it would take \d+ minutes, more than minutes=1; raise minutes"):
        engine.run_study(planned(minutes=1, seeds=[0, 1, 2]), CONFIGS)
    assert worked == ["base"]


def test_only_names_the_cells_to_run_and_seeds_come_in_turn(
    planned: Callable[..., StudyPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(seeds=[3, 5])
    planned_jobs = jobs(plan)
    assert [(job.cell, job.seed) for job in planned_jobs] == [("base", 3), ("one", 3), ("base", 5), ("one", 5)]
    assert [job.config.seed for job in planned_jobs] == [3, 3, 5, 5]
    worked: list[tuple[str, int]] = []
    monkeypatch.setattr(
        engine, "train_and_measure", lambda config, *_: worked.append((Path(config.output).name, config.seed))
    )
    monkeypatch.setattr(engine, "write_study", lambda *_: None)
    summary = engine.run_study(replace(plan, only=["one"]), CONFIGS)
    assert worked == [("one", 3), ("one", 5)]
    assert [cell.name for cell in summary.cells] == ["base", "one"]


def test_cells_that_only_leaves_out_count_only_if_they_were_measured_on_the_same_items_by_the_same_code(
    planned: Callable[..., StudyPlan], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    about = {"data": "first", "code": "first"}

    def quick(config: Any, query: Query, *_: Any) -> None:
        directory = Path(config.output) / config.name
        directory.mkdir(parents=True, exist_ok=True)
        known = {"measures": query.measures, "split": query.split, "items": query.items, **about}
        groups = {"en": {"all": {"task_accuracy": 1.0}}}
        content = {"query": known, "head": None, "train_seconds": 1.0, "groups": groups}
        (directory / MEASURED_FILE).write_text(json.dumps(content))

    monkeypatch.setattr(engine, "train_and_measure", quick)
    monkeypatch.setattr(engine, "write_study", lambda *_: None)
    factors = {"heads": {"one": ["model.attention.heads=1"]}, "data": {"other": ["data.seed=7"]}}
    plan = planned(factors=factors)
    composed = cells_of(plan, CONFIGS)
    monkeypatch.setattr(engine, "cells_of", lambda *_: composed)

    def counted(*only: str) -> list[str]:
        summary = engine.run_study(replace(plan, only=list(only)), CONFIGS)
        return [cell.name for cell in summary.cells if cell.groups]

    assert counted("base", "other") == ["base", "other"]
    assert counted("one") == ["base", "one", "other"]
    assert "not shown" not in capsys.readouterr().out
    about["data"] = "second"
    assert counted("one") == ["one", "other"]  # the items of `other` differ in any case
    assert "not shown: base, measured on other items" in " ".join(capsys.readouterr().out.split())
    assert counted() == ["base", "one", "other"]
    about["code"] = "second"
    assert counted("one") == ["one"]
    assert "'only=[base,other]' measures again" in " ".join(capsys.readouterr().out.split())


def test_a_cell_that_only_leaves_out_must_not_hold_runs_of_other_settings_either(
    planned: Callable[..., StudyPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "train_and_measure", lambda *_: pytest.fail("something ran"))
    plan = planned()
    base = jobs(plan)[0]
    base.directory.mkdir(parents=True)
    RunFiles(base.directory).config.write_text(config_yaml(replace(base.config, seed=7)), encoding="utf-8")
    with pytest.raises(UserError, match=r"base/seed_0 holds a run with other settings"):
        engine.run_study(replace(plan, only=["one"]), CONFIGS)


def test_a_process_of_its_own_measures_what_has_finished(planned: Callable[..., StudyPlan], finished: Path) -> None:
    from anaphora.settings.run import read_config

    plan = planned(side_by_side=2, train=False)
    config = replace(
        read_config(finished / "config.yaml"), name="seed_0", output=str(Path(plan.output) / "small" / "base")
    )
    job = Job("base", 0, config, Path(config.output) / "seed_0")
    shutil.copytree(finished, job.directory)
    engine.run_jobs(plan, [job], Query(plan.measures, plan.split, plan.items))
    record = read_record(job, Query(plan.measures, plan.split, plan.items))
    assert record.status == "finished", (Path(plan.output) / "small" / "logs" / "base_seed_0.log").read_text()
    assert set(record.groups) == {"en", "zh"}
    assert not (job.directory / FAILURE_FILE).exists()


def test_a_process_ends_when_whoever_started_it_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[int] = []
    monkeypatch.setattr("anaphora.studies.jobs.os._exit", left.append)
    study_jobs._exit_when_closed(io.StringIO(""))
    assert left == [1]


@pytest.mark.parametrize("path", sorted((CONFIGS / "study").rglob("*.yaml")), ids=lambda path: path.stem)
def test_every_study_composes_with_all_its_cells(path: Path, compose: Callable[..., Any]) -> None:
    from anaphora.settings.typed import resolve

    name = str(path.relative_to(CONFIGS / "study").with_suffix(""))
    plan = resolve(compose(f"study={name}", primary="study"), StudyPlan)
    assert path.read_text().splitlines()[0] == "# @package _global_"
    assert plan.name == path.stem
    assert plan.rules
    assert plan.minutes or "claims" not in name
    cells = cells_of(plan, CONFIGS)
    assert len(cells) == 1 + sum(map(len, plan.factors.values())) + len(plan.pairs)
    assert {cell.config.trainer.pictures for cell in cells} == {0}
    chinese = [plan.question_zh, plan.prediction_zh, *(rule.statement_zh for rule in plan.rules)]
    assert all(text and CHINESE_CHARACTER.search(text) for text in chinese)
    factors = {name for factor, changes in plan.factors.items() for name in (factor, *changes)}
    assert set(plan.names_zh) - {"base"} == factors | set(plan.pools)
    assert set(plan.names) - {"base"} == {name for changes in plan.factors.values() for name in changes} | set(
        plan.pools
    )


def test_more_settings_hold_for_every_cell(compose: Callable[..., Any]) -> None:
    from anaphora.settings.typed import resolve

    plan = resolve(compose("study=claims/heads", primary="study"), StudyPlan)
    plan.more.append("trainer.pictures=3")
    assert {cell.config.trainer.pictures for cell in cells_of(plan, CONFIGS)} == {3}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pairs": [["one", "two"]]}, r"pairs \('two'\) must be one of the factors' cells: one"),
        ({"only": ["two"]}, "'two' is no cell of the study small"),
        ({"factors": {"x": {"base": ["seed=1"]}}}, "none of them 'base'"),
        ({"factors": {"x": {"a/b": ["seed=1"]}}}, "a name becomes a folder"),
        ({"seeds": [1, 1]}, "must be one or more different numbers"),
        ({"solved": 1.5}, r"solved \(1.5\) must be from 0 to 1"),
    ],
)
def test_an_impossible_plan_is_reported(
    changes: dict[str, Any], message: str, planned: Callable[..., StudyPlan]
) -> None:
    with pytest.raises(UserError, match=message):
        planned(**changes)


@pytest.mark.usefixtures("undrawn")
def test_cells_start_from_pretrained_weights_and_heads_by_number_are_supervised(
    table: Path, tmp_path: Path, compose: Callable[..., Any]
) -> None:
    from anaphora.settings.typed import resolve

    folder = write_folder(tmp_path / "bert", "bert")
    smoke = ["data=jsonl", f"data.path={table}", f"start={folder}", "trainer=smoke"]
    smoke += ["task.supervision.layers=[1]", "task.supervision.heads=[1]", "optimizer.frozen_layers=1"]
    planned = ("study=supervision_links", f"more=[{','.join(map(repr, smoke))}]", "seeds=[0]", "side_by_side=1")
    plan = resolve(compose(*planned, f"output={tmp_path}", "formats=[png]", primary="study"), StudyPlan)
    summary = engine.run_study(plan, CONFIGS)
    assert [cell.runs[0].status for cell in summary.cells] == ["finished", "finished"]
    for cell in summary.cells:
        measured = cell.groups["en"]["pronoun"].measures
        assert {"task_accuracy", "candidate_accuracy"} <= set(measured)
    base, supervised = (load_file(RunFiles(job.directory).weights) for job in jobs(plan))
    name = "encoder.blocks.0.attention.query.weight"
    assert torch.equal(base[name], supervised[name])  # frozen
    last = "encoder.blocks.1.attention.key.weight"
    assert not torch.equal(base[last], supervised[last])
    assert engine.run_study(plan, CONFIGS) == summary

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from anaphora import cli
from anaphora.base.errors import UserError
from anaphora.settings.compose import job_name, sweep_failures
from anaphora.settings.run import Config
from anaphora.training.reuse import objective

Script = Callable[..., tuple[int, str, str]]


def sweep(
    script: Script, table: Path, tiny_settings: tuple[str, ...], output: Path, *overrides: str
) -> tuple[int, str, str]:
    return script("train", "-m", "data=jsonl", f"data.path={table}", f"output={output}", *tiny_settings, *overrides)


SHORT = ("optimizer.steps=2", "validation.every=2")


def names(output: Path) -> list[str]:
    return sorted(path.parent.name for path in output.glob("*/model.safetensors"))


def test_a_sweep_goes_on_after_a_failure_tells_it_at_the_end_and_finds_its_runs_again(
    script: Script, table: Path, tiny_settings: tuple[str, ...], tmp_path: Path
) -> None:
    wanted = ("seed=0,1", "model.attention.heads=2,3")  # a width of 16 has no three heads
    tiny_settings = (*tiny_settings, *SHORT)
    status, out, err = sweep(script, table, tiny_settings, tmp_path, *wanted)
    assert status == 1
    assert "2 of the sweep's jobs failed:" in err
    assert err.count("model.width (16) must be a multiple of model.attention.heads (3)") == 2
    assert "Traceback" not in err
    first = names(tmp_path)
    assert len(first) == 2 and all("seed=" in name and "heads=2" in name for name in first)
    assert not any(word in name for name in first for word in ("output", "progress", "loggers")), first
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/model.safetensors")}
    status, out, err = sweep(script, table, tiny_settings, tmp_path, *wanted)
    assert status == 1 and out.count("finished; its weights are reused") == 2
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/model.safetensors")} == before
    status, out, err = sweep(script, table, tiny_settings, tmp_path, "seed=0,1", "model.attention.heads=2")
    assert status == 0 and out.count("reused") == 2


def test_a_job_that_was_stopped_is_resumed(
    script: Script, table: Path, tiny_settings: tuple[str, ...], tmp_path: Path, unfinished: Path
) -> None:
    sweep(script, table, tiny_settings, tmp_path, "seed=0,1")
    (name,) = [name for name in names(tmp_path) if "seed=0" in name]
    reached = (tmp_path / name / "model.safetensors").read_bytes()
    shutil.rmtree(tmp_path / name)
    shutil.copytree(unfinished, tmp_path / name)  # of the same settings
    status, out, _ = sweep(script, table, tiny_settings, tmp_path, "seed=0,1")
    assert status == 0 and "unfinished; it is resumed" in out and out.count("reused") == 1
    assert (tmp_path / name / "model.safetensors").read_bytes() == reached


def test_a_name_for_all_jobs_is_a_failure_of_the_second_with_a_way_out(
    script: Script, table: Path, tiny_settings: tuple[str, ...], tmp_path: Path
) -> None:
    status, _, err = sweep(script, table, (*tiny_settings, *SHORT), tmp_path, "seed=0,1", "name=one")
    assert status == 1 and "1 of the sweep's jobs failed" in err
    assert "holds a run with other settings; give the jobs of a sweep no name=, or a different one each" in err


def test_a_jobs_name_follows_from_its_overrides_and_stays_short() -> None:
    name = job_name(["data.path=/somewhere/far", "seed=3", "model/position=alibi"])
    assert name.startswith("path=_somewhere_far,seed=3,position=alibi-") and name == job_name(
        ["data.path=/somewhere/far", "seed=3", "model/position=alibi"]
    )
    assert job_name([]) == job_name([])
    fixed = ["data=jsonl", "data.path=a_table_with_a_name.jsonl", "optimizer.steps=2000"]
    first_and_last = (["optimizer.learning_rate=0.02", *fixed], [*fixed, "optimizer.learning_rate=0.02"])
    assert all("learning_rate=0.02" in job_name(one) for one in first_and_last), "Optuna puts first what it varies"
    long = [[f"data.path=/somewhere/{'x' * 200}/{number}", "seed=1"] for number in range(2)]
    assert len({job_name(one) for one in long}) == 2
    assert all(job_name(one).startswith("seed=1-") and len(job_name(one)) < 80 for one in long)


def test_a_sweep_over_experiments_takes_a_setting_with_an_effect_in_one_of_them(
    script: Script, table: Path, tiny_settings: tuple[str, ...], tmp_path: Path
) -> None:
    given = (*tiny_settings, "model.tied_output=true", *SHORT)
    status, _, err = sweep(script, table, given, tmp_path, "experiment=bilinear,token_values")
    assert (status, len(names(tmp_path))) == (0, 2), err
    status, _, err = sweep(script, table, given, tmp_path, "experiment=bilinear,slot")
    assert status == 1 and err.count("model.tied_output=True has no effect while") == 2 and len(names(tmp_path)) == 2


def test_jobs_on_different_devices_are_different_runs(
    script: Script, table: Path, tiny_settings: tuple[str, ...], tmp_path: Path
) -> None:
    status, out, _ = sweep(script, table, (*tiny_settings, *SHORT), tmp_path, "trainer.device=auto,cpu")
    assert status == 0 and len(names(tmp_path)) == 2 and "reused" not in out


def test_the_objective_is_that_of_the_weights_that_are_kept(finished: Path) -> None:
    record = json.loads((finished / "training.json").read_text())
    kept = record["validations"][record["best_validation"]]
    assert objective(finished, "validation_loss") == kept["validation/loss"]
    assert objective(finished, "best_head") == pytest.approx(1 - kept["validation/best_head"])
    assert not math.isnan(objective(finished, "best_head"))


def test_an_objective_that_was_not_measured_is_refused(own_run: Path) -> None:
    record = json.loads((own_run / "training.json").read_text())
    for validation in record["validations"]:
        del validation["validation/best_head"]
    (own_run / "training.json").write_text(json.dumps(record))
    with pytest.raises(UserError, match=r"objective \(best_head\): no head of .* is measured in training"):
        objective(own_run, "best_head")
    for validation in record["validations"]:
        del validation["validation/loss"]
    (own_run / "training.json").write_text(json.dumps(record))
    with pytest.raises(UserError, match=r"objective \(validation_loss\): .* has no validation loss; use best_head"):
        objective(own_run, "validation_loss")


def test_a_loss_that_no_validation_measures_is_refused_before_a_job_is_trained(
    script: Script, table: Path, tiny_settings: tuple[str, ...], tmp_path: Path
) -> None:
    status, _, err = sweep(script, table, tiny_settings, tmp_path / "runs", "task=masked_lm", "seed=0,1")
    assert status == 1
    assert err.count("task.prediction=none on data=jsonl has no validation loss; use best_head") == 2
    assert not (tmp_path / "runs").exists()


def test_a_run_without_its_history_has_no_objective(own_run: Path) -> None:
    path = own_run / "training.json"
    record = json.loads(path.read_text())
    for left in ({"validations": record["validations"]}, {"validations": [], "best_validation": 0}, None):
        path.unlink() if left is None else path.write_text(json.dumps(left))
        for name in ("validation_loss", "best_head"):
            with pytest.raises(UserError, match=rf"objective \({name}\): .*training.json is missing or has no best"):
                objective(own_run, name)


def test_a_job_that_fails_returns_the_worst_value_for_a_sampler(monkeypatch: pytest.MonkeyPatch) -> None:
    reasons: list[str] = []
    monkeypatch.setattr("anaphora.settings.compose.note_failure", reasons.append)
    assert cli.run_job(cli.COMMANDS["train"], OmegaConf.create({"seed": "abc"})) == math.inf
    assert len(reasons) == 1 and "abc" in reasons[0]


def test_failures_are_noted_in_the_folder_that_machines_share_and_survive_a_launcher_that_ends_with_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def killed(lines: list[str]) -> None:
        with sweep_failures(lines):
            folder = Path(os.environ["ANAPHORA_SWEEP_FAILURES"])
            assert folder.parent == tmp_path
            for number in (10, 9):
                record = {"job": number, "overrides": f"seed={number}", "reason": "no memory"}
                (folder / f"{number}.json").write_text(json.dumps(record))
            raise RuntimeError("killed")

    lines: list[str] = []
    with pytest.raises(RuntimeError, match="killed"):
        killed(lines)
    assert lines == ["seed=9: no memory", "seed=10: no memory"]
    assert list(tmp_path.iterdir()) == []


def test_a_demo_in_a_sweep_is_named_by_its_overrides(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []

    def refuse(config: Config, *_: object) -> None:
        names.append(str(config.name))
        raise UserError("not now")

    monkeypatch.setattr("anaphora.training.reuse.load_or_train", refuse)
    status, _, err = script("demo", "-m", f"output={tmp_path}", "seed=0,1")
    assert (status, err.count("not now")) == (1, 2)
    assert [name.rpartition("-")[0] for name in names] == ["seed=0", "seed=1"]

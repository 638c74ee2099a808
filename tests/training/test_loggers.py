"""Tests of the loggers in `trainer.loggers`, and of checkpoints with older names of settings."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from pytorch_lightning.loggers.logger import DummyLogger
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from anaphora.base.batch import Batch
from anaphora.base.errors import UserError
from anaphora.runs.directory import RunFiles
from anaphora.settings.run import Config
from anaphora.training import loggers
from anaphora.training.module import TrainingModule
from anaphora.training.run import train

Tiny = Callable[..., Config]
STEPS = ("optimizer.steps=30", "validation.every=10")


def csv_curves(directory: Path) -> dict[str, list[tuple[int, float]]]:
    """Return the curves of `curves/metrics.csv` as (step, value) by tag."""
    curves: dict[str, list[tuple[int, float]]] = {}
    with (directory / "curves" / "metrics.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            step = int(row.pop("step"))
            for tag, value in row.items():
                if value:
                    curves.setdefault(tag, []).append((step, float(value)))
    return curves


def tensorboard_curves(directory: Path) -> dict[str, list[tuple[int, float]]]:
    events = EventAccumulator(str(directory), size_guidance={"scalars": 0}).Reload()
    return {tag: [(each.step, each.value) for each in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def test_every_logger_gets_the_same_curves(tiny: Tiny, tmp_path: Path) -> None:
    directory = train(tiny(tmp_path, *STEPS, "trainer.loggers=[tensorboard,csv]"))
    stored, events = csv_curves(directory), tensorboard_curves(directory)
    assert stored.keys() == events.keys()
    for tag, points in events.items():
        assert [step for step, _ in stored[tag]] == [step for step, _ in points]
        assert [value for _, value in stored[tag]] == pytest.approx([value for _, value in points], rel=1e-5)


def test_a_resumed_run_goes_on_with_its_csv_file_and_repeats_no_step(tiny: Tiny, tmp_path: Path) -> None:
    whole_step = TrainingModule.training_step

    def stops(module: TrainingModule, batch: Batch, batch_idx: int) -> torch.Tensor:
        if module.global_step == 25:
            raise RuntimeError("the machine went down")
        return whole_step(module, batch, batch_idx)

    loggers = "trainer.loggers=[csv]"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(TrainingModule, "training_step", stops)
        with pytest.raises(RuntimeError, match="the machine went down"):
            train(tiny(tmp_path, "optimizer.steps=45", "validation.every=15", loggers))
    assert [step for step, _ in csv_curves(tmp_path / "run")["curves/train_loss"]] == [1, 10, 20]
    train(tiny(tmp_path, f"resume={tmp_path / 'run'}", loggers))
    curves = csv_curves(tmp_path / "run")
    assert [step for step, _ in curves["curves/train_loss"]] == [1, 10, 20, 30, 40]
    assert [step for step, _ in curves["curves/validation_loss"]] == [15, 30, 45]
    assert list((tmp_path / "run").glob("events.*")) == []


def test_a_run_without_loggers_has_the_same_weights_and_no_curves(tiny: Tiny, tmp_path: Path, finished: Path) -> None:
    directory = train(tiny(tmp_path, "trainer.loggers=[]"))
    assert RunFiles(directory).weights.read_bytes() == RunFiles(finished).weights.read_bytes()
    assert {path.name for path in directory.iterdir()} == {
        "config.yaml", "model.safetensors", "tokenizer.json", "training.html", "training.json",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("loggers", "message"),
    [
        ("[aim]", r"trainer.loggers \('aim'\) must be one of tensorboard, csv, wandb, mlflow"),
        ("[csv,csv]", "must name each entry once"),
    ],
)
def test_a_wrong_logger_is_refused_by_name(loggers: str, message: str, tiny: Tiny, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=message):
        tiny(tmp_path, f"trainer.loggers={loggers}")


class ServiceLogger(DummyLogger):
    """Stub for the logger of an online service that stores its constructor's arguments."""

    all: ClassVar[list[ServiceLogger]] = []

    def __init__(self, **given: Any) -> None:
        super().__init__()
        self.given = given
        self.all.append(self)

    @property
    def run_id(self) -> str:
        return str(self.given.get("run_id") or "of the service")


@pytest.mark.parametrize(
    ("name", "lightning", "key"), [("wandb", "WandbLogger", "id"), ("mlflow", "MLFlowLogger", "run_id")]
)
def test_a_resumed_run_goes_on_with_its_curves_at_a_service(
    name: str, lightning: str, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"pytorch_lightning.loggers.{lightning}", ServiceLogger)
    layout = RunFiles(tmp_path / "run")
    ServiceLogger.all.clear()
    for resumed in (False, True, False):
        loggers.build_loggers(layout, [name], resumed)
    first, resumed_run, other = ServiceLogger.all
    identity = first.given[key] if name == "wandb" else first.run_id
    assert resumed_run.given[key] == identity != other.given[key]


@pytest.mark.parametrize("content", ["", "[]", '{"wandb": 1}'])
def test_a_damaged_file_of_the_ids_at_services_is_a_users_error(content: str, tmp_path: Path) -> None:
    layout = RunFiles(tmp_path / "run")
    (layout.directory / "curves").mkdir(parents=True)
    (layout.directory / "curves" / loggers.SERVICE_FILE).write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=r"services.json.*; delete it, and the curves begin again at the service"):
        loggers.build_loggers(layout, ["wandb"], True)


def test_a_logger_whose_package_is_missing_is_refused_before_anything_is_read(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"trainer.loggers \('mlflow'\) needs a package: \S+ -m pip install mlflow"):
        train(tiny(tmp_path, "trainer.loggers=[csv,mlflow]"))
    assert not (tmp_path / "run").exists()

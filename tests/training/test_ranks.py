"""Tests that several processes train the same weights as a single one."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from ranks import train_on
from safetensors.torch import load_file

from anaphora.runs.directory import RunFiles, training_record
from anaphora.settings.run import Config
from anaphora.training.ranks import set_rendezvous_address
from anaphora.training.run import train

Tiny = Callable[..., Config]
TWELVE = ("optimizer.steps=12", "validation.every=4", "optimizer.learning_rate=0.003", "trainer.progress=false")
MUON = (*TWELVE, "optimizer.matrices=muon", "task/prediction=slot", "task.masked_lm=0.2")
"""Settings in which only masked tokens train the output layer, and a process's share may have none."""


def difference(first: Path, second: Path) -> float:
    """Return the largest difference between two runs' weights, without the biases of the keys.

    A softmax does not depend on these biases: their gradients are rounding errors, which AdamW scales up.
    """
    one, other = (load_file(RunFiles(directory).weights) for directory in (first, second))
    compared = [name for name in one if not name.endswith("attention.key.bias")]
    return max(float((one[name] - other[name]).abs().max()) for name in compared)


def names(directory: Path) -> set[str]:
    return {path.name.partition(".tfevents")[0] for path in directory.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def alone(tiny: Tiny, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tiny(tmp_path_factory.mktemp("alone"), *MUON))


def test_two_processes_train_what_one_trains_and_leave_the_same_files(tiny: Tiny, tmp_path: Path, alone: Path) -> None:
    assert train_on(2, tiny(tmp_path, *MUON), cache_of_rank_1=tmp_path / "cache") == ["12 steps"] * 2
    assert difference(tmp_path / "run", alone) < 1e-6
    assert names(tmp_path / "run") == names(alone)
    assert len(list((tmp_path / "run").glob("events.*"))) == 1


def test_with_fewer_rows_than_processes_the_others_add_nothing(tiny: Tiny, tmp_path: Path) -> None:
    one_row = (*TWELVE, "batching.tokens=32", "task.masked_lm=0.05", "task.supervision.weight=0.5")
    assert train_on(3, tiny(tmp_path / "three", *one_row)) == ["12 steps"] * 3
    train(tiny(tmp_path / "one", *one_row))
    assert difference(tmp_path / "three/run", tmp_path / "one/run") < 1e-6


def test_a_killed_process_ends_the_others_and_the_run_resumes_on_two_or_on_one(
    tiny: Tiny, tmp_path: Path, alone: Path
) -> None:
    assert train_on(2, tiny(tmp_path, *MUON), signal.SIGKILL) == ["broken off", ""]
    broken = tmp_path / "run"
    assert not RunFiles(broken).weights.exists()
    assert torch.load(RunFiles(broken).last_checkpoint, weights_only=True)["global_step"] == 4
    copy = shutil.copytree(broken, tmp_path / "copy")
    assert train_on(2, tiny(tmp_path, *MUON, f"resume={broken}")) == ["12 steps"] * 2
    assert training_record(train(tiny(tmp_path, *MUON, f"resume={copy}")))["steps"] == 12
    assert max(difference(broken, alone), difference(copy, alone)) < 1e-6


@pytest.mark.parametrize(("number", "end"), [(signal.SIGTERM, "terminated"), (signal.SIGINT, "stopped")])
def test_a_signal_to_one_process_stops_all_at_the_same_step(number: int, end: str, tiny: Tiny, tmp_path: Path) -> None:
    assert train_on(2, tiny(tmp_path, *MUON), number) == [end] * 2


def test_a_run_killed_after_its_last_validation_is_ended_by_one_of_two_processes(
    tiny: Tiny, tmp_path: Path, unfinished: Path, finished: Path
) -> None:
    directory = shutil.copytree(unfinished, tmp_path / "run")
    assert train_on(2, tiny(tmp_path, f"resume={directory}")) == ["8 steps"] * 2
    assert RunFiles(directory).weights.read_bytes() == RunFiles(finished).weights.read_bytes()


def test_a_mistake_that_one_process_meets_is_reported_by_all(tiny: Tiny, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ends = train_on(2, tiny(tmp_path, *MUON), cache_of_rank_1=tmp_path / "file")
    assert ends[0] == ends[1] and "the cache is there" in ends[0]
    assert not RunFiles(tmp_path / "run").config.exists()


def test_a_user_mistake_and_a_divergence_are_reported_by_all(tiny: Tiny, tmp_path: Path, alone: Path) -> None:
    taken = train_on(2, tiny(alone.parent, *MUON))
    assert len(set(taken)) == 1 and "already holds a finished run" in taken[0]
    diverged = train_on(2, tiny(tmp_path, *TWELVE, "optimizer.learning_rate=1e12"))
    assert all("training diverged at step" in end for end in diverged)


def test_the_processes_of_a_job_step_meet_at_its_first_host_and_a_port_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {"STEP_NODELIST": "node[07-09,12]", "JOB_ID": "123456", "STEP_ID": "2"}.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "")  # so that it is put back afterwards
        monkeypatch.delenv(name)
    set_rendezvous_address()
    assert (os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"]) == ("node07", "18458")

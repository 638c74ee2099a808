from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from anaphora.base.errors import UserError
from anaphora.runs.processes import Processes, started_processes

TORCHRUN = {"WORLD_SIZE": "4", "RANK": "3", "LOCAL_RANK": "1"}
SRUN = {"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "1", "SLURM_LOCALID": "0"}


def test_the_number_and_the_rank_of_processes_are_those_of_torchrun_or_srun() -> None:
    assert started_processes(TORCHRUN) == Processes(4, 3, 1, "torchrun")
    assert started_processes(SRUN) == Processes(2, 1, 0, "srun")
    assert started_processes(SRUN | TORCHRUN) == Processes(4, 3, 1, "torchrun")  # an agent of torchrun on each machine


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"WORLD_SIZE": "1"},
        {"SLURM_NTASKS": "8", "SLURM_PROCID": "0", "SLURM_LOCALID": "0"},  # a batch script, which srun did not start
        SRUN | {"SLURM_STEP_NUM_TASKS": "1"},
    ],
)
def test_without_them_there_is_a_single_process(environment: dict[str, str]) -> None:
    assert started_processes(environment) == Processes()


@pytest.mark.parametrize(
    ("environment", "error"),
    [
        ({"WORLD_SIZE": "2", "LOCAL_RANK": "1"}, r"RANK \(not set\).*with torchrun or srun"),  # Lightning's own
        (TORCHRUN | {"RANK": "x"}, r"RANK \(x\) must be a number"),
        (TORCHRUN | {"RANK": "4"}, "WORLD_SIZE=4, RANK=4, LOCAL_RANK=1: a rank must be below"),
    ],
)
def test_what_contradicts_itself_is_refused(environment: dict[str, str], error: str) -> None:
    with pytest.raises(UserError, match=error):
        started_processes(environment)


@pytest.mark.parametrize(
    ("command", "arguments", "work"),
    [("report", ("run=outputs/demo",), "report"), ("train", ("-m", "seed=1,2"), r"a sweep \(-m\)")],
)
def test_what_every_process_would_do_whole_takes_a_single_one(
    command: str, arguments: tuple[str, ...], work: str, script: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)
    ended = script(command, *arguments)
    assert ended.status == 2
    assert re.match(f"error: {work} runs in a single process, but torchrun started 4", ended.err)


@pytest.mark.parametrize("setting", ["trainer.devices=2", "+trainer.nodes=2"])
def test_the_number_of_processes_is_no_setting(setting: str, script: Callable[..., Any]) -> None:
    ended = script("train", setting)
    assert ended.status == 2 and "with torchrun or srun" in ended.err

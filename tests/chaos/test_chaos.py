"""The smallest form of `make chaos`: one training run is killed once."""

from __future__ import annotations

import multiprocessing
import os
import sys
from pathlib import Path

import pytest
import trials
from faults import Fault
from works import WORKS


def test_a_killed_training_resumes_to_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # of the process that all others are forks of
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["anaphora.training.run"])
    reference = trials.unbroken(context, WORKS[0], tmp_path / "work", times=1)
    fault = Fault("kill -9", reference.operations * 3 // 5)
    outcome = trials.trial(context, reference, tmp_path / "trial", trials.Plan(fault))
    assert outcome == trials.Outcome("train", fault, befell=True, problem="")


def test_a_trial_tells_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "metrics.json").write_text('{"a": ')
    (tmp_path / "run" / "table.csv").write_text("a,b\n1,2")
    assert [problem.partition(" (")[0] for problem in sorted(trials.broken_files(tmp_path))] == [
        "half-written: run/metrics.json", "half-written: run/table.csv",
    ]  # fmt: skip
    expected, files = {"a": "1", "b": "1", "c": "1"}, {"a": "1", "b": "2", ".anaphora-draft-0": ""}
    assert trials.difference(expected, files) == ["missing: c", "left behind: .anaphora-draft-0", "different: b"]

"""Tests of `trainer=gpu` for every command that runs a model on data, with a simulated device."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas
import pytest
import torch
from published import write_folder

import anaphora
from anaphora.base.device import Device, RunsDevice, evaluation_device
from anaphora.base.errors import UserError
from anaphora.commands.controls import control_settings
from anaphora.runs.directory import load
from anaphora.settings.training import Trainer
from anaphora.studies.grid import cells_of
from anaphora.studies.plan import StudyPlan

ROOT = Path(__file__).parents[2]


def elsewhere(commands: list[list[str]]) -> list[int]:
    """Run commands on the simulated device, and return the number of operations that each executed there."""
    listed = json.dumps([[*one, "trainer=gpu"] for one in commands])
    program = [sys.executable, str(Path(__file__).with_name("other_device.py")), listed]
    done = subprocess.run(program, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr[-5000:]
    return list(json.loads(done.stdout.splitlines()[-1]))


def numbers(folder: Path) -> dict[str, Any]:
    """Return the contents of all JSON, CSV and Parquet files below a folder."""
    contents: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".json" and path.name != "tokenizer.json":
            contents[str(path.relative_to(folder))] = json.loads(path.read_text(encoding="utf-8"))
        elif path.suffix == ".parquet":
            contents[str(path.relative_to(folder))] = pandas.read_parquet(path).to_dict("list")
        elif path.suffix == ".csv":
            with path.open(encoding="utf-8") as file:
                contents[str(path.relative_to(folder))] = list(csv.DictReader(file))
    return contents


def differences(here: Any, there: Any, path: str = "") -> list[str]:
    """Return the paths at which two nested contents differ by more than rounding errors."""
    if isinstance(here, dict) and isinstance(there, dict):
        keys = [key for key in {**here, **there} if key not in ("output", "trainer", "heads_table")]  # of all digits
        return [one for key in keys for one in differences(here.get(key), there.get(key), f"{path}/{key}")]
    if isinstance(here, list) and isinstance(there, list) and len(here) == len(there):
        pairs = zip(here, there, strict=True)
        return [one for place, pair in enumerate(pairs) for one in differences(*pair, f"{path}/{place}")]
    if hasattr(here, "tolist") and hasattr(there, "tolist"):
        return differences(here.tolist(), there.tolist(), path)
    try:
        same = float(here) == pytest.approx(float(there), abs=2e-3, nan_ok=True)
    except (TypeError, ValueError):
        same = here == there
    return [] if same else [f"{path}: {here!r}, {there!r}"]


@pytest.mark.usefixtures("undrawn")
def test_a_run_is_measured_the_same_on_another_device(
    finished: Path, folds: list[Path], table: Path, tmp_path: Path, script: Callable[..., Any]
) -> None:
    other = tmp_path / "other.jsonl"
    rows = [json.loads(line) for line in table.read_text(encoding="utf-8").splitlines()]
    other.write_text("".join(json.dumps({**row, "text": row["text"][:-1] + "!"}) + "\n" for row in rows))
    sentence = ("text=Anna met Tom before he left.", "pronoun=he", "candidates=[Anna,Tom]")

    def commands(place: str) -> list[list[str]]:
        run = shutil.copytree(finished, tmp_path / place / "own")
        runs = f"runs=[{folds[0]},{folds[1]}]"
        return [
            ["report", f"run={run}", "untrained=1", "items=2", "sentences=1", "formats=[]"],
            ["evaluate", f"run={run}"],
            ["extract", f"run={run}"],
            ["attention", f"run={run}", *sentence, f"output={run}/figures/sentence.svg"],
            ["score", f"run={run}", "untrained=0", "split=dev"],
            ["antecedents", f"run={run}", "untrained=1", "formats=[]"],
            ["cross_validate", runs, f"output={tmp_path / place / 'folds.csv'}"],
            ["evaluate", runs, "data=jsonl", f"data.path={other}", f"output={tmp_path / place / 'transfer.csv'}"],
        ]

    for one in commands("here"):
        status, _, err = script(*one)
        assert status == 0, err
    counts = elsewhere(commands("there"))
    assert min(counts) > 50
    here, there = numbers(tmp_path / "here"), numbers(tmp_path / "there")
    assert len(here) >= 15
    assert differences(here, there) == []


def test_pretrained_weights_texts_and_speed_are_measured_there_too(
    labelled: Path, gap: Path, tmp_path: Path, script: Callable[..., Any]
) -> None:
    pytest.importorskip("transformers")
    weights = write_folder(tmp_path / "bert", "bert")

    def commands(place: str) -> list[list[str]]:
        tables = tmp_path / place
        return [
            ["evaluate", f"runs=[{labelled}]", f"output={tables / 'labels.csv'}"],
            ["gap", f"weights={weights}", f"data.path={gap}", "folds=2", f"output={tables / 'gap.csv'}"],
        ]

    for one in commands("here")[:2]:
        status, _, err = script(*one)
        assert status == 0, err
    assert min(elsewhere(commands("there"))) > 50
    assert len(numbers(tmp_path / "here")) == 2
    assert differences(numbers(tmp_path / "here"), numbers(tmp_path / "there")) == []


def test_evidence_and_studies_train_where_they_are_asked_to(finished: Path) -> None:
    run = load(finished)
    assert control_settings(run, "uniform", "cuda").trainer.device == "cuda"
    assert control_settings(run, "uniform", None).trainer.device == "cpu"  # as the run was
    assert {control_settings(run, "uniform", device).trainer.precision for device in ("cuda", "cpu", None)} == {"32"}
    plan = StudyPlan(name="s", question="?", prediction=".", base=["trainer=smoke"], trainer=RunsDevice(device="cuda"))
    for chosen, device in ((plan, "cuda"), (replace(plan, trainer=RunsDevice()), "cpu")):
        assert [cell.config.trainer.device for cell in cells_of(chosen, ROOT / "configs")] == [device]


@pytest.mark.parametrize(("device", "measured"), [("auto", "cpu"), ("cpu", "cpu"), ("mps", "cpu"), ("cuda", "cuda")])
def test_a_run_is_measured_on_cuda_only_where_that_was_asked_for(
    device: str, measured: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert evaluation_device(device) == Device(device=measured)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert evaluation_device(device) == Device(device="cpu")  # whatever it was trained on elsewhere


@pytest.mark.parametrize(
    ("settings", "numbers"),
    [({}, "32"), ({"device": "cuda"}, "bf16-mixed"), ({"device": "cuda", "precision": "32"}, "32")],
)
def test_training_is_in_bf16_where_a_gpu_is_asked_for(settings: dict[str, str], numbers: str) -> None:
    assert Trainer(**settings).precision == numbers  # type: ignore[arg-type]


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has the device")
@pytest.mark.parametrize(
    "name",
    [
        *("antecedents", "cross_validate", "evaluate", "controls", "extract", "gap"),
        *("attention", "report", "score", "study", "train"),
    ],
)
def test_every_such_script_says_at_once_that_there_is_no_gpu(
    name: str, finished: Path, tmp_path: Path, script: Callable[..., Any]
) -> None:
    arguments = {
        "cross_validate": [f"runs=[{finished}]"],
        "gap": [f"weights={finished}", f"data.path={tmp_path}"],
        "study": ["study=emergence_small", f"output={tmp_path}"],
        "train": ["experiment=token_values", f"output={tmp_path}"],
    }
    status, _, err = script(name, *arguments.get(name, [f"run={finished}"]), "trainer=gpu")
    assert (status, "trainer.device (cuda) is not on this machine (it has: cpu" in err) == (2, True), err


@pytest.mark.parametrize("name", ["trainer=default", "trainer=smoke", "trainer.device=tpu", "trainer=null"])
def test_a_place_that_is_none_is_refused(name: str, finished: Path, script: Callable[..., Any]) -> None:
    status, _, err = script("evaluate", f"run={finished}", name)
    assert status == 2 and any(one in err for one in ("cpu, cuda", "allowed: device", "null")), err


def test_a_notebook_shows_which_devices_there_are(finished: Path) -> None:
    with pytest.raises(UserError, match=r"device \('gpu'\) must be one of cpu, cuda"):
        anaphora.load(finished, device="gpu")
    assert anaphora.load(finished).run.model.device == torch.device("cpu")


def test_numbers_of_the_other_device_meet_no_others() -> None:
    """The simulated device raises the same errors as a GPU."""
    program = """
import torch, other_device
kept = other_device.install()
here, place = torch.arange(4.0), torch.device("elsewhere", 0)
there, at = here.to(place), torch.tensor([0, 2])
assert (there[at] + 1).tolist() == [1.0, 3.0] and (there + torch.tensor(2.0)).tolist() == [2.0, 3.0, 4.0, 5.0]
for wrong in (
    lambda: there + here,
    lambda: here[at.to(place)],
    lambda: there.index_put((at,), here[:2]),
    lambda: torch.stack([there.sum(), here.sum()]),
    lambda: there.numpy(),
):
    try:
        wrong()
    except (RuntimeError, TypeError):
        continue
    raise SystemExit(1)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parent, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()

"""Tests that a run from the Hub is measured like a local run, with results in outputs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from anaphora.analysis.evidence.measurement import measured_on
from anaphora.analysis.evidence.storage import answer_temperatures
from anaphora.analysis.results.typed_json import to_json
from anaphora.commands.export import Export, export
from anaphora.runs.directory import load, training_record
from anaphora.runs.items import evaluation_splits

Script = Callable[..., tuple[int, str, str]]
NAME = "hf://owner/name"
SMALL = ("items=6", "untrained=0", "sentences=1", "formats=[]")


@pytest.fixture
def hub(finished: Path, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the downloaded folder of a published run, whose data are in the working directory."""
    published = export(Export(run=str(finished), output=str(tmp_path / "hub"), format="anaphora"))
    monkeypatch.setattr("anaphora.runs.warm_start._download", lambda name, setting: published)
    monkeypatch.setattr("anaphora.commands.parts.shared.holds_run", lambda name: True)
    shutil.copy(table, tmp_path)
    monkeypatch.chdir(tmp_path)
    return published


def test_a_run_of_the_hub_is_reported_with_its_training(hub: Path, script: Script) -> None:
    before = {path: path.read_bytes() for path in hub.iterdir()}
    status, _, err = script("report", f"run={NAME}", *SMALL)
    assert status == 0, err
    here = Path("outputs/owner--name")
    run = load(NAME)
    evidence = json.loads((here / "metrics.json").read_text(encoding="utf-8"))
    assert evidence["provenance"]["weights"] == to_json(measured_on(run, evaluation_splits(run, "test")))["weights"]
    assert evidence["train_seconds"] == training_record(hub)["train_seconds"]
    assert {path: path.read_bytes() for path in hub.iterdir()} == before


def test_a_run_of_the_hub_that_is_published_again_keeps_its_training_on_the_card(hub: Path, tmp_path: Path) -> None:
    again = export(Export(run=NAME, output=str(tmp_path / "again"), format="anaphora"))
    steps = next(line for line in (hub / "README.md").read_text(encoding="utf-8").splitlines() if "Steps" in line)
    assert steps in (again / "README.md").read_text(encoding="utf-8").splitlines()


def test_a_run_that_was_calibrated_is_published_with_its_temperatures(own_run: Path, tmp_path: Path) -> None:
    (own_run / "calibration.json").write_text(json.dumps({"temperatures": {"en": 0.25}}), encoding="utf-8")
    published = export(Export(run=str(own_run), output=str(tmp_path / "hub"), format="anaphora"))
    again = export(Export(run=str(published), output=str(tmp_path / "again"), format="anaphora"))
    assert answer_temperatures(load(again)) == answer_temperatures(load(own_run)) == {"en": 0.25}


@pytest.mark.usefixtures("hub")
def test_the_control_of_a_run_of_the_hub_is_measured(script: Script) -> None:
    status, _, err = script("controls", f"run={NAME}", "controls=[uniform]", "trainer.device=cpu")
    assert status == 0, err
    controls = json.loads(Path("outputs/owner--name/controls/controls.json").read_text(encoding="utf-8"))
    assert controls["uniform"]["measured_on"]["weights"]


@pytest.mark.usefixtures("hub")
def test_scores_of_a_run_of_the_hub_are_looked_for_where_scoring_puts_them(script: Script) -> None:
    status, _, err = script("report", f"runs=[{NAME},hf://owner/other]", "output=seeds.csv")
    assert status == 2
    assert f"{Path('outputs/owner--name/metrics.json')} is missing: score the run first" in err
    assert f"anaphora score run={NAME}" in err

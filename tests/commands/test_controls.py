from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from anaphora.analysis.evidence.measurement import measured_on
from anaphora.analysis.evidence.plan import CONTROLS
from anaphora.analysis.results.typed_json import to_json
from anaphora.runs.directory import RunFiles, load
from anaphora.runs.items import evaluation_splits
from anaphora.settings.run import read_config

Script = Callable[..., tuple[int, str, str]]


def metrics_of(run: Path) -> dict[str, dict[str, object] | None]:
    return dict(json.loads((run / "controls" / "controls.json").read_text(encoding="utf-8")))


@pytest.mark.usefixtures("checkpoints_stay")
def test_controls_are_trained_with_the_runs_own_settings_then_reused_or_resumed(own_run: Path, script: Script) -> None:
    status, out, err = script("controls", f"run={own_run}")
    assert status == 0, err
    metrics = metrics_of(own_run)
    assert set(metrics) == set(CONTROLS)
    stored = read_config(own_run / "config.yaml")
    for name, control in metrics.items():
        assert control is not None
        assert control["run"] == name
        config = read_config(own_run / "controls" / name / "config.yaml")
        assert (config.data, config.validation, config.seed) == (stored.data, stored.validation, stored.seed)
        assert json.loads((own_run / "controls" / name / "training.json").read_text())["steps"] == 8
        assert f"{name}: " in out
    assert out.count(": training") == 4

    layout = RunFiles(own_run / "controls" / "shuffled_labels")
    weights = layout.weights.read_bytes()
    layout.weights.unlink()
    status, out, err = script("controls", f"run={own_run}", "controls=[shuffled_labels,no_positions]")
    assert status == 0, err
    assert "shuffled_labels: unfinished; it is resumed" in out
    assert "no_positions: finished; its weights are reused" in out
    assert layout.weights.read_bytes() == weights
    assert metrics_of(own_run) == metrics


def test_one_control_leaves_the_others_open(own_run: Path, script: Script) -> None:
    status, out, err = script("controls", f"run={own_run}", "controls=[uniform]", "split=dev", "trainer.device=cpu")
    assert status == 0, err
    controls = json.loads((own_run / "controls" / "controls_dev.json").read_text(encoding="utf-8"))
    assert [name for name in CONTROLS if controls[name] is None] == list(CONTROLS[1:])
    assert "uniform: nothing to check" in out
    run = load(own_run)
    assert controls["uniform"]["measured_on"] == to_json(measured_on(run, evaluation_splits(run, "dev")))


def test_masked_tokens_alone_are_a_control_without_answers(own_run: Path, script: Script) -> None:
    status, out, err = script("controls", f"run={own_run}", "controls=[masked_tokens]", "trainer.device=cpu")
    assert status == 0, err
    controls = metrics_of(own_run)
    assert {name for name, control in controls.items() if control is None} == set(CONTROLS)
    cells = json.loads(json.dumps(controls["masked_tokens"]))["languages"].values()
    for cell in (cell for kinds in cells for cell in kinds.values()):
        assert cell["task_accuracy"] is None
        assert 0 <= cell["candidate_accuracy"] <= 1
    assert "masked_tokens" in out


def test_a_run_of_uniform_attention_is_its_own_control(
    tmp_path: Path, tiny: Callable[..., object], script: Script
) -> None:
    from anaphora.training.run import train

    run = train(tiny(tmp_path, "model/attention=uniform", "trainer.limit_steps=2"))  # type: ignore[arg-type]
    status, out, err = script("controls", f"run={run}", "controls=[uniform,frozen_query_key]")
    assert status == 0, err
    assert out.count("the run itself is this control") == 2
    assert [path.name for path in (run / "controls").iterdir()] == ["controls.json"]


def test_a_run_without_attention_gets_no_controls_that_nothing_could_measure(
    tmp_path: Path, tiny: Callable[..., object], script: Script
) -> None:
    from anaphora.training.run import train

    run = train(tiny(tmp_path, "model/attention=gru", "trainer.limit_steps=2"))  # type: ignore[arg-type]
    status, out, err = script("controls", f"run={run}", "controls=[shuffled_labels]")
    assert status == 2 and "a recurrent network, which has no attention maps" in err
    assert "training" not in out and not (run / "controls" / "shuffled_labels").exists()


def test_a_control_of_other_settings_is_not_taken_for_this_runs(own_run: Path, script: Script) -> None:
    other = own_run / "controls" / "uniform"
    other.mkdir(parents=True)
    (other / "config.yaml").write_bytes((own_run / "config.yaml").read_bytes())
    status, _, err = script("controls", f"run={own_run}", "controls=[uniform]")
    assert status == 2
    assert "holds a run with other settings; remove or rename this folder" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run=nowhere",), "nowhere/config.yaml: there is no run here"),
        (("controls=[magic]",), "controls ('magic') must be one of uniform, frozen_query_key"),
        (("controls=[]",), "controls must name at least one of uniform"),
        (("split=all",), "split ('all') must be one of train, dev, test"),
    ],
)
def test_a_users_mistake_is_reported_in_one_line(arguments: tuple[str, ...], message: str, script: Script) -> None:
    status, _, err = script("controls", *arguments)
    assert status == 2
    assert message in err
    assert len(err.strip().splitlines()) == 1

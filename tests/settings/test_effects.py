"""Tests that a setting without effect is refused, that it really has none, and that no other setting is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from anaphora.base.errors import UserError
from anaphora.cli import register_commands
from anaphora.runs.directory import RunFiles
from anaphora.settings.compose import composed
from anaphora.settings.run import Config
from anaphora.settings.training import WITHOUT_EFFECT, Batching
from anaphora.training.run import train

CONFIGS = Path(__file__).parents[2] / "configs"
LAST = "validation.keep=last"
TEXTS = ("data=plain_text", "data.path=somewhere", "task=masked_lm")
TRAINED = {
    "task.masked_lm is 0": ((), "task.masked_lm_weight=2"),
    "task.own_token is 0": ((), "task.own_token_weight=2"),
    "task.supervision.weight is 0": ((), "task.supervision.layers=[0]"),
    "model.attention is uniform, whose": (("model/attention=uniform",), "task.supervision.weight=2"),
    "batching.kind is buckets": (("batching.kind=buckets",), "batching.row_tokens=16"),
    "model.attention is recurrent": (("model/attention=gru",), "model.position.base=50"),
    "task.prediction needs no output": (("task/prediction=bilinear",), "model.tied_output=true"),
    "optimizer.frozen_layers freezes": (("optimizer.frozen_layers=2",), "optimizer.layer_decay=0.5"),
    "task.prediction is none and the data are no": (("task=masked_lm", LAST), "validation.keep=best"),
    "task.prediction is none and model.attention is rec": (
        ("task=masked_lm", "model/attention=gru"),
        "validation.items=3",
    ),
    "trainer.loggers has no tensorboard": (("trainer.loggers=[csv]",), "trainer.pictures=4"),
}
"""Beginning of a condition in the table, with settings under which it holds, and one that then changes no training."""
REFUSED = [
    *((condition, *example) for condition, example in TRAINED.items()),
    ("model.attention is recurrent", ("model/attention=uniform",), "model/position=alibi"),
    ("task.prediction needs no output", ("task/prediction=pointer",), "model.output_transform=true"),
    ("optimizer.frozen_layers freezes", ("optimizer.frozen_layers=2",), "optimizer.matrices=muon"),
    ("model.layers is 1", ("model.layers=1", LAST), "optimizer.value_curriculum.end=0.5"),  # changes rounding alone
    ("data.types has none of gender", ("data.types=[voice]",), "data.shared_nouns=0.4"),
    ("task.prediction is none and the data are texts", TEXTS, "trainer.pictures=4"),
]
ACCEPTED = [
    ("task=masked_lm", "task.masked_lm_weight=2"),
    ("model/attention=uniform", "model/position=sinusoidal"),
    ("model/attention=uniform", "model/position=none"),
    ("model/attention=gru", "model/position=learned", "model.position.max_length=99"),
    ("model/attention=parameter_free", "model/position=alibi"),
    ("data.types=[voice,animacy]", "data.shared_nouns=0.4"),
    ("task/prediction=bilinear", "task.own_token=0.1", "model.tied_output=true"),
    ("task/prediction=bilinear", "model.tied_output=false"),
    (*TEXTS, "batching.kind=buckets", "batching.row_tokens=64"),
    (*TEXTS, "validation.keep=best"),
    ("task=masked_lm", "validation.keep=last"),
    ("start=a/model", "optimizer.frozen_layers=3", "optimizer.layer_decay=0.9"),
    ("optimizer.frozen_layers=2", "optimizer.layer_decay=0.9"),
    ("trainer.loggers=[]", "trainer.pictures=0"),
    ("recipe=small",),
    ("experiment=control_uniform",),
    ("recipe=fine_tuned", "batching.tokens=64"),
]


@pytest.fixture
def in_a_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anaphora.settings.compose.is_sweep_job", lambda: True)


def test_every_condition_of_the_table_has_an_example() -> None:
    without = {row.condition for row in WITHOUT_EFFECT} - {"executor is here", "train is false"}  # of studies
    assert without == {
        row.condition for row in WITHOUT_EFFECT if row.condition.startswith(tuple(one[0] for one in REFUSED))
    }
    assert all(any(row.condition.startswith(one) for row in WITHOUT_EFFECT) for one, *_ in REFUSED)


@pytest.mark.parametrize(("condition", "others", "setting"), REFUSED)
def test_a_setting_without_effect_is_refused(condition: str, others: tuple[str, ...], setting: str) -> None:
    register_commands()
    with pytest.raises(UserError) as caught:
        composed(CONFIGS, "train", ["model.layers=2", *others, setting])
    assert str(caught.value).startswith(f"{setting} has no effect while {condition}")


@pytest.mark.parametrize(("others", "setting"), TRAINED.values(), ids=list(TRAINED))
def test_a_refused_setting_changes_no_weight_and_no_validation(
    others: tuple[str, ...], setting: str, tiny: Callable[..., Config], tmp_path: Path
) -> None:
    def result(name: str, *overrides: str) -> tuple[list[str], Any, list[str]]:
        directory = train(tiny(tmp_path, f"name={name}", "trainer.pictures=1", *others, *overrides))
        weights = load_file(RunFiles(directory).weights)
        shown = [f"{name} {weight}" for name, weight in sorted(weights.items()) if not name.startswith("output.")]
        files = [path.name.split("tfevents")[0] for path in sorted(directory.rglob("*"))]
        return shown, json.loads(RunFiles(directory).training.read_text())["validations"], files

    assert result("plain") == result("changed", setting)


@pytest.mark.parametrize("overrides", ACCEPTED, ids=" ".join)
def test_a_setting_with_an_effect_or_that_turns_something_off_is_accepted(overrides: tuple[str, ...]) -> None:
    register_commands()
    composed(CONFIGS, "train", overrides)


@pytest.mark.parametrize(
    ("setting", "condition", "other"),
    [("slurm.minutes=5", "executor is here", "executor=slurm"), ("minutes=5", "train is false", "train=true")],
)
def test_limits_of_the_runs_of_a_study_need_such_runs(setting: str, condition: str, other: str) -> None:
    register_commands()
    study = ["study=mirror", setting]
    with pytest.raises(UserError, match=rf"^{setting} has no effect while {condition}$"):
        composed(CONFIGS, "study", ["train=false", *study])
    composed(CONFIGS, "study", [*study, other])


@pytest.mark.usefixtures("in_a_sweep")
def test_a_sweep_may_run_over_the_setting_on_which_an_effect_depends() -> None:
    register_commands()
    composed(CONFIGS, "train", ["task.supervision.heads=[0]", "task.supervision.weight=0"])
    composed(CONFIGS, "train", ["model/attention=gru", "model/position=rotary", "objective=best_head"])
    composed(CONFIGS, "train", ["experiment=bilinear", "task.own_token=0", "model.tied_output=true"])
    with pytest.raises(UserError, match=r"heads=\[0\] has no effect while task.supervision.weight is 0"):
        composed(CONFIGS, "train", ["task.supervision.heads=[0]"])


def test_an_objective_needs_a_sweep() -> None:
    register_commands()
    with pytest.raises(UserError, match="objective=best_head has no effect without -m"):
        composed(CONFIGS, "train", ["objective=best_head"])


def test_a_batch_may_be_smaller_than_packed_rows_that_there_are_not(compose: Callable[..., Any]) -> None:
    assert Batching(kind="buckets", tokens=64).tokens == 64
    with pytest.raises(UserError, match=r"batching.tokens \(64\) must be at least batching.row_tokens \(128\)"):
        Batching(tokens=64)
    from anaphora.settings.typed import resolve

    with pytest.raises(UserError, match=r"batching.tokens \(64\) must be at least batching.row_tokens"):
        resolve(compose(*TEXTS, "batching.kind=buckets", "batching.tokens=64"), Config)

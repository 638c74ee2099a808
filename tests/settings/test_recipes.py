from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from anaphora.base.errors import UserError
from anaphora.settings.data import ControlledCorpus, Data, Gap, LabelledText, OwnExamples, PlainText
from anaphora.settings.run import Config, config_yaml

CONFIGS = Path(__file__).parents[2] / "configs"
RECIPES = sorted(path.stem for path in (CONFIGS / "recipe").glob("*.yaml"))
PREDICTION = {"classification": "label", "classification_fine_tuned": "label", "pretrain": "none"}
"""Prediction of each recipe that does not predict antecedents."""
DATA: dict[str, dict[str, type[Data]]] = {
    "antecedent": {"controlled_large": ControlledCorpus, "jsonl": OwnExamples, "gap_fine_tuning": Gap},
    "label": {"labelled_text": LabelledText},
    "none": {"plain_text": PlainText, "jsonl": OwnExamples},
}
"""Data of every kind for each prediction; `test_compose` composes every data option with one recipe."""
PAIRS = [(recipe, data) for recipe in RECIPES for data in DATA[PREDICTION.get(recipe, "antecedent")]]
TINY = ("trainer=smoke", "trainer.limit_steps=1", "model.width=16", "model.layers=2")
Settings = Callable[..., Config]


@pytest.mark.parametrize(("recipe", "data"), PAIRS)
def test_a_recipe_composes_with_all_data_that_its_prediction_head_can_answer(
    recipe: str, data: str, settings: Settings
) -> None:
    path = () if data == "controlled_large" else ("data.path=somewhere",)
    expected = DATA[PREDICTION.get(recipe, "antecedent")][data]
    assert type(settings(f"recipe={recipe}", f"data={data}", *path).data) is expected


def test_data_that_a_recipe_cannot_answer_are_refused_in_one_line(settings: Settings) -> None:
    with pytest.raises(UserError, match=r"task\.prediction=word .*data=sst2 has none"):
        settings("recipe=token_values", "data=sst2", "data.path=somewhere")


@pytest.mark.parametrize("group", ["recipe", "experiment"])
def test_settings_of_data_stand_in_the_group_of_data_alone(group: str) -> None:
    for path in (CONFIGS / group).glob("*.yaml"):
        lines = path.read_text().splitlines()
        assert lines[0] == "# @package _global_" and lines[1].startswith("# ")
        content = yaml.safe_load("\n".join(lines))
        assert "data" not in content, path
        assert group == "experiment" or "override /data" not in json.dumps(content), path


def test_an_experiment_is_a_recipe_and_its_data(settings: Settings) -> None:
    assert config_yaml(settings("experiment=token_values")) == config_yaml(
        settings("recipe=token_values", "data.train_items=90000")
    )
    own = ("data=jsonl", "data.path=somewhere")
    assert config_yaml(settings("experiment=token_values", *own)) == config_yaml(settings("recipe=token_values", *own))


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_trains_on_ones_own_data(recipe: str, table: Path, tmp_path: Path, settings: Settings) -> None:
    from anaphora.training.run import train

    data = (f"data.path={table}", "data=jsonl")
    if PREDICTION.get(recipe) == "label":
        path = tmp_path / "texts.jsonl"
        texts = [{"text": f"It went {number}", "label": "ab"[number % 2]} for number in range(40)]
        path.write_text("\n".join(map(json.dumps, texts)), encoding="utf-8")
        data = (f"data.path={path}", "data=labelled_text")
    directory = train(settings(f"recipe={recipe}", *data, *TINY, f"output={tmp_path}", "name=run"))
    assert (directory / "model.safetensors").exists()


def test_a_run_with_token_values_on_ones_own_data_is_scored(
    table: Path, tmp_path: Path, script: Callable[..., Any]
) -> None:
    own = ("recipe=token_values", "data=jsonl", f"data.path={table}", *TINY)
    training = script("train", *own, f"output={tmp_path}", "name=own")
    assert training.status == 0, training.err
    scores = script("score", f"run={tmp_path / 'own'}")
    assert scores.status == 0, scores.err
    assert json.loads((tmp_path / "own" / "metrics.json").read_text())["head"]

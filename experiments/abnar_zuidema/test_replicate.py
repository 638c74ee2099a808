"""Tests of the whole replication in its smallest form: files, resumption and errors."""

from __future__ import annotations

import csv
import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anaphora.base.errors import UserError
from anaphora.settings.arguments import settings_from
from experiments.abnar_zuidema import replicate as run
from experiments.abnar_zuidema.blank_out import MAPS, TOKEN_SETS
from experiments.abnar_zuidema.number_agreement import NumberItem, generate_items
from experiments.abnar_zuidema.replicate import replicate
from experiments.abnar_zuidema.settings import Replication
from experiments.abnar_zuidema.table import (
    PAPER_CORRELATIONS,
    SeedResult,
    build_metrics,
    correlation_figure,
    table_rows,
)

TINY: dict[str, Any] = {
    "layers": 2,
    "heads": 2,
    "width": 16,
    "steps": 3,
    "batch_tokens": 128,
    "sentences": 60,
    "items": 8,
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Replication, dict[str, Any]]:
    chosen = Replication(output=str(tmp_path_factory.mktemp("replication")), seeds=[0, 3], **TINY)
    return chosen, replicate(chosen)


def invented(last: dict[str, float], seeds: int = 2, layers: int = 6) -> dict[str, Any]:
    """Return the metrics of models with these mean correlations in the last layer, over forty items."""
    draw = np.random.default_rng(0)
    results = [
        SeedResult(
            seed=seed,
            accuracy=0.9,
            accuracy_with_attractors=None,
            subject_first=0.5,
            correlations={
                (which, name): last[name] + 0.1 * draw.normal(size=(40, layers))
                for which in TOKEN_SETS
                for name in MAPS
            },
        )
        for seed in range(seeds)
    ]
    return build_metrics(results, [f"frame {number % 8}" for number in range(40)], {})


def test_everything_is_written_and_says_the_same(finished: tuple[Replication, dict[str, Any]]) -> None:
    chosen, metrics = finished
    folder = Path(chosen.output)
    assert json.loads((folder / "metrics.json").read_text()) == metrics
    assert {**metrics["settings"], "overwrite": False} == asdict(chosen)
    assert {path.suffix for path in (folder / "figures").iterdir()} == {".png", ".svg", ".pdf"}
    with (folder / "table.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(TOKEN_SETS) * len(MAPS) * 2
    for row in rows:
        cell = metrics["spearman"][row["tokens"]][row["map"]][int(row["layer"]) - 1]
        assert float(row["mean"]) == cell["mean"]
        assert float(row["highest_seed"]) == max(cell["seeds"])
        assert row["paper_mean"] == ""  # two layers are not the paper's six
    assert [one["seed"] for one in metrics["models"]] == [0, 3]


def test_a_finished_seed_is_not_trained_again(
    finished: tuple[Replication, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any) -> Any:
        raise AssertionError("trained again")

    monkeypatch.setattr("anaphora.training.run.train", never)
    monkeypatch.setattr(run, "save_figure", lambda *_: None)
    chosen, metrics = finished
    assert replicate(chosen) == metrics
    with pytest.raises(AssertionError, match="trained again"):
        replicate(replace(chosen, seeds=[0, 4], overwrite=True))


def test_no_measured_sentence_was_trained_on_however_many_are_measured(
    finished: tuple[Replication, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    corpora: list[list[NumberItem]] = []

    def noted(*arguments: Any) -> list[NumberItem]:
        corpora.append(generate_items(*arguments))
        return corpora[-1]

    monkeypatch.setattr(run, "generate_items", noted)
    monkeypatch.setattr(run, "save_figure", lambda *_: None)
    chosen = replace(finished[0], seeds=[0], overwrite=True)
    replicate(chosen)
    replicate(replace(chosen, items=40))
    training, few, again, many = corpora
    assert training == again
    assert many[: len(few)] == few
    assert not {item.text for item in training} & {item.text for item in many}


def test_models_of_other_settings_are_not_taken(finished: tuple[Replication, dict[str, Any]]) -> None:
    with pytest.raises(UserError, match="holds a run with other settings; choose another output="):
        replicate(replace(finished[0], steps=4, overwrite=True))


def test_results_with_other_settings_are_not_overwritten(finished: tuple[Replication, dict[str, Any]]) -> None:
    metrics = Path(finished[0].output) / "metrics.json"
    before = metrics.read_bytes()
    with pytest.raises(UserError, match=r"metrics\.json holds the results with .*set overwrite=true"):
        replicate(replace(finished[0], items=9))
    assert metrics.read_bytes() == before


def test_broken_weights_are_named(finished: tuple[Replication, dict[str, Any]], tmp_path: Path) -> None:
    chosen = replace(finished[0], seeds=[0], overwrite=True)
    output = Path(shutil.copytree(chosen.output, tmp_path / "copy"))
    (output / "seed_0" / "model.safetensors").write_bytes(b"cut")
    chosen = replace(chosen, output=str(output))
    settings = output / "seed_0" / "config.yaml"
    settings.write_text(settings.read_text().replace(finished[0].output, chosen.output))  # of the sentences
    with pytest.raises(UserError, match=r"model\.safetensors: broken or cut off"):
        replicate(chosen)


@pytest.mark.parametrize(
    ("last", "sentence"),
    [
        ({"raw": 0.2, "rollout": 0.7, "flow": 0.6}, "Rollout and flow both beat raw attention at the last layer, as "),
        ({"raw": 0.2, "rollout": 0.7, "flow": 0.1}, "Only rollout beats raw attention at the last layer; in the paper"),
        ({"raw": 0.7, "rollout": 0.5, "flow": 0.6}, "Neither rollout nor flow beats raw attention at the last layer, "),
    ],
)
def test_the_sentence_says_what_the_numbers_say(last: dict[str, float], sentence: str) -> None:
    metrics = invented(last)
    assert metrics["sentence"].startswith(sentence)
    for name in MAPS:
        cell = metrics["spearman"]["all"][name][-1]
        low, high = cell["interval"]
        assert low < cell["mean"] < high
        assert cell["mean"] == pytest.approx(last[name], abs=0.05)
        assert cell["deviation"] == pytest.approx(0.1, abs=0.03)


def test_one_seed_below_raw_is_no_win() -> None:
    metrics = invented({"raw": 0.2, "rollout": 0.7, "flow": 0.6}, seeds=1)
    good = {
        key: np.full((40, 6), 0.9 if key[1] == "rollout" else 0.5) for key in [(w, n) for w in TOKEN_SETS for n in MAPS]
    }
    bad = {key: np.full((40, 6), 0.49 if key[1] == "rollout" else 0.5) for key in good}
    results = [SeedResult(seed, 0.9, 0.8, 0.5, one) for seed, one in enumerate((good, bad))]
    mixed = build_metrics(results, [str(number) for number in range(40)], {})
    assert mixed["last_layer_over_raw"]["rollout"]["interval"][0] > 0
    assert mixed["sentence"].startswith("Neither")
    assert metrics["sentence"].startswith("Rollout and flow both")


def test_six_layers_stand_beside_the_papers_numbers() -> None:
    metrics = invented({"raw": 0.2, "rollout": 0.7, "flow": 0.6})
    rows = {(row["tokens"], row["map"], row["layer"]): row for row in table_rows(metrics)}
    assert rows["all", "raw", 6]["paper_mean"] == PAPER_CORRELATIONS["raw"][5][0] == 0.29
    assert rows["words", "raw", 6]["paper_mean"] is None
    drawing = correlation_figure(metrics)
    titles = {text.get_text() for axes in drawing.axes for text in axes.texts}
    assert {"this encoder", "Abnar and Zuidema 2020, table 1", "raw", "rollout", "flow"} <= titles
    curves = [np.asarray(line.get_ydata()) for axes in drawing.axes[1:] for line in axes.lines]
    last = [curve[-1] for curve in curves if len(curve) == 6]
    assert last[:3] == [metrics["spearman"]["all"][name][-1]["mean"] for name in MAPS]
    assert last[3:] == [PAPER_CORRELATIONS[name][-1][0] for name in MAPS]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("seeds=[]", "seeds"),
        ("seeds=[1,1]", "must be one or more different numbers"),
        ("width=100", r"width \(100\) must be a multiple of heads \(8\)"),
        ("masked=1", "masked"),
        ("items=1", "items"),
        ("learning_rate=0", "learning_rate"),
        ("widht=3", "widht"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(wrong: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        settings_from([wrong], Replication)


def test_the_size_is_the_papers() -> None:
    chosen = settings_from([], Replication)
    assert (chosen.layers, chosen.heads, chosen.width, len(chosen.seeds)) == (6, 8, 128, 3)

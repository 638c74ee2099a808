from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anaphora.analysis.scores import Head
from anaphora.analysis.settings import Analysis
from anaphora.analysis.study import Study, study
from anaphora.checkpoint import load
from anaphora.data.example import Example
from anaphora.errors import UserError
from anaphora.training.run import train
from anaphora.workflow import accuracy_rows, alike, material_of, read_scores, scores_file, write_scores

EVIDENCE = ("causal", "verdict", "examined")


@pytest.fixture(scope="module")
def found(finished: Path) -> Study:
    run = load(finished)
    material = material_of(run, Analysis(run=str(finished)))
    return study(run, material.training, material.development, material.measured, "test", 0, Head(1, 0))


def stored(folder: Path) -> dict[str, Any]:
    return read_scores(folder, "test")


def test_evidence_stays_with_the_head_and_items_that_it_is_about(found: Study, tmp_path: Path) -> None:
    told = {name: f"what was found of {name}" for name in EVIDENCE}
    write_scores(found, tmp_path, {**found.metrics(), **told})
    write_scores(found, tmp_path)
    assert {name: stored(tmp_path)[name] for name in EVIDENCE} == told
    write_scores(replace(found, head=Head(0, 1)), tmp_path)
    assert stored(tmp_path)["head"]["layer"] == 0 and not set(EVIDENCE) & set(stored(tmp_path))
    write_scores(found, tmp_path, {**found.metrics(), **told})
    fewer = np.arange(len(found.measured.examples) - 2)
    baselines = {name: right[fewer] for name, right in found.baselines.items()}
    part = replace(
        found, measured=found.measured.select(fewer), baselines=baselines, untrained=found.untrained[:, fewer]
    )
    write_scores(part, tmp_path)
    assert not set(EVIDENCE) & set(stored(tmp_path))


def test_each_split_has_its_own_file(found: Study, tmp_path: Path) -> None:
    assert read_scores(tmp_path, "test") == {}
    write_scores(replace(found, split="dev"), tmp_path)
    assert read_scores(tmp_path, "test") == {}
    assert read_scores(tmp_path, "dev")["split"] == "dev"
    assert [scores_file(tmp_path, split).name for split in ("test", "dev")] == ["metrics.json", "metrics_dev.json"]
    assert (tmp_path / "tables" / "heads_dev.csv").stat().st_size


def test_a_write_that_fails_leaves_the_old_scores(
    found: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_scores(found, tmp_path)
    before = scores_file(tmp_path, "test").read_bytes()
    with pytest.raises(ValueError, match="JSON"):
        write_scores(found, tmp_path, {**found.metrics(), "broken": float("nan")})
    assert scores_file(tmp_path, "test").read_bytes() == before
    assert not [path for path in tmp_path.rglob(".*") if path.is_file()]
    assert json.loads(before)["head"] == {"layer": 1, "head": 0, "chosen_on": "dev"}


def test_runs_are_alike_wherever_and_on_whatever_they_run(found: Study) -> None:
    config = found.run.config
    moved = replace(config, name="other", output="elsewhere", trainer=replace(config.trainer, device="cuda"))
    assert alike(config, moved)
    assert not alike(config, replace(config, seed=1))
    assert not alike(config, replace(config, trainer=replace(config.trainer, limit_steps=1)))
    assert not alike(config, replace(config, optimizer=replace(config.optimizer, steps=9)))


def test_accuracy_is_told_by_cell_with_its_worst_template() -> None:
    def item(template: str, cue: str) -> Example:
        factors = {"kind": "set", "type": cue, "stratum": "main", "template": template}
        return Example(
            text="a b", language="en", pronoun=(0, 1), candidates=(((2, 3),),), antecedents=(0,), factors=factors
        )

    examples = [item("t1", "x"), item("t2", "x"), item("t2", "x"), item("t1", "y")]
    rows = accuracy_rows(examples, np.array([1.0, 1.0, 0.0, 0.0]))
    assert [(row["type"], row["items"], row["accuracy"], row["worst_template"]) for row in rows] == [
        ("x", 3, pytest.approx(2 / 3), "t2 0.50"),
        ("y", 1, 0, "t1 0.00"),
    ]


def test_a_split_without_items_is_told(found: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    run = found.run

    class Empty:
        def examples(self, split: str) -> list[Example]:
            return []

    monkeypatch.setattr("anaphora.workflow.load_corpus", lambda source: Empty())
    with pytest.raises(UserError, match=r"split \(test\) holds no items"):
        material_of(run, Analysis(run=str(run.directory)))


def test_a_run_without_attention_is_evaluated_and_has_no_maps_to_show(
    tiny: Callable[..., Any], tmp_path: Path, script: Callable[..., Any]
) -> None:
    run = train(tiny(tmp_path, "model/attention=gru")).directory
    status, _, err = script("evaluate", f"run={run}")
    assert status == 0, err
    told = json.loads((run / "evaluation" / "test_answers.json").read_text(encoding="utf-8"))
    assert len(told) == 12
    assert all(one["correct"] == (one["answer"] in one["antecedents"]) for one in told)
    assert not (run / "evaluation" / "test_templates.csv").exists()
    for name, more in (("score_attention", ()), ("explain", ("layer=0", "head=0", "text=Anna"))):
        status, _, err = script(name, f"run={run}", *more)
        assert status != 0
        assert "attention" in err
        assert "Traceback" not in err

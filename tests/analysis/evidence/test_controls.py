from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from anaphora.analysis.evidence import controls
from anaphora.analysis.evidence.controls import EXPECTED, control_config, controls_path, measure_control, read, write
from anaphora.analysis.evidence.evidence import Control
from anaphora.analysis.evidence.plan import ALL_CONTROLS, CONTROLS
from anaphora.analysis.maps.answers import Answers
from anaphora.analysis.maps.capture import Capture
from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.results.typed_json import to_json
from anaphora.base.errors import UserError
from anaphora.base.files import write_json
from anaphora.data.example import Example
from anaphora.runs.directory import Run
from anaphora.settings.model.attention import ParameterFree, SharedQueryKey, Uniform
from anaphora.settings.model.position import NoPosition
from anaphora.settings.model.prediction import Bilinear, NoPrediction, Pair
from anaphora.settings.run import Config, config_yaml
from anaphora.settings.training import Supervision, Validation, ValueCurriculum

Settings = Callable[..., Config]


@pytest.fixture(scope="module")
def demo(settings: Settings) -> Config:
    return settings("experiment=compositions")


@pytest.mark.parametrize("name", ALL_CONTROLS)
def test_the_experiment_file_of_a_control_is_the_demo_with_its_one_change(
    name: str, demo: Config, settings: Settings
) -> None:
    assert config_yaml(control_config(demo, name)) == config_yaml(settings(f"experiment=control_{name}"))
    assert control_config(demo, name) != demo


def test_each_control_changes_what_it_says_and_nothing_else(demo: Config) -> None:
    uniform = control_config(demo, "uniform")
    assert uniform == replace(demo, model=replace(demo.model, attention=Uniform(heads=1)))
    frozen = control_config(demo, "frozen_query_key")
    assert frozen == replace(demo, optimizer=replace(demo.optimizer, frozen=["query", "key"]))
    shuffled = control_config(demo, "shuffled_labels")
    assert shuffled == replace(demo, task=replace(demo.task, labels="shuffled"))
    assert control_config(demo, "no_positions") == replace(demo, model=replace(demo.model, position=NoPosition()))
    nearest = control_config(demo, "nearest")
    assert nearest == replace(demo, task=replace(demo.task, labels="nearest"))
    assert control_config(demo, "pairwise") == replace(demo, task=replace(demo.task, prediction=Bilinear()))
    assert demo.optimizer.frozen == []


def test_masked_tokens_alone_leave_no_other_loss_and_keep_the_runs_share(demo: Config) -> None:
    task = replace(demo.task, masked_lm=0.3, supervision=Supervision(weight=1.0))
    for before, share in ((task, 0.3), (demo.task, 0.15)):
        alone = control_config(replace(demo, task=before), "masked_tokens").task
        assert (alone.prediction, alone.masked_lm) == (NoPrediction(), share)
        assert (alone.own_token, alone.minimal_pair_contrast, alone.supervision.weight) == (0, 0, 0)
    without_curriculum = replace(demo.optimizer, value_curriculum=ValueCurriculum())
    patient = replace(demo, optimizer=without_curriculum, validation=Validation(patience=3))
    assert control_config(patient, "masked_tokens").validation.patience == 0  # it has no loss to wait for


def test_where_nothing_learns_labels_other_labels_are_no_change_but_where_attention_learns_them_they_are(
    demo: Config,
) -> None:
    alone = control_config(demo, "masked_tokens")
    supervised = replace(alone, task=replace(alone.task, supervision=Supervision(weight=1.0)))
    for control, labels in (("shuffled_labels", "shuffled"), ("nearest", "nearest")):
        assert control_config(alone, control) == alone
        assert control_config(supervised, control).task.labels == labels
        assert control_config(control_config(demo, control), "masked_tokens") == alone


def test_a_pairwise_scorer_of_another_kind_is_its_own_control(demo: Config) -> None:
    other = replace(demo, task=replace(demo.task, prediction=Pair()))
    assert control_config(other, "pairwise") == other
    reads = replace(demo, task=replace(demo.task, prediction=Pair(attention=True, none_of_them=True)))
    assert control_config(reads, "pairwise").task.prediction == Bilinear(none_of_them=True)


def test_a_control_freezes_only_what_the_runs_attention_has(demo: Config) -> None:
    shared = replace(demo, model=replace(demo.model, attention=SharedQueryKey(heads=4)))
    assert control_config(shared, "frozen_query_key").optimizer.frozen == ["query"]
    some = replace(demo, optimizer=replace(demo.optimizer, frozen=["key", "value"]))
    assert control_config(some, "frozen_query_key").optimizer.frozen == ["key", "value", "query"]
    assert control_config(some, "uniform").optimizer.frozen == ["value"]
    free = replace(demo, model=replace(demo.model, attention=ParameterFree(heads=4)))
    assert control_config(free, "frozen_query_key") == free


def test_a_run_without_the_thing_is_its_own_control(demo: Config) -> None:
    for name in ALL_CONTROLS:
        assert control_config(control_config(demo, name), name) == control_config(demo, name)


def test_a_control_that_does_not_exist_is_reported(demo: Config) -> None:
    with pytest.raises(UserError, match=r"controls \('magic'\) must be one of uniform, frozen_query_key"):
        control_config(demo, "magic")


def test_every_control_has_an_expectation() -> None:
    assert tuple(EXPECTED) == ALL_CONTROLS


SPANS = ((0, 2), (3, 5), (6, 8))


def item(right: bool, gold: int, kind: str) -> AttentionRecord:
    rows = np.full((1, 2, 3), 1 / 3, dtype=np.float32)
    rows[0, 1] = 0.1
    rows[0, 1, gold if right else 1 - gold] = 0.8
    example = Example(
        text="ab ab ab",
        language="zh",
        pronoun=SPANS[2],
        candidates=((SPANS[0],), (SPANS[1],)),
        antecedents=(gold,),
        factors={"kind": kind} if kind else {},
    )
    return AttentionRecord(example, SPANS, (0, 1, 2), rows)


def measured(name: str, run: Run, patched: pytest.MonkeyPatch, points: int, answers: int, kind: str) -> Control:
    """Return a control whose head picks `points` of 20 antecedents, and whose model answers `answers` correctly."""
    records = [item(number < points, number % 2, kind) for number in range(20)]
    development = [item(True, number % 2, kind) for number in range(4)]
    captures = {
        4: Capture(development, Answers(np.zeros(4, dtype=np.int64), np.ones(4), np.zeros(4))),
        20: Capture(
            records, Answers(np.zeros(20, dtype=np.int64), (np.arange(20) < answers).astype(float), np.zeros(20))
        ),
    }
    patched.setattr(controls, "capture_run", lambda run, examples: captures[len(examples)])
    return measure_control(name, run, [one.example for one in development], [one.example for one in records])


@pytest.mark.parametrize(
    ("name", "points", "answers", "kind", "expected"),
    [
        ("uniform", 20, 11, "role", True),
        ("uniform", 10, 13, "role", False),
        ("uniform", 10, 7, "role", False),
        ("uniform", 10, 20, "set", None),
        ("frozen_query_key", 11, 20, "set", True),
        ("frozen_query_key", 15, 10, "role", False),
        ("frozen_query_key", 15, 10, "", False),
        ("shuffled_labels", 9, 20, "role", True),
        ("shuffled_labels", 20, 10, "set", False),
        ("no_positions", 11, 11, "role", True),
        ("no_positions", 11, 20, "role", False),
        ("no_positions", 20, 11, "role", False),
        ("masked_tokens", 11, 20, "role", True),
        ("masked_tokens", 20, 10, "role", False),
        ("masked_tokens", 20, 10, "set", None),
        ("pairwise", 11, 20, "role", True),
        ("pairwise", 20, 20, "role", False),
        ("nearest", 11, 11, "role", True),
        ("nearest", 20, 20, "role", False),
        ("nearest", 20, 20, "set", None),
    ],
)
def test_a_control_is_as_expected_where_what_it_should_lose_is_near_chance(
    name: str, points: int, answers: int, kind: str, expected: bool | None, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    control = measured(name, run, monkeypatch, points, answers, kind)
    assert control.as_expected is expected
    cell = control.languages["zh"][kind or "all"]
    assert (cell.task_accuracy, cell.candidate_accuracy, cell.chance) == (answers / 20, points / 20, 0.5)
    assert (control.run, control.seed, control.expected) == ("run", 0, EXPECTED[name].statement)


def test_what_a_surprise_means_is_reported_beside_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    agreed, surprised = (
        measured("frozen_query_key", run, monkeypatch, *rest) for rest in ((11, 20, "set"), (15, 10, ""))
    )
    assert agreed.as_expected and "compared" not in agreed.observed
    assert surprised.as_expected is False and "the states that are compared still learn" in surprised.observed


@pytest.mark.parametrize("name", ["frozen_query_key", "masked_tokens", "pairwise"])
def test_a_head_below_chance_is_not_called_one_that_points(
    name: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    control = measured(name, run, monkeypatch, 5, 10, "role")
    assert control.as_expected is False
    assert control.observed == "zh role cues candidate 25.0 % (chance 50.0 %)."


def test_what_was_observed_is_reported_with_its_numbers(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    control = measured("no_positions", run, monkeypatch, 12, 11, "role")
    assert control.observed == (
        "zh role cues task 55.0 % (chance 50.0 %); zh role cues candidate 60.0 % (chance 50.0 %)."
    )
    assert (
        measured("frozen_query_key", run, monkeypatch, 12, 11, "").observed
        == "zh items candidate 60.0 % (chance 50.0 %)."
    )
    assert "nothing" in measured("uniform", run, monkeypatch, 12, 11, "set").observed


def test_the_head_is_chosen_on_development(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    # Head 0 weighs all alike, which is 0.5 everywhere; development prefers head 1, which is never right here.
    control = measured("frozen_query_key", run, monkeypatch, 0, 10, "role")
    assert control.languages["zh"]["role"].candidate_accuracy == 0


def test_a_real_run_is_measured(run: Run, finished: Path) -> None:
    from anaphora.data.store import load as load_corpus

    corpus = load_corpus(run.config.data)
    control = measure_control("uniform", run, corpus.examples("dev"), corpus.examples("test"))
    assert set(control.languages) == {"en", "zh"}
    json.dumps(to_json(control), allow_nan=False)


def test_controls_that_were_not_trained_are_null(tmp_path: Path) -> None:
    assert read(tmp_path, "test") == dict.fromkeys(CONTROLS)
    control = Control(run="uniform", seed=0, languages={}, as_expected=None, expected="a", observed="b")
    write(tmp_path, "test", {**read(tmp_path, "test"), "uniform": control})
    assert read(tmp_path, "test") == {**dict.fromkeys(CONTROLS), "uniform": control}
    assert controls_path(tmp_path, "test") == tmp_path / "controls" / "controls.json"
    assert read(tmp_path, "dev") == dict.fromkeys(CONTROLS)


def test_a_further_control_is_there_only_once_it_is_trained(tmp_path: Path) -> None:
    control = Control(run="nearest", seed=0, languages={}, as_expected=None, expected="a", observed="b")
    write(tmp_path, "test", {**read(tmp_path, "test"), "nearest": control})
    assert read(tmp_path, "test") == {**dict.fromkeys(CONTROLS), "nearest": control}


def test_a_control_without_one_of_its_keys_is_an_error_that_names_it(tmp_path: Path) -> None:
    write_json(controls_path(tmp_path, "test"), {"uniform": {"run": "uniform"}})
    with pytest.raises(UserError, match=r"controls.json: uniform.seed: the key is missing"):
        read(tmp_path, "test")

from __future__ import annotations

import copy
from typing import Any

import pytest

from anaphora.analysis.settings import CONTROLS
from anaphora.analysis.verdict import near_chance, verdict

CELL: dict[str, Any] = {
    "quad_accuracy": 0.8,
    "lift": 5.0,
    "chance": 0.45,
    "baselines": {"nearest": 0.5, "random_init": 0.46, "random_init_95": 0.52, "bag_by_place": None},
    "intervals": {"quad_accuracy": [0.7, 0.9], "lift": [4.0, 6.0]},
}
CAUSAL: dict[str, Any] = {
    "knock_out": {"layer": {"gold_minus_matched": {"value": 0.4, "interval": [0.3, 0.5]}}},
    "patch": {"layer": {"flipped": 0.9, "interval": [0.8, 1.0]}},
}
UNIFORM = {"task_accuracy": 0.5, "candidate_accuracy": 0.45, "interval": None, "chance": 0.45}


def metrics() -> dict[str, Any]:
    """Numbers of a run in which everything passes."""
    kinds = ("set", "role")
    return copy.deepcopy(
        {
            "languages": {"en": {**CELL, **dict.fromkeys(kinds, CELL)}},
            "significance": {"en": {kind: {"p": 0.001, "p_holm": 0.004} for kind in kinds}},
            "causal": {"languages": {"en": dict.fromkeys(kinds, CAUSAL)}},
            "controls": {name: {"languages": {"en": dict.fromkeys(kinds, UNIFORM)}} for name in CONTROLS},
        }
    )


def told(found: dict[str, Any], alpha: float = 0.05) -> dict[str, str]:
    return {kind: cell["verdict"] for kind, cell in verdict(found, alpha)["en"].items()}


def put(found: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    *parents, last = path.split("/")
    place = found
    for name in parents:
        place = place[name]
    place[last] = value
    return found


def test_a_run_in_which_every_row_passes_is_supported() -> None:
    assert told(metrics()) == {"set": "supported", "role": "supported"}
    rows = verdict(metrics(), 0.05)["en"]["role"]["rows"]
    assert [row["rule"] for row in rows] == [
        "significance",
        "lift",
        "quad accuracy",
        "knock-out",
        "pattern patch",
        "uniform attention",
        "trained controls",
    ]
    for row in rows:
        assert list(row) == ["rule", "question", "value", "interval", "needed", "passed"]
        assert row["question"].endswith("?")
    assert "uniform attention" not in [row["rule"] for row in verdict(metrics(), 0.05)["en"]["set"]["rows"]]


@pytest.mark.parametrize(
    ("rule", "path", "failing", "passing"),
    [
        ("significance", "significance/en/role/p_holm", 0.05, 0.049),
        ("lift", "languages/en/role/intervals/lift", [1.0, 3.0], [1.01, 3.0]),
        ("quad accuracy", "languages/en/role/quad_accuracy", 0.52, 0.53),
        ("quad accuracy", "languages/en/role/baselines/nearest", 0.8, 0.79),
        ("quad accuracy", "languages/en/role/chance", 0.81, 0.45),
        ("knock-out", "causal/languages/en/role/knock_out/layer/gold_minus_matched/interval", [0.1, 0.5], [0.11, 0.5]),
        ("pattern patch", "causal/languages/en/role/patch/layer/flipped", 0.5, 0.51),
        ("uniform attention", "controls/uniform/languages/en/role/task_accuracy", 0.56, 0.54),
        ("uniform attention", "controls/uniform/languages/en/role/task_accuracy", 0.34, 0.36),
    ],
)
def test_each_rule_alone_decides_at_its_threshold(rule: str, path: str, failing: Any, passing: Any) -> None:
    cell = verdict(put(metrics(), path, failing), 0.05)["en"]["role"]
    assert cell["verdict"] == "not supported"
    assert [row["rule"] for row in cell["rows"] if row["passed"] is not True] == [rule]
    assert [row["passed"] for row in cell["rows"] if row["rule"] == rule] == [False]
    assert told(put(metrics(), path, passing))["role"] == "supported"


def test_alpha_is_the_callers() -> None:
    assert told(metrics(), alpha=0.004) == {"set": "not supported", "role": "not supported"}
    assert verdict(metrics(), 0.004)["en"]["set"]["rows"][0]["needed"] == "p < 0.004"


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("significance", "significance"),
        ("languages/en/role/intervals/lift", "lift"),
        ("languages/en/role/quad_accuracy", "quad accuracy"),
        ("languages/en/role/baselines/random_init_95", "quad accuracy"),
        ("causal/languages/en/role/knock_out/layer", "knock-out"),
        ("causal/languages/en/role/patch", "pattern patch"),
        ("controls/uniform/languages/en/role/task_accuracy", "uniform attention"),
    ],
)
def test_what_was_not_measured_never_passes(path: str, rule: str) -> None:
    cell = verdict(put(metrics(), path, None), 0.05)["en"]["role"]
    assert [row["rule"] for row in cell["rows"] if row["passed"] is None] == [rule]
    assert cell["verdict"] == "not supported"


@pytest.mark.parametrize("missing", CONTROLS)
def test_without_one_of_the_trained_controls_the_verdict_is_open(missing: str) -> None:
    found = metrics()
    found["controls"][missing] = None
    assert told(found) == {"set": "not yet controlled", "role": "not yet controlled"}
    row = verdict(found, 0.05)["en"]["set"]["rows"][-1]
    assert (row["rule"], row["value"], row["needed"], row["passed"]) == ("trained controls", 3, "4 of 4", None)


def test_without_any_of_the_later_parts_every_row_still_stands() -> None:
    found = {"languages": metrics()["languages"]}
    cell = verdict(found, 0.05)["en"]["role"]
    assert cell["verdict"] == "not yet controlled"
    assert [row["passed"] for row in cell["rows"]] == [None, True, True, None, None, None, None]


def test_items_without_a_kind_have_one_verdict() -> None:
    found = metrics()
    found["languages"]["en"] = CELL
    found["significance"]["en"] = {"all": {"p": 0.001, "p_holm": 0.001}}
    found["causal"]["languages"]["en"] = {"all": CAUSAL}
    assert told(found) == {"all": "supported"}


def test_near_chance_is_within_ten_points_on_either_side() -> None:
    assert [near_chance(accuracy, 0.5) for accuracy in (0.39, 0.41, 0.59, 0.61)] == [False, True, True, False]
    assert near_chance(None, 0.5) is None

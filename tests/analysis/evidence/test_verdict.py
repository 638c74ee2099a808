from __future__ import annotations

import copy
from typing import Any

import pytest

from anaphora.analysis.evidence.evidence import Evidence, Verdict
from anaphora.analysis.evidence.plan import CONTROLS
from anaphora.analysis.evidence.verdict import UNITS, near_chance, verdict, verdict_at_head

SCORES = ("task", "candidate", "quad", "minimal_pair", "open", "focal")
CELL: dict[str, Any] = {
    "items": 100,
    **{f"{name}_accuracy": 0.8 for name in SCORES},
    "antecedent_mass": 0.7,
    "lift": 5.0,
    "chance": 0.45,
    "baselines": {
        "nearest": 0.5,
        "best_offset": 0.5,
        "random_init": 0.46,
        "random_init_95": 0.52,
        "bag_by_place": None,
    },
    "intervals": {
        **{f"{name}_accuracy": [0.7, 0.9] for name in SCORES},
        "antecedent_mass": [0.6, 0.8],
        "lift": [4.0, 6.0],
    },
}
FLIPPED = {"flipped": 0.9, "interval": [0.8, 1.0]}
CAUSAL: dict[str, Any] = {
    "items": 100,
    "task_accuracy": 0.8,
    "knockout": {"layer": {"gold_minus_matched": {"value": 0.4, "interval": [0.3, 0.5]}}},
    "head_ablation": {"single": [], "cumulative": []},
    "pattern_patching": {
        "pairs": 50, "skipped": 0, "head": FLIPPED, "layer": FLIPPED, "cumulative": [], "all_layers": FLIPPED,
    },
    "dose_response": {},
    "head_level": {
        "items": 100, "antecedent_points": 45.0, "antecedent_interval": [35.0, 55.0], "other_edges_points": 4.0,
        "other_edges_interval": [1.0, 7.0], "pairs": 50, "patch_flips": 0.85, "patch_interval": [0.75, 0.95],
    },
}  # fmt: skip
SPECIFICITY = {
    "items": 100, "pronoun_mass": 0.8, "best_other_mass": 0.3, "ratio": 2.67, "difference": 0.5, "interval": [0.4, 0.6]
}  # fmt: skip
UNIFORM = {"task_accuracy": 0.5, "candidate_accuracy": 0.45, "interval": None, "chance": 0.45}
CONTROL = {"run": "control", "seed": 0, "as_expected": True, "expected": "", "observed": ""}
KINDS = ("set", "role")


def metrics() -> dict[str, Any]:
    """Return the contents of metrics.json for a run in which every rule passes."""
    return copy.deepcopy(
        {
            "version": 2,
            "split": "test",
            "head": {"layer": 0, "head": 0, "chosen_on": "dev"},
            "languages": {"en": {**CELL, **dict.fromkeys(KINDS, CELL)}},
            "strata": {},
            "dropped": {},
            "untrained_models": 20,
            "significance": {"en": {kind: {"p": 0.001, "p_holm": 0.004} for kind in KINDS}},
            "causal": {
                "items": 100,
                "head": {"layer": 0, "head": 0},
                "languages": {"en": dict.fromkeys(KINDS, CAUSAL)},
            },
            "pronoun_specificity": {"en": dict.fromkeys(KINDS, SPECIFICITY)},
            "controls": {name: {**CONTROL, "languages": {"en": dict.fromkeys(KINDS, UNIFORM)}} for name in CONTROLS},
        }
    )


def verdicts(content: dict[str, Any], alpha: float = 0.05) -> dict[str, Verdict]:
    """Return the verdict on each kind of cue."""
    return verdict(Evidence.from_json(content), alpha)["en"]


def results(content: dict[str, Any], alpha: float = 0.05) -> dict[str, str]:
    return {kind: cell.verdict for kind, cell in verdicts(content, alpha).items()}


def patching_question(content: dict[str, Any]) -> str:
    return next(row.question for row in verdicts(content)["role"].rows if row.rule == "attention-pattern patching")


def put(content: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    *parents, last = path.split("/")
    part = content
    for name in parents:
        part = part[name]
    part[last] = value
    return content


def test_every_rule_has_a_unit() -> None:
    evidence = Evidence.from_json(metrics())
    of_both = (verdict(evidence, 0.05), verdict_at_head(evidence, 0.05))
    assert {row.rule for one in of_both for cell in one["en"].values() for row in cell.rows} == UNITS.keys()


def test_a_run_in_which_every_row_passes_is_supported() -> None:
    assert results(metrics()) == {"set": "supported", "role": "supported"}
    rows = verdicts(metrics())["role"].rows
    assert [row.rule for row in rows] == [
        "significance",
        "lift",
        "quad accuracy",
        "attention knockout",
        "attention-pattern patching",
        "uniform attention",
        "trained controls",
    ]
    for row in rows:
        assert row.question.endswith("?")
    assert "uniform attention" not in [row.rule for row in verdicts(metrics())["set"].rows]


@pytest.mark.parametrize(
    ("rule", "path", "failing", "passing"),
    [
        ("significance", "significance/en/role/p_holm", 0.05, 0.049),
        ("lift", "languages/en/role/intervals/lift", [1.0, 3.0], [1.01, 3.0]),
        ("quad accuracy", "languages/en/role/quad_accuracy", 0.52, 0.53),
        ("quad accuracy", "languages/en/role/baselines/nearest", 0.8, 0.79),
        ("quad accuracy", "languages/en/role/chance", 0.81, 0.45),
        (
            "attention knockout",
            "causal/languages/en/role/knockout/layer/gold_minus_matched/interval",
            [0.1, 0.5],
            [0.11, 0.5],
        ),
        ("attention-pattern patching", "causal/languages/en/role/pattern_patching/layer/flipped", 0.5, 0.51),
        ("uniform attention", "controls/uniform/languages/en/role/task_accuracy", 0.56, 0.54),
        ("uniform attention", "controls/uniform/languages/en/role/task_accuracy", 0.34, 0.36),
    ],
)
def test_each_rule_alone_decides_at_its_threshold(rule: str, path: str, failing: Any, passing: Any) -> None:
    cell = verdicts(put(metrics(), path, failing))["role"]
    assert cell.verdict == "not supported"
    assert [row.rule for row in cell.rows if row.passed is not True] == [rule]
    assert [row.passed for row in cell.rows if row.rule == rule] == [False]
    assert results(put(metrics(), path, passing))["role"] == "supported"


def test_alpha_is_the_callers() -> None:
    assert results(metrics(), alpha=0.004) == {"set": "not supported", "role": "not supported"}
    assert verdicts(metrics(), 0.004)["set"].rows[0].needed == "p < 0.004"


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("significance", "significance"),
        ("languages/en/role/intervals/lift", "lift"),
        ("languages/en/role/quad_accuracy", "quad accuracy"),
        ("languages/en/role/baselines/random_init_95", "quad accuracy"),
        ("causal/languages/en/role/knockout/layer/gold_minus_matched/interval", "attention knockout"),
        ("causal/languages/en/role/pattern_patching/layer/flipped", "attention-pattern patching"),
        ("controls/uniform/languages/en/role/task_accuracy", "uniform attention"),
    ],
)
def test_what_was_not_measured_never_passes(path: str, rule: str) -> None:
    cell = verdicts(put(metrics(), path, None))["role"]
    assert [row.rule for row in cell.rows if row.passed is None] == [rule]
    assert cell.verdict == "not supported"


@pytest.mark.parametrize(("flipped", "result"), [(0.51, "supported"), (0.5, "not supported")])
def test_where_no_pair_differs_in_one_word_the_layer_is_patched_between_aligned_sentences(
    flipped: float, result: str
) -> None:
    """Cues of two Chinese characters are two words; without aligned pairs, no Chinese user data could be supported."""
    content = put(metrics(), "causal/languages/en/role/pattern_patching/layer/flipped", None)
    aligned = {"pairs": 50, "head": FLIPPED, "layer": {"flipped": flipped, "interval": [0.4, 0.6]}}
    content = put(content, "causal/languages/en/role/pattern_patching/aligned", aligned)
    assert results(content)["role"] == result
    assert "aligned word by word" in patching_question(content)
    cell = Evidence.from_json(content).causal_cells["en"]["role"].pattern_patching
    assert (cell.used.layer.flipped, cell.used.head.flipped, cell.used.pairs) == (flipped, 0.9, 50)
    strict = put(content, "causal/languages/en/role/pattern_patching/layer/flipped", 0.9)
    assert results(strict)["role"] == "supported"
    assert "aligned" not in patching_question(strict)
    unknown = {"flipped": None, "interval": None}
    nothing = {"pairs": 0, "head": unknown, "layer": unknown}  # no pair is answered correctly, whatever the cues are
    content = put(content, "causal/languages/en/role/pattern_patching/aligned", nothing)
    assert "aligned" not in patching_question(content)


@pytest.mark.parametrize("missing", CONTROLS)
def test_without_one_of_the_trained_controls_the_verdict_is_open(missing: str) -> None:
    content = metrics()
    content["controls"][missing] = None
    assert results(content) == {"set": "not yet controlled", "role": "not yet controlled"}
    row = verdicts(content)["set"].rows[-1]
    assert (row.rule, row.value, row.needed, row.passed) == ("trained controls", 3, "4 of 4", None)


def test_without_any_of_the_later_parts_every_row_still_stands() -> None:
    content = metrics()
    for part in ("significance", "causal", "controls"):
        del content[part]
    cell = verdicts(content)["role"]
    assert cell.verdict == "not yet controlled"
    assert [row.passed for row in cell.rows] == [None, True, True, None, None, None, None]


@pytest.mark.parametrize(
    ("path", "value", "rule"),
    [
        ("split", "dev", "significance"),
        ("head/chosen_on", "named", "significance"),
        ("causal/languages/en/role/pattern_patching/layer/interval", None, "attention-pattern patching"),
        ("languages/en/role/baselines/best_offset", None, "quad accuracy"),
    ],
)
def test_what_the_numbers_cannot_show_never_passes(path: str, value: Any, rule: str) -> None:
    """Cases are items that chose the head, pairs of one template, and learned baselines without training items."""
    content = put(metrics(), path, value)
    assert results(content)["role"] == "not supported"
    assert [row.rule for row in verdicts(content)["role"].rows if row.passed is not True] == [rule]


def test_items_without_a_kind_have_one_verdict() -> None:
    content = metrics()
    content["languages"]["en"] = CELL
    content["significance"]["en"] = {"all": {"p": 0.001, "p_holm": 0.001}}
    content["causal"]["languages"]["en"] = {"all": CAUSAL}
    assert results(content) == {"all": "supported"}


def test_near_chance_is_within_ten_points_on_either_side() -> None:
    assert [near_chance(accuracy, 0.5) for accuracy in (0.39, 0.41, 0.59, 0.61)] == [False, True, True, False]
    assert near_chance(0.55, 0.45) and near_chance(0.45, 0.55)  # 0.55 - 0.45 is a little more than 0.1 in binary
    assert near_chance(None, 0.5) is None


def test_at_the_head_its_own_rows_decide_in_place_of_its_layers() -> None:
    cells = verdict_at_head(Evidence.from_json(metrics()), 0.05)["en"]
    assert {kind: cell.verdict for kind, cell in cells.items()} == {"set": "supported", "role": "supported"}
    assert [row.rule for row in cells["role"].rows] == [
        "significance",
        "lift",
        "quad accuracy",
        "the head's edge to the antecedent",
        "the head's other edges",
        "attention-pattern patching",
        "the pronoun and no other word",
        "uniform attention",
        "trained controls",
    ]
    layer = put(metrics(), "causal/languages/en/role/pattern_patching/layer/flipped", 0.1)
    assert verdict_at_head(Evidence.from_json(layer), 0.05)["en"]["role"].verdict == "supported"
    assert results(layer)["role"] == "not supported"


@pytest.mark.parametrize(
    ("rule", "path", "failing", "passing"),
    [
        (
            "the head's edge to the antecedent",
            "causal/languages/en/role/head_level/antecedent_interval",
            [30.0, 55.0],
            [30.1, 55.0],
        ),
        ("the head's other edges", "causal/languages/en/role/head_level/other_edges_points", 10.1, 10.0),
        ("attention-pattern patching", "causal/languages/en/role/head_level/patch_flips", 0.79, 0.8),
        ("the pronoun and no other word", "pronoun_specificity/en/role/ratio", 1.9, 2.0),
    ],
)
def test_each_rule_of_the_head_alone_decides_at_its_threshold(rule: str, path: str, failing: Any, passing: Any) -> None:
    for value, passed in ((failing, False), (passing, True)):
        cell = verdict_at_head(Evidence.from_json(put(metrics(), path, value)), 0.05)["en"]["role"]
        assert [row.passed for row in cell.rows if row.rule == rule] == [passed]
        assert cell.verdict == ("supported" if passed else "not supported")


def test_what_was_not_measured_of_the_head_never_passes() -> None:
    content = metrics()
    del content["pronoun_specificity"]
    for kind in KINDS:
        content["causal"]["languages"]["en"][kind].pop("head_level", None)  # kinds share one table
    cell = verdict_at_head(Evidence.from_json(content), 0.05)["en"]["role"]
    assert [row.rule for row in cell.rows if row.passed is None] == [
        "the head's edge to the antecedent",
        "the head's other edges",
        "attention-pattern patching",
        "the pronoun and no other word",
    ]
    assert cell.verdict == "not supported"


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("the head's other edges", "causal/languages/en/role/head_level/other_edges_interval"),
        ("the pronoun and no other word", "pronoun_specificity/en/role/interval"),
    ],
)
def test_a_rule_of_the_head_without_an_interval_is_not_decided(rule: str, path: str) -> None:
    cell = verdict_at_head(Evidence.from_json(put(metrics(), path, None)), 0.05)["en"]["role"]
    assert [row.rule for row in cell.rows if row.passed is None] == [rule]
    assert cell.verdict == "not supported"


def test_quads_beside_nothing_to_compare_with_are_not_judged() -> None:
    content = put(metrics(), "languages/en/role/baselines", {})
    content = put(content, "languages/en/role/chance", None)
    row = next(row for row in verdicts(content)["role"].rows if row.rule == "quad accuracy")
    assert (row.passed, row.needed) == (None, "above every baseline")


def test_every_row_says_its_value_its_interval_and_what_is_needed() -> None:
    evidence = Evidence.from_json(metrics())
    expected = {
        "significance": (0.004, None, "p < 0.05"),
        "lift": (5.0, (4.0, 6.0), "interval above 1"),
        "quad accuracy": (0.8, (0.7, 0.9), "above every baseline (best: random init 95 0.520)"),
        "attention knockout": (0.4, (0.3, 0.5), "interval above 10 points"),
        "attention-pattern patching": (0.9, (0.8, 1.0), "more than 50 % of right answers"),
        "uniform attention": (0.5, None, "task accuracy within 10 points of chance (0.450)"),
        "trained controls": (4, None, "4 of 4"),
    }
    at_head = {
        "the head's edge to the antecedent": (45.0, (35.0, 55.0), "interval above 30 points"),
        "the head's other edges": (4.0, (1.0, 7.0), "at most 10 points"),
        "attention-pattern patching": (0.85, (0.75, 0.95), "at least 80 % of right answers"),
        "the pronoun and no other word": (2.67, None, "at least 2 times"),
    }
    of_layer = ("attention knockout", "attention-pattern patching")
    others = {rule: row for rule, row in expected.items() if rule not in of_layer}
    for cells, wanted in ((verdict(evidence, 0.05), expected), (verdict_at_head(evidence, 0.05), others | at_head)):
        for row in cells["en"]["role"].rows:
            ends = row.interval and (row.interval.low, row.interval.high)
            assert (row.value, ends, row.needed) == wanted[row.rule], row.rule


def test_a_chance_that_is_not_known_is_not_reported() -> None:
    content = put(metrics(), "controls/uniform/languages/en/role/chance", None)
    row = next(row for row in verdicts(content)["role"].rows if row.rule == "uniform attention")
    assert (row.passed, row.needed) == (None, "task accuracy within 10 points of chance")


def test_ten_points_are_near_still() -> None:
    assert near_chance(0.1, 0.0) is True

"""Tests of invalid settings of a study."""

from __future__ import annotations

from typing import Any

import pytest
from invented import plan, rule

from anaphora.base.errors import UserError
from anaphora.studies.plan import VerdictRule


def test_a_bound_in_percent_of_a_measure_that_is_a_share_is_refused() -> None:
    with pytest.raises(
        UserError, match=r"at_most \(60\) must be from -1 to 1; task_accuracy is a share, so 60 % is 0.6"
    ):
        VerdictRule(statement="at most 60 %", cell="base", at_most=60)


def test_other_measures_have_bounds_in_their_own_unit() -> None:
    assert VerdictRule(statement="40 points", cell="base", measure="antecedent_points", at_least=40).at_least == 40


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"measure": "task_acuracy"},
            r"rules \('it points'\): measure \('task_acuracy'\) must be one of task_accuracy, ",
        ),
        ({"group": "sett"}, r"group \('sett'\) must be one of all, set, role, pronoun, .* distance 64, "),
        ({"baseline_group": "distance 5"}, r"baseline_group \('distance 5'\) must be one of all, "),
        ({"measure": "antecedent_heads"}, r"group \('set'\) must be all$"),
        ({"languages": ["eng"]}, r"languages \('eng'\) must be one of en, zh"),
        ({"measure": "entropy_bits", "group": "d_k 4", "languages": ["en"]}, r"languages \('en'\) must be .*any"),
    ],
)
def test_a_rule_on_what_no_measure_gives_is_refused_before_training(wrong: dict[str, Any], message: str) -> None:
    plan(rules=[rule(at_least=0.5)])
    with pytest.raises(UserError, match=message):
        plan(rules=[rule(**{"at_least": 0.5, **wrong})])


def test_a_rule_may_be_about_a_type_of_cue_if_routes_are_measured() -> None:
    passive = rule(group="passive", measure="without_layer_1_accuracy", at_least=0.5)
    assert plan(measures=["routes"], rules=[passive]).rules == [passive]
    with pytest.raises(UserError, match=r"group \('passive'\) must be one of all, set, "):
        plan(rules=[rule(group="passive", at_least=0.5)])
    with pytest.raises(UserError, match=r"measure \('without_layer_1_accuracy'\) needs routes among the measures"):
        plan(measures=["scores"], rules=[passive])


def test_a_study_may_leave_out_the_measures_of_its_rules() -> None:
    of_others = [
        rule(group="query permuted", at_least=0.5),
        rule(group="L0", measure="patch_flips", at_least=0.5),
        rule(group="d_k 4", measure="entropy_bits", at_least=1),
    ]
    assert plan(measures=["scores"], rules=of_others).rules == of_others

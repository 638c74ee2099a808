from __future__ import annotations

from typing import Any

import pytest
from invented import cells, plan, record, records, rule, study

from anaphora.analysis.results.scores import Spread
from anaphora.base.errors import UserError
from anaphora.base.translation import spoken_in
from anaphora.studies.page.words import measure_text
from anaphora.studies.run import terminal_report
from anaphora.studies.schema import Groups, SeedValues, Study
from anaphora.studies.summary import summarise, table_rows


def of(summary: Study, name: str) -> Groups:
    """Return the groups of a cell by language."""
    return next(cell.groups for cell in summary.cells if cell.name == name)


def test_a_cell_shows_the_median_and_the_spread_over_its_seeds() -> None:
    group = of(study(), "base")["en"]["set"]
    assert group.measures["candidate_accuracy"] == SeedValues(
        values=(0.90, 0.91, 0.92), median=0.91, lowest=0.90, highest=0.92
    )
    assert (group.solved, group.runs, group.is_solved) == (3, 3, True)


def test_differences_to_the_base_are_taken_seed_by_seed() -> None:
    difference = of(study(), "one")["en"]["set"].against_base["candidate_accuracy"]
    assert difference.median == pytest.approx(0.05)
    assert difference.interval is None  # three seeds that differ by the same
    assert (difference.pairs, difference.mean) == (3, difference.median)


def test_alignment_of_runs_that_do_not_solve_the_task_is_compared_with_nothing() -> None:
    summary = study()
    group = of(summary, "bilinear+one")["en"]["set"]
    assert group.is_solved is False
    assert set(group.against_base) == {"task_accuracy"}
    assert {one.measure for one in summary.interactions} == {"task_accuracy"}


def test_an_interaction_is_what_both_changes_do_beyond_their_sum() -> None:
    interaction = study(solved=0.5).interactions[1]
    assert (interaction.cell, interaction.language, interaction.group) == ("bilinear+one", "en", "set")
    assert (interaction.measure, interaction.pairs) == ("candidate_accuracy", 2)
    assert (interaction.median, interaction.lowest, interaction.highest) == pytest.approx(
        ((0.30 - 0.405) - (0.955 - 0.905), (0.30 - 0.41) - (0.96 - 0.91), (0.30 - 0.40) - (0.95 - 0.90))
    )
    assert interaction.mean == pytest.approx(-0.155)
    # Two seeds: a t interval, whose ends are 12.7 standard errors of 0.005 from the middle.
    assert interaction.interval is not None
    assert [*interaction.interval] == pytest.approx([-0.155 - 12.7062 * 0.005, -0.155 + 12.7062 * 0.005], abs=1e-5)


def test_a_pool_puts_the_runs_of_its_cells_together() -> None:
    (pool,) = study(pools={"two": ["base", "one"]}).pools
    assert (pool.name, pool.cells) == ("two", ("base", "one"))
    assert [(run.cell, run.seed) for run in pool.runs] == [
        (cell, seed) for cell in ("base", "one") for seed in range(3)
    ]
    group = pool.groups["en"]["set"]
    assert group.measures["candidate_accuracy"] == SeedValues(
        values=(0.90, 0.91, 0.92, 0.95, 0.96, 0.97), median=0.935, lowest=0.90, highest=0.97
    )
    assert (group.solved, group.runs) == (6, 6)


def test_a_pool_says_how_many_of_its_runs_have_a_measure() -> None:
    # A model of one layer has no measure of a second: the median is that of the other cell's runs alone.
    listed = records()
    for one in listed:
        if one.cell == "base":
            one.groups["en"]["set"]["layer_1_candidate_accuracy"] = 0.8 + one.seed / 100
    plan_of_two = plan(pools={"two": ["base", "one"]})
    (pool,) = summarise(plan_of_two, cells(), listed).pools
    group = pool.groups["en"]["set"]
    assert measure_text(group, "layer_1_candidate_accuracy") == "81.0 (80.0 to 82.0), 3 of 6 runs"
    assert measure_text(group, "candidate_accuracy") == "93.5 (90.0 to 97.0)"
    with spoken_in("zh"):
        assert measure_text(group, "layer_1_candidate_accuracy").endswith("，6 次训练中的 3 次")


def test_a_rule_may_be_about_a_pool() -> None:
    chosen = rule(cell="two", measure="candidate_accuracy", at_least=0.93)
    row = study(pools={"two": ["base", "one"]}, rules=[chosen]).verdict.rules[0]
    assert row.passed is True
    assert row.spreads["en"] == Spread(0.935, 0.90, 0.97)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pools": {"one": ["base", "bilinear"]}}, "there is a cell of that name"),
        ({"pools": {"two": ["base", "none"]}}, "'none'\\) must be one of the study's cells: base, "),
        ({"pools": {"two": ["base"]}}, "at least two different cells"),
        (
            {"pools": {"two": ["base", "one"]}, "rules": [rule(cell="two", baseline_cell="base", at_least=0)]},
            "have no partners of the same seed",
        ),
    ],
)
def test_a_pool_that_cannot_be_made_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        plan(**changes)


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({"measure": "candidate_accuracy", "at_least": 0.9}, "holds"),
        ({"measure": "candidate_accuracy", "at_least": 0.92}, "not so"),
        ({"measure": "candidate_accuracy", "seed_statistic": "highest", "at_least": 0.92}, "holds"),
        ({"measure": "candidate_accuracy", "seed_statistic": "lowest", "at_least": 0.91}, "not so"),
        ({"measure": "candidate_accuracy", "cell": "bilinear", "baseline_cell": "base", "at_most": -0.4}, "holds"),
        ({"measure": "candidate_accuracy", "cell": "bilinear+one", "at_least": 0.1}, "open"),
        # A seed of this cell failed: it might be anything, which two of three do not mind.
        ({"measure": "task_accuracy", "cell": "bilinear+one", "seed_statistic": "highest", "at_least": 0.9}, "open"),
        ({"measure": "task_accuracy", "cell": "bilinear+one", "at_least": 0.1}, "holds"),
        ({"measure": "task_accuracy", "cell": "bilinear+one", "seed_statistic": "lowest", "at_least": 0.1}, "open"),
        ({"measure": "task_accuracy", "cell": "bilinear+one", "at_least": 0.9}, "not so"),
        ({"measure": "task_accuracy", "cell": "bilinear+one", "at_least": 0.1, "at_most": 0.9}, "holds"),
        (
            {
                "measure": "task_accuracy",
                "cell": "bilinear+one",
                "seed_statistic": "highest",
                "at_least": 0.4,
                "at_most": 0.6,
            },
            "open",
        ),
        ({"group": "role", "at_least": 0.1}, "open"),
        ({"languages": ["zh"], "at_least": 0.1}, "open"),
    ],
)
def test_a_rule_is_checked_by_code(changes: dict[str, object], outcome: str) -> None:
    verdict = study(rules=[rule(**changes)]).verdict
    assert verdict.verdict == outcome
    assert verdict.rules[0].passed is {"holds": True, "not so": False, "open": None}[outcome]


def test_a_rule_on_some_languages_is_shown_with_their_numbers_alone() -> None:
    merged = [one if one.cell != "base" else record("base", one.seed, 0.99, 0.9) for one in records()]
    for one in merged:
        if one.cell == "base":
            one.groups.update(record("base", one.seed, 0.5, 0.3, language="zh").groups)
    (row,) = summarise(plan(rules=[rule(at_least=0.9, languages=["en"])]), cells(), merged).verdict.rules
    assert (row.passed, list(row.spreads)) == (True, ["en"])


def test_one_language_that_fails_makes_it_not_so() -> None:
    chosen = plan(rules=[rule(at_least=0.9)])
    chinese = [record("base", seed, 0.5, 0.5, language="zh") for seed in range(3)]
    merged = [one if one.cell != "base" else record("base", one.seed, 0.99, 0.9) for one in records()]
    for one, other in zip([one for one in merged if one.cell == "base"], chinese, strict=True):
        one.groups.update(other.groups)
    assert summarise(chosen, cells(), merged).verdict.verdict == "not so"


@pytest.mark.parametrize("baseline", [None, "one"])
def test_a_language_in_which_no_run_solves_the_task_leaves_a_claim_on_alignment_open(baseline: str | None) -> None:
    chosen = plan(rules=[rule(measure="candidate_accuracy", baseline_cell=baseline, at_least=-1)])
    listed = records()
    for one in listed:
        if one.groups:
            one.groups.update(record(one.cell, one.seed, 0.5, 0.5, language="zh").groups)
    summary = summarise(chosen, cells(), listed)
    (row,) = summary.verdict.rules
    assert (summary.verdict.verdict, row.passed) == ("open", None)
    assert row.spreads["en"] is not None and row.spreads["zh"] is None
    lines = [line for line in terminal_report(summary) if isinstance(line, str)]
    assert any(line.startswith("not checked: it points (English ") for line in lines)


def test_a_difference_that_was_measured_in_one_language_alone_is_judged_by_that_one() -> None:
    chosen = plan(rules=[rule(measure="candidate_accuracy", baseline_cell="one", at_least=-1)])
    listed = records()
    for one in listed:
        if one.cell == "base":
            one.groups.update(record("base", one.seed, 0.99, 0.9, language="zh").groups)
    summary = summarise(chosen, cells(), listed)
    assert summary.verdict.verdict == "holds"
    assert set(summary.verdict.rules[0].spreads) == {"en"}


def test_failed_runs_stand_in_the_table_like_the_others() -> None:
    rows = table_rows(study())
    assert len(rows) == 12
    failed = [row for row in rows if row["status"] == "failed"]
    assert failed == [{"cell": "bilinear+one", "factor": "pairs", "seed": 2, "status": "failed", "error": "it broke"}]

"""Summary of a study's results: ranges over seeds, differences from the base configuration, interactions, verdict.

The values of a measure are a list with one entry for each seed of the study; for a pool (several cells summarised
together), the lists of its cells are concatenated. An entry is None if the run is not finished or the measure does not
apply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from anaphora.analysis.results.scores import Spread
from anaphora.analysis.results.typed_json import Interval
from anaphora.analysis.scores.statistics import UNBOUNDED, cluster_interval, median_and_spread
from anaphora.base.translation import _, spoken_in
from anaphora.report.numbers import with_minus
from anaphora.studies.grid import StudyCell
from anaphora.studies.plan import ALIGNMENT_MEASURES, BASE_CELL, TASK_MEASURE, StudyPlan, VerdictRule, is_share
from anaphora.studies.records import RunRecord
from anaphora.studies.schema import (
    CellRun,
    CellSummary,
    Groups,
    GroupSummary,
    Interaction,
    PoolRun,
    PoolSummary,
    RuleOutcome,
    SeedDifference,
    SeedValues,
    Study,
    StudyVerdict,
)

Values = Sequence[float | None]


def summarise(plan: StudyPlan, cells: Sequence[StudyCell], records: Sequence[RunRecord]) -> Study:
    """Return the results of a study from the stored results of its runs.

    Differences are between runs of the same seed. For measures of how well attention identifies the antecedent
    (`ALIGNMENT_MEASURES`), only seeds are used for which both runs solve the task.
    """
    by_run = {(record.cell, record.seed): record for record in records}
    by_cell = {cell.name: [by_run[cell.name, seed] for seed in plan.seeds] for cell in cells}
    groups = {name: _group_summaries(plan, runs) for name, runs in by_cell.items()}
    summaries = [
        CellSummary(
            name=cell.name,
            factor=cell.factor,
            parts=cell.parts,
            overrides=cell.overrides,
            runs=tuple(
                CellRun(seed=run.seed, status=run.status, error=run.error, head=run.head, seconds=run.seconds)
                for run in by_cell[cell.name]
            ),
            groups=groups[cell.name]
            if cell.name == BASE_CELL
            else _with_differences(plan, groups[cell.name], groups[BASE_CELL]),
        )
        for cell in cells
    ]
    pools = []
    for name, pooled in plan.pools.items():
        of_pool = [run for cell in pooled for run in by_cell[cell]]
        runs = tuple(PoolRun(cell=run.cell, seed=run.seed, status=run.status) for run in of_pool)
        pools.append(PoolSummary(name=name, cells=tuple(pooled), runs=runs, groups=_group_summaries(plan, of_pool)))
    return Study(
        name=plan.name,
        question=plan.question,
        prediction=plan.prediction,
        question_zh=plan.question_zh,
        prediction_zh=plan.prediction_zh,
        names=dict(plan.names),
        names_zh=dict(plan.names_zh),
        solved=plan.solved,
        seeds=tuple(plan.seeds),
        split=plan.split,
        base=(*plan.base, *plan.more),
        cells=tuple(summaries),
        pools=tuple(pools),
        interactions=tuple(_interactions(plan, summaries)),
        verdict=verdict(plan, groups | {pool.name: pool.groups for pool in pools}),
    )


def table_rows(study: Study) -> list[dict[str, Any]]:
    """Return the rows of `study.csv`: one per finished run and group of items, and one per unfinished run."""
    rows: list[dict[str, Any]] = []
    for cell in study.cells:
        for number, run in enumerate(cell.runs):
            known = {
                "cell": cell.name,
                "factor": cell.factor,
                "seed": run.seed,
                "status": run.status,
                "error": run.error or None,
            }
            if run.status != "finished":
                rows.append(known)
                continue
            for language, group, summary in _each_group(cell.groups):
                values = {name: spread.values[number] for name, spread in summary.measures.items()}
                if any(value is not None for value in values.values()):
                    rows.append({**known, "language": language, "group": group, **values})
    return rows


def verdict(plan: StudyPlan, groups_of: Mapping[str, Groups]) -> StudyVerdict:
    """Return the verdict on the claim of a study, from the summaries of each cell (configuration) and pool.

    The verdict is "not so" if a rule (condition) fails. It is "open" if no rule fails but at least one is undecided, or
    if there are no rules. Otherwise, all rules hold, and the verdict is "holds". A rule is undecided if its outcome
    depends on a language or seed without measurements, or if it is about one of `ALIGNMENT_MEASURES` (how well
    attention identifies the antecedent) and the median task accuracy of a compared cell is below `plan.solved`.
    """
    rows = []
    for rule in plan.rules:
        sides = _rule_sides(rule, groups_of)
        languages = rule.languages or list(sides)
        spreads = {
            language: _spread(_rule_values(plan, rule, sides[language])) for language in languages if language in sides
        }
        checks = [_is_satisfied(plan, rule, sides[language]) if language in sides else None for language in languages]
        passed = False if False in checks else None if not checks or None in checks else True
        fields = asdict(rule) | {"languages": tuple(rule.languages)}
        with spoken_in("en"):  # result files are in English
            needed = rule_condition(rule, lambda bound: with_minus(f"{bound:g}"))
        rows.append(RuleOutcome(**fields, needed=needed, passed=passed, spreads=spreads))
    outcomes = [row.passed for row in rows]
    conclusion = "not so" if False in outcomes else "open" if None in outcomes or not outcomes else "holds"
    return StudyVerdict(verdict=conclusion, rules=tuple(rows))


def rule_condition(rule: VerdictRule | RuleOutcome, bound_text: Callable[[float], str]) -> str:
    """Return the condition of a rule as text, such as "lowest ≥ 0.9", with bounds formatted by `bound_text`."""
    bounds = "at_most" if rule.at_least is None else "at_least" if rule.at_most is None else "between"
    low, high = (None if end is None else bound_text(end) for end in (rule.at_least, rule.at_most))
    text = {
        ("lowest", "between"): _("lowest ≥ {low} and ≤ {high}"),
        ("lowest", "at_least"): _("lowest ≥ {low}"),
        ("lowest", "at_most"): _("lowest ≤ {high}"),
        ("highest", "between"): _("highest ≥ {low} and ≤ {high}"),
        ("highest", "at_least"): _("highest ≥ {low}"),
        ("highest", "at_most"): _("highest ≤ {high}"),
        ("median", "between"): _("≥ {low} and ≤ {high}"),
        ("median", "at_least"): _("≥ {low}"),
        ("median", "at_most"): _("≤ {high}"),
    }[rule.seed_statistic, bounds]
    return text.format(low=low, high=high)


def _each_group(groups: Groups) -> Iterator[tuple[str, str, GroupSummary]]:
    for language, of_language in groups.items():
        for group, summary in of_language.items():
            yield language, group, summary


def _group_summaries(plan: StudyPlan, runs: Sequence[RunRecord]) -> Groups:
    names = dict.fromkeys(
        (language, group) for run in runs for language, groups in run.groups.items() for group in groups
    )
    groups: Groups = {}
    for language, group in names:
        by_run = [run.groups.get(language, {}).get(group, {}) for run in runs]
        groups.setdefault(language, {})[group] = _seed_summary(plan, by_run)
    return groups


def _seed_summary(plan: StudyPlan, by_run: Sequence[Mapping[str, float | None]]) -> GroupSummary:
    measures: dict[str, SeedValues] = {}
    for name in dict.fromkeys(name for run in by_run for name in run):
        values = tuple(run.get(name) for run in by_run)
        spread = _spread(values)
        if spread:
            measures[name] = SeedValues(values=values, **vars(spread))
    task = measures.get(TASK_MEASURE)
    return GroupSummary(
        runs=sum(bool(run) for run in by_run),
        solved=None if task is None else sum(value is not None and value >= plan.solved for value in task.values),
        is_solved=None if task is None else task.median >= plan.solved,
        measures=measures,
    )


def _with_differences(plan: StudyPlan, groups: Groups, base: Groups) -> Groups:
    """Add the differences from the base configuration to the summaries of a configuration's groups of items."""
    return {
        language: {
            group: replace(summary, against_base=_differences_to_base(plan, summary, base[language][group]))
            if group in base.get(language, {})
            else summary
            for group, summary in of_language.items()
        }
        for language, of_language in groups.items()
    }


def _differences_to_base(plan: StudyPlan, group: GroupSummary, base: GroupSummary) -> dict[str, SeedDifference]:
    differences = {
        name: _difference_summary(
            _difference(_values_where_solved(plan, group, name), _values_where_solved(plan, base, name)),
            (-1.0, 1.0) if is_share(name) else UNBOUNDED,
        )
        for name in group.measures
        if name in base.measures and name not in ("items", "chance")
    }
    return {name: summary for name, summary in differences.items() if summary}


def _difference_summary(differences: Values, bounds: tuple[float, float]) -> SeedDifference | None:
    """Return the median, the range and the mean of differences, with a 95 % interval of the mean inside `bounds`.

    Return None if all differences are None.
    """
    spread = _spread(differences)
    if spread is None:
        return None
    known = _known(differences)
    ends = cluster_interval(known, list(range(len(known))), bounds=bounds)
    interval = Interval(round(ends[0], 6), round(ends[1], 6)) if ends else None
    return SeedDifference(**vars(spread), pairs=len(known), mean=round(float(np.mean(known)), 6), interval=interval)


def _values_where_solved(plan: StudyPlan, group: GroupSummary, measure: str) -> list[float | None]:
    """Return a measure's values over seeds.

    If the measure is in `ALIGNMENT_MEASURES` (how well attention identifies the antecedent), and task accuracy was
    measured, the values of runs that do not solve the task are replaced by None.
    """
    values = list(group.measures[measure].values)
    if measure not in ALIGNMENT_MEASURES or TASK_MEASURE not in group.measures:
        return values
    accuracies = group.measures[TASK_MEASURE].values
    return [
        value if accuracy is not None and accuracy >= plan.solved else None
        for value, accuracy in zip(values, accuracies, strict=True)
    ]


def _interactions(plan: StudyPlan, cells: Sequence[CellSummary]) -> Iterator[Interaction]:
    """Yield the interaction of each pair of changes to the base configuration.

    The interaction is computed for each seed as (both - first) - (second - base), where the four values belong to the
    configuration with both changes, those with one change each, and the base configuration.
    """
    groups_of = {cell.name: cell.groups for cell in cells}
    for cell in cells:
        if len(cell.parts) != 2:
            continue
        others = [groups_of[name] for name in (*cell.parts, BASE_CELL)]
        for language, group, of_both in _each_group(cell.groups):
            of_others = [other.get(language, {}).get(group) for other in others]
            for measure in (TASK_MEASURE, *ALIGNMENT_MEASURES):
                measured = [of for of in (of_both, *of_others) if of is not None and measure in of.measures]
                if len(measured) == 4:
                    both, first, second, base = (_values_where_solved(plan, of, measure) for of in measured)
                    differences = _difference(_difference(both, first), _difference(second, base))
                    summary = _difference_summary(differences, (-2.0, 2.0))
                    if summary:
                        yield Interaction(
                            cell=cell.name, language=language, group=group, measure=measure, **vars(summary)
                        )


def _rule_sides(rule: VerdictRule, groups_of: Mapping[str, Groups]) -> dict[str, list[GroupSummary]]:
    """Return the summaries of the groups of items that a rule compares, keyed by language.

    Each list has the summary of the rule's group and, if the rule subtracts a baseline (`baseline_cell` or
    `baseline_group`), the summary of that group. A language is left out if either summary lacks the measure.
    """
    sides = [(rule.cell, rule.group)]
    if rule.baseline_cell is not None or rule.baseline_group is not None:
        sides.append((rule.baseline_cell or rule.cell, rule.baseline_group or rule.group))
    by_language = {}
    for language in groups_of[rule.cell]:
        groups = [groups_of[cell].get(language, {}).get(group) for cell, group in sides]
        measured = [group for group in groups if group is not None and rule.measure in group.measures]
        if len(measured) == len(sides):
            by_language[language] = measured
    return by_language


def _rule_values(plan: StudyPlan, rule: VerdictRule, groups: Sequence[GroupSummary]) -> list[float | None]:
    """Return the values over seeds whose median, lowest or highest value a rule bounds.

    These are the values of the first of `groups` (from `_rule_sides`), minus those of the second group, if any.
    """
    values, *subtracted = (_values_where_solved(plan, group, rule.measure) for group in groups)
    return _difference(values, *subtracted) if subtracted else values


def _is_satisfied(plan: StudyPlan, rule: VerdictRule, groups: Sequence[GroupSummary]) -> bool | None:
    """Return whether a rule holds, or None if this is undecided.

    A rule is undecided if the answer depends on the values of runs without measurements, if no run has a value, or if
    the rule is about one of `ALIGNMENT_MEASURES` and the median task accuracy of a group is below `plan.solved`.
    """
    if rule.measure in ALIGNMENT_MEASURES and any(group.is_solved is False for group in groups):
        return None
    known = [value for value in _rule_values(plan, rule, groups) if value is not None]
    unmeasured = sum(
        None in of_seed for of_seed in zip(*(group.measures[rule.measure].values for group in groups), strict=True)
    )
    if not known:
        return None
    low, high = (
        round(getattr(median_and_spread([*known, *[extreme] * unmeasured]), rule.seed_statistic), 6)
        for extreme in (-np.inf, np.inf)
    )
    least = -np.inf if rule.at_least is None else rule.at_least
    most = np.inf if rule.at_most is None else rule.at_most
    if least <= low and high <= most:
        return True
    return False if high < least or low > most else None


def _difference(left: Values, right: Values) -> list[float | None]:
    return [
        None if minuend is None or subtrahend is None else minuend - subtrahend
        for minuend, subtrahend in zip(left, right, strict=True)
    ]


def _known(values: Values) -> list[float]:
    return [value for value in values if value is not None and np.isfinite(value)]


def _spread(values: Values) -> Spread | None:
    known = _known(values)
    if not known:
        return None
    return Spread(**{name: round(value, 6) for name, value in vars(median_and_spread(known)).items()})

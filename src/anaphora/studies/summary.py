"""A study's records put together: medians and spread over seeds, differences to the base, interactions, the verdict.

Values are lists over the plan's seeds, None where a run has not finished or a measure does not apply.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from anaphora.analysis.scores.cells import rounded
from anaphora.analysis.scores.statistics import cluster_interval, median_and_spread
from anaphora.report.numbers import NOT_MEASURED, with_minus
from anaphora.report.wording import DEFAULT, label, phrase
from anaphora.settings.commands.study import (
    ALIGNMENT_MEASURES,
    BASE_CELL,
    TASK_MEASURE,
    StudyPlan,
    VerdictRule,
)
from anaphora.studies.grid import Cell
from anaphora.studies.page.words import (
    condition_text,
    items_label,
    measure_label,
    measure_text,
    own_words,
    question_of,
    status_text,
    table_title,
    value_in,
)
from anaphora.studies.records import RunRecord

if TYPE_CHECKING:
    from rich.table import Table

SeedValues = Sequence[float | None]


def summarise(plan: StudyPlan, cells: Sequence[Cell], records: Sequence[RunRecord]) -> dict[str, Any]:
    """What `study.json` holds.

    Returns:
        {"name", "question", "prediction", "question_zh", "prediction_zh", "names", "names_zh", "solved", "seeds",
        "split", "base", "cells", "pools", "interactions", "verdict"}. A cell has "name", "factor", "parts",
        "overrides", "runs" and "groups": {language: {group: {"solved": of its seeds, "runs", "is_solved": whether the
        median is, or None, "measures": {measure: {"values", "median", "lowest", "highest"}}, "against_base": {measure:
        {"median", "lowest", "highest", "interval", "pairs"}}}}}. A pool has "name", "cells", "runs" and the "groups" of
        all its cells' runs, cell by cell. Differences are taken seed by seed; those of alignment only between runs that
        both solve the task.
    """
    summaries = [
        _cell_summary(plan, cell, [record for record in records if record.cell == cell.name]) for cell in cells
    ]
    by_name = {summary["name"]: summary for summary in summaries}
    for summary in summaries:
        for language, group, values in each_group(summary):
            base = _group(by_name[BASE_CELL], language, group)
            is_base = summary is by_name[BASE_CELL]
            values["against_base"] = {} if is_base or base is None else _differences_to_base(plan, values, base)
    pools = [_pool_summary(plan, pool, pooled, records) for pool, pooled in plan.pools.items()]
    return {
        "name": plan.name,
        "question": plan.question,
        "prediction": plan.prediction,
        "question_zh": plan.question_zh,
        "prediction_zh": plan.prediction_zh,
        "names": dict(plan.names),
        "names_zh": dict(plan.names_zh),
        "solved": plan.solved,
        "seeds": list(plan.seeds),
        "split": plan.split,
        "base": list(plan.base) + list(plan.more),
        "cells": summaries,
        "pools": pools,
        "interactions": list(_interactions(plan, summaries, by_name)),
        "verdict": verdict(plan, by_name | {pool["name"]: pool for pool in pools}),
    }


def table_cells(study: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the tables of a study have rows of: its cells, then its pools."""
    return [*study["cells"], *study["pools"]]


def each_group(cell: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(language, group, its summary) of a cell or a pool."""
    for language, groups in cell["groups"].items():
        for group, summary in groups.items():
            yield language, group, summary


def table_rows(study: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The table of a study: one row for each cell, seed, language and group; runs that did not finish have one row."""
    rows: list[dict[str, Any]] = []
    for cell in study["cells"]:
        for number, run in enumerate(cell["runs"]):
            known = {
                "cell": cell["name"],
                "factor": cell["factor"],
                "seed": run["seed"],
                "status": run["status"],
                "error": run["error"] or None,
            }
            if run["status"] != "finished":
                rows.append(known)
                continue
            for language, group, summary in each_group(cell):
                values = {name: spread["values"][number] for name, spread in summary["measures"].items()}
                if any(value is not None for value in values.values()):
                    rows.append({**known, "language": language, "group": group, **values})
    return rows


def verdict(plan: StudyPlan, cells: Mapping[str, Any]) -> dict[str, Any]:
    """Whether the claim holds: {"verdict": "holds", "not so" or "open", "rules": rows}.

    "not so" where a rule fails; "open" where none fails and one has no values, because they were not measured or, for
    alignment, because no run solves the task. A row holds the fields of the rule, "needed", "passed" (None where it has
    no values) and "spreads": {language: {"median", "lowest", "highest"}, or None where no run solves the task}.
    """
    rows = []
    for rule in plan.rules:
        spreads = {language: _spread(values) for language, values in _rule_values(plan, rule, cells).items()}
        checks = [_rule_holds(rule, spreads.get(language)) for language in rule.languages or spreads]
        passed = False if False in checks else None if not checks or None in checks else True
        rows.append({**asdict(rule), "needed": rule_condition(rule), "passed": passed, "spreads": spreads})
    outcomes = [row["passed"] for row in rows]
    conclusion = "not so" if False in outcomes else "open" if None in outcomes or not outcomes else "holds"
    return {"verdict": conclusion, "rules": rows}


def rule_condition(rule: VerdictRule) -> str:
    """The values that a rule needs, in signs and in English."""
    bounds = "at_most" if rule.at_least is None else "at_least" if rule.at_most is None else "between"
    low, high = (None if end is None else with_minus(f"{end:g}") for end in (rule.at_least, rule.at_most))
    return phrase("study_conditions", f"{rule.seed_statistic}_{bounds}", DEFAULT, low=low, high=high)


def terminal_report(study: Mapping[str, Any]) -> Iterator[Table | str]:
    """The lines printed at the end of a study: the question, a table a language, and the verdict with its rules.

    Cells are named as they are typed.
    """
    yield phrase("study_terminal", "heading", study=study["name"], question=question_of(study))
    for language in dict.fromkeys(language for cell in study["cells"] for language, *_ in each_group(cell)):
        yield _terminal_table(study, language)
    for cell in study["cells"]:
        for run in cell["runs"]:
            if run["status"] != "finished":
                state = status_text(run["status"], run["error"])
                yield phrase("study_terminal", "run", cell=cell["name"], seed=run["seed"], state=state)
    for row in study["verdict"]["rules"]:
        values = [
            value_in(language, with_minus(f"{spread[row['seed_statistic']]:.3g}") if spread else NOT_MEASURED)
            for language, spread in row["spreads"].items()
        ]
        yield phrase(
            "study_terminal",
            {True: "holds", False: "fails", None: "not_measured"}[row["passed"]],
            statement=own_words(row["statement"], row["statement_zh"]),
            measured=phrase("joined", "comma").join(values) or NOT_MEASURED,
            needed=condition_text(row["needed"]),
        )
    yield phrase("study_terminal", "verdict", verdict=label("study_counts", study["verdict"]["verdict"]))


def _terminal_table(study: Mapping[str, Any], language: str) -> Table:
    from rich import box
    from rich.table import Table

    title = table_title("study_terminal", language)
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    measures = dict.fromkeys(
        measure
        for cell in study["cells"]
        for group in cell["groups"].get(language, {}).values()
        for measure in group["measures"]
        if measure not in ("items", "chance", "quad_accuracy")
    )
    for name in ("cell", "items", "runs"):
        table.add_column(phrase("study_columns", name))
    for name in measures:
        table.add_column(measure_label(name), justify="right")
    for cell in table_cells(study):
        for group, summary in cell["groups"].get(language, {}).items():
            values = [measure_text(summary, name) for name in measures]
            table.add_row(cell["name"], items_label(group), str(summary["runs"]), *values)
    return table


def _cell_summary(plan: StudyPlan, cell: Cell, records: Sequence[RunRecord]) -> dict[str, Any]:
    runs = _by_seed(plan, records)
    return {
        "name": cell.name,
        "factor": cell.factor,
        "parts": list(cell.parts),
        "overrides": list(cell.overrides),
        "runs": [
            {"seed": run.seed, "status": run.status, "error": run.error, "head": run.head, "seconds": run.seconds}
            for run in runs
        ],
        "groups": _group_summaries(plan, runs),
    }


def _pool_summary(plan: StudyPlan, name: str, cells: Sequence[str], records: Sequence[RunRecord]) -> dict[str, Any]:
    runs = [run for cell in cells for run in _by_seed(plan, [record for record in records if record.cell == cell])]
    return {
        "name": name,
        "cells": list(cells),
        "runs": [{"cell": run.cell, "seed": run.seed, "status": run.status} for run in runs],
        "groups": _group_summaries(plan, runs),
    }


def _by_seed(plan: StudyPlan, records: Sequence[RunRecord]) -> list[RunRecord]:
    """The records of one cell in the order of the plan's seeds."""
    by_seed = {record.seed: record for record in records}
    return [by_seed[seed] for seed in plan.seeds]


def _group_summaries(plan: StudyPlan, runs: Sequence[RunRecord]) -> dict[str, dict[str, Any]]:
    """{language: {group: its summary over runs}}."""
    names = dict.fromkeys(
        (language, group) for run in runs for language, groups in run.groups.items() for group in groups
    )
    groups: dict[str, dict[str, Any]] = {}
    for language, group in names:
        by_run = [run.groups.get(language, {}).get(group, {}) for run in runs]
        groups.setdefault(language, {})[group] = _seed_summary(plan, by_run)
    return groups


def _seed_summary(plan: StudyPlan, by_run: Sequence[Mapping[str, float | None]]) -> dict[str, Any]:
    measures: dict[str, Any] = {}
    for name in dict.fromkeys(name for run in by_run for name in run):
        values = [run.get(name) for run in by_run]
        spread = _spread(values)
        if spread:
            measures[name] = {"values": values, **spread}
    task = measures.get(TASK_MEASURE)
    return {
        "runs": sum(bool(run) for run in by_run),
        "solved": None if task is None else sum(value is not None and value >= plan.solved for value in task["values"]),
        "is_solved": None if task is None else task["median"] >= plan.solved,
        "measures": measures,
    }


def _differences_to_base(plan: StudyPlan, group: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    differences = {}
    for name in group["measures"]:
        if name in base["measures"] and name not in ("items", "chance"):
            differences[name] = _difference_summary(
                _difference(_values_where_solved(plan, group, name), _values_where_solved(plan, base, name))
            )
    return {name: summary for name, summary in differences.items() if summary}


def _difference_summary(differences: SeedValues) -> dict[str, Any] | None:
    """Differences over seeds: median, lowest, highest, how many there are, and the 95 % interval of their mean."""
    spread = _spread(differences)
    if spread is None:
        return None
    known = [value for value in differences if value is not None]
    ends = cluster_interval(known, list(range(len(known))))
    return {**spread, "pairs": len(known), "interval": ends and [rounded(end) for end in ends]}


def _values_where_solved(plan: StudyPlan, group: Mapping[str, Any], measure: str) -> list[float | None]:
    """A measure's values over seeds; alignment only of the runs that solve the task."""
    values = list(group["measures"][measure]["values"])
    if measure not in ALIGNMENT_MEASURES or TASK_MEASURE not in group["measures"]:
        return values
    accuracies = group["measures"][TASK_MEASURE]["values"]
    return [
        value if accuracy is not None and accuracy >= plan.solved else None
        for value, accuracy in zip(values, accuracies, strict=True)
    ]


def _interactions(
    plan: StudyPlan, cells: Sequence[Mapping[str, Any]], by_name: Mapping[str, Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """What two changes do together beyond the sum of what each does: (both - one) - (other - base), seed by seed."""
    for cell in cells:
        if len(cell["parts"]) != 2:
            continue
        others = [by_name[name] for name in (*cell["parts"], BASE_CELL)]
        for language, group, of_both in each_group(cell):
            of_others = [_group(other, language, group) for other in others]
            for measure in (TASK_MEASURE, *ALIGNMENT_MEASURES):
                measured = [of for of in (of_both, *of_others) if of is not None and measure in of["measures"]]
                if len(measured) == 4:
                    both, first, second, base = (_values_where_solved(plan, of, measure) for of in measured)
                    summary = _difference_summary(_difference(_difference(both, first), _difference(second, base)))
                    if summary:
                        yield {
                            "cell": cell["name"],
                            "language": language,
                            "group": group,
                            "measure": measure,
                            **summary,
                        }


def _rule_values(plan: StudyPlan, rule: VerdictRule, cells: Mapping[str, Any]) -> dict[str, list[float | None]]:
    """The values over seeds that a rule is about, by language: every one that was measured.

    All of a language are None where, for alignment, no run solves the task: no claim holds without that language.
    """
    sides = [(rule.cell, rule.group)]
    if rule.baseline_cell is not None or rule.baseline_group is not None:
        sides.append((rule.baseline_cell or rule.cell, rule.baseline_group or rule.group))
    by_language = {}
    for language in cells[rule.cell]["groups"]:
        groups = [_group(cells[cell], language, group) for cell, group in sides]
        measured = [group for group in groups if group is not None and rule.measure in group["measures"]]
        if len(measured) == len(sides):
            values, *subtracted = (_values_where_solved(plan, group, rule.measure) for group in measured)
            by_language[language] = _difference(values, *subtracted) if subtracted else values
    return by_language


def _rule_holds(rule: VerdictRule, spread: Mapping[str, float] | None) -> bool | None:
    if spread is None:
        return None
    value = spread[rule.seed_statistic]
    return (rule.at_least is None or value >= rule.at_least) and (rule.at_most is None or value <= rule.at_most)


def _group(cell: Mapping[str, Any], language: str, group: str) -> dict[str, Any] | None:
    summary: dict[str, Any] | None = cell["groups"].get(language, {}).get(group)
    return summary


def _difference(left: SeedValues, right: SeedValues) -> list[float | None]:
    return [
        None if minuend is None or subtrahend is None else minuend - subtrahend
        for minuend, subtrahend in zip(left, right, strict=True)
    ]


def _spread(values: SeedValues) -> dict[str, float] | None:
    known = [value for value in values if value is not None and np.isfinite(value)]
    if not known:
        return None
    return {name: round(float(value), 6) for name, value in median_and_spread(known)._asdict().items()}

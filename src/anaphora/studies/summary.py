"""A study's records put together: medians and spread over seeds, differences to the base, interactions, the verdict.

Values are lists over the plan's seeds, None where a run has not finished or a measure does not apply.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from anaphora.analysis.cells import rounded
from anaphora.analysis.statistics import cluster_interval, median_and_spread
from anaphora.studies.grid import Cell
from anaphora.studies.measures import Record
from anaphora.studies.settings import ALIGNMENT, BASE, TASK, Plan, Rule, is_share

if TYPE_CHECKING:
    from rich.table import Table

Values = Sequence[float | None]


def summarise(plan: Plan, cells: Sequence[Cell], records: Sequence[Record]) -> dict[str, Any]:
    """What `study.json` holds.

    Returns:
        {"name", "question", "prediction", "solved", "seeds", "split", "base", "cells", "interactions", "verdict"}. A
        cell has "name", "factor", "parts", "overrides", "runs" and "groups": {language: {group: {"solved": of its
        seeds, "runs", "is_solved": whether the median is, or None, "measures": {measure: {"values", "median", "lowest",
        "highest"}}, "against_base": {measure: {"median", "lowest", "highest", "interval", "pairs"}}}}}. Differences are
        taken seed by seed; those of alignment only between runs that both solve the task.
    """
    told = [_cell(plan, cell, [one for one in records if one.cell == cell.name]) for cell in cells]
    by_name = {one["name"]: one for one in told}
    for one in told:
        for language, group, found in each_group(one):
            base = _group(by_name[BASE], language, group)
            found["against_base"] = {} if one is by_name[BASE] or base is None else _against(plan, found, base)
    return {
        "name": plan.name,
        "question": plan.question,
        "prediction": plan.prediction,
        "solved": plan.solved,
        "seeds": list(plan.seeds),
        "split": plan.split,
        "base": list(plan.base) + list(plan.more),
        "cells": told,
        "interactions": list(_interactions(plan, told, by_name)),
        "verdict": verdict(plan, by_name),
    }


def each_group(cell: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(language, group, what is known of it) of a cell."""
    for language, groups in cell["groups"].items():
        for group, found in groups.items():
            yield language, group, found


def rows_of(study: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The table of a study: one row for each cell, seed, language and group; runs that did not finish have one row."""
    rows: list[dict[str, Any]] = []
    for cell in study["cells"]:
        about = {"cell": cell["name"], "factor": cell["factor"]}
        for place, run in enumerate(cell["runs"]):
            known = {**about, "seed": run["seed"], "status": run["status"], "error": run["error"] or None}
            if run["status"] != "finished":
                rows.append(known)
                continue
            for language, group, found in each_group(cell):
                values = {name: one["values"][place] for name, one in found["measures"].items()}
                if any(value is not None for value in values.values()):
                    rows.append({**known, "language": language, "group": group, **values})
    return rows


def verdict(plan: Plan, cells: Mapping[str, Any]) -> dict[str, Any]:
    """Whether the claim holds: {"verdict": "holds", "not so" or "open", "rules": rows}.

    "not so" where a rule fails; "open" where none fails and one has nothing to go by, because it was not measured or,
    for alignment, because no run solves the task. A row holds what the rule says, "needed", "passed" (None where it has
    nothing to go by) and "found": {language: {"median", "lowest", "highest"}}.
    """
    rows = []
    for rule in plan.rules:
        spreads = {language: _spread(values) for language, values in _asked(plan, rule, cells).items()}
        checks = [_passes(rule, spreads.get(language)) for language in rule.languages or spreads]
        passed = False if False in checks else None if not checks or None in checks else True
        rows.append({**asdict(rule), "needed": needed(rule), "passed": passed, "found": spreads})
    outcomes = [row["passed"] for row in rows]
    said = "not so" if False in outcomes else "open" if None in outcomes or not outcomes else "holds"
    return {"verdict": said, "rules": rows}


def needed(rule: Rule) -> str:
    """What a rule asks for, in signs."""
    ends = []
    if rule.at_least is not None:
        ends.append(f"≥ {rule.at_least:g}")
    if rule.at_most is not None:
        ends.append(f"≤ {rule.at_most:g}")
    whose = "" if rule.of_seeds == "median" else f"{rule.of_seeds} "
    return whose + " and ".join(ends).replace("-", "−")


def shown(study: Mapping[str, Any]) -> Iterator[Table | str]:
    """What is printed at the end of a study: the question, a table a language, and the verdict with its rules."""
    from rich import box
    from rich.table import Table

    from anaphora.report.spoken import ABSENT, spread
    from anaphora.report.tables import LANGUAGES

    yield f"{study['name']}: {study['question']}"
    languages = dict.fromkeys(language for cell in study["cells"] for language, *_ in each_group(cell))
    for language in languages:
        title = f"{LANGUAGES.get(language, language)}: median (lowest to highest) over seeds; ~ task not solved"
        table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
        measures = dict.fromkeys(
            measure
            for cell in study["cells"]
            for group in cell["groups"].get(language, {}).values()
            for measure in group["measures"]
            if measure not in ("items", "chance", "quad_accuracy")
        )
        for name in ("cell", "group", "runs"):
            table.add_column(name)
        for name in measures:
            table.add_column(name.replace("_", " "), justify="right")
        for cell in study["cells"]:
            for group, found in cell["groups"].get(language, {}).items():
                values = []
                for name in measures:
                    one = found["measures"].get(name)
                    mark = "~" if one and name in ALIGNMENT and found["is_solved"] is False else ""
                    if one is None:
                        values.append(ABSENT)
                    elif is_share(name):
                        values.append(mark + spread(one["median"], one["lowest"], one["highest"]))
                    else:
                        values.append(f"{one['median']:.3g} ({one['lowest']:.3g} to {one['highest']:.3g})")
                table.add_row(cell["name"], group, str(found["runs"]), *values)
        yield table
    for cell in study["cells"]:
        for run in cell["runs"]:
            if run["status"] != "finished":
                because = f": {run['error']}" if run["error"] else ""
                yield f"{cell['name']}, seed {run['seed']}: {run['status']}{because}"
    for row in study["verdict"]["rules"]:
        said = {True: "holds", False: "FAILS", None: "not measured"}[row["passed"]]
        told = ", ".join(f"{language} {one[row['of_seeds']]:.3g}" for language, one in row["found"].items())
        yield f"{said}: {row['says']} ({told or 'nothing'}; needed {row['needed']})"
    yield f"verdict: {study['verdict']['verdict']}"


def _cell(plan: Plan, cell: Cell, records: Sequence[Record]) -> dict[str, Any]:
    by_seed = {one.seed: one for one in records}
    runs = [by_seed[seed] for seed in plan.seeds]
    places = dict.fromkeys(
        (language, group) for one in runs for language, groups in one.groups.items() for group in groups
    )
    groups: dict[str, dict[str, Any]] = {}
    for language, group in places:
        found = [one.groups.get(language, {}).get(group, {}) for one in runs]
        groups.setdefault(language, {})[group] = _of_seeds(plan, found)
    return {
        "name": cell.name,
        "factor": cell.factor,
        "parts": list(cell.parts),
        "overrides": list(cell.overrides),
        "runs": [
            {"seed": one.seed, "status": one.status, "error": one.error, "head": one.head, "seconds": one.seconds}
            for one in runs
        ],
        "groups": groups,
    }


def _of_seeds(plan: Plan, found: Sequence[Mapping[str, float | None]]) -> dict[str, Any]:
    measures: dict[str, Any] = {}
    for name in dict.fromkeys(name for one in found for name in one):
        values = [one.get(name) for one in found]
        spread = _spread(values)
        if spread:
            measures[name] = {"values": values, **spread}
    task = measures.get(TASK)
    return {
        "runs": sum(bool(one) for one in found),
        "solved": None if task is None else sum(value is not None and value >= plan.solved for value in task["values"]),
        "is_solved": None if task is None else task["median"] >= plan.solved,
        "measures": measures,
    }


def _against(plan: Plan, found: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    told = {}
    for name in found["measures"]:
        if name in base["measures"] and name not in ("items", "chance"):
            told[name] = _told(_difference(_readable(plan, found, name), _readable(plan, base, name)))
    return {name: one for name, one in told.items() if one}


def _told(differences: Values) -> dict[str, Any] | None:
    """Differences over seeds: median, lowest, highest, how many there are, and the 95 % interval of their mean."""
    spread = _spread(differences)
    if spread is None:
        return None
    known = [value for value in differences if value is not None]
    ends = cluster_interval(known, list(range(len(known))))
    return {**spread, "pairs": len(known), "interval": ends and [rounded(end) for end in ends]}


def _readable(plan: Plan, found: Mapping[str, Any], measure: str) -> list[float | None]:
    """A measure's values over seeds; alignment only of the runs that solve the task."""
    values = list(found["measures"][measure]["values"])
    if measure not in ALIGNMENT or TASK not in found["measures"]:
        return values
    task = found["measures"][TASK]["values"]
    return [
        value if right is not None and right >= plan.solved else None for value, right in zip(values, task, strict=True)
    ]


def _interactions(
    plan: Plan, told: Sequence[Mapping[str, Any]], by_name: Mapping[str, Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """What two changes do together beyond the sum of what each does: (both - one) - (other - base), seed by seed."""
    for cell in told:
        if len(cell["parts"]) != 2:
            continue
        others = [by_name[name] for name in (*cell["parts"], BASE)]
        for language, group, found in each_group(cell):
            beside = [_group(one, language, group) for one in others]
            if any(one is None for one in beside):
                continue
            for measure in (TASK, *ALIGNMENT):
                four = [one for one in (found, *beside) if one is not None and measure in one["measures"]]
                if len(four) == 4:
                    both, first, second, base = (_readable(plan, one, measure) for one in four)
                    values = _difference(_difference(both, first), _difference(second, base))
                    told_of_both = _told(values)
                    if told_of_both:
                        about = {"cell": cell["name"], "language": language, "group": group, "measure": measure}
                        yield {**about, **told_of_both}


def _asked(plan: Plan, rule: Rule, cells: Mapping[str, Any]) -> dict[str, list[float | None]]:
    """The values over seeds that a rule is about, by language."""
    found = {}
    for language in cells[rule.cell]["groups"]:
        values = _values(plan, cells[rule.cell], language, rule.group, rule.measure)
        if rule.against is not None or rule.against_group is not None:
            other = cells[rule.against or rule.cell]
            group = rule.against_group or rule.group
            values = _difference(values, _values(plan, other, language, group, rule.measure))
        if any(value is not None for value in values):
            found[language] = values
    return found


def _values(plan: Plan, cell: Mapping[str, Any], language: str, group: str, measure: str) -> list[float | None]:
    found = _group(cell, language, group)
    if found is None or measure not in found["measures"]:
        return [None] * len(cell["runs"])
    return _readable(plan, found, measure)


def _passes(rule: Rule, spread: Mapping[str, float] | None) -> bool | None:
    if spread is None:
        return None
    asked = spread[rule.of_seeds]
    return (rule.at_least is None or asked >= rule.at_least) and (rule.at_most is None or asked <= rule.at_most)


def _group(cell: Mapping[str, Any], language: str, group: str) -> dict[str, Any] | None:
    found: dict[str, Any] | None = cell["groups"].get(language, {}).get(group)
    return found


def _difference(left: Values, right: Values) -> list[float | None]:
    return [None if one is None or other is None else one - other for one, other in zip(left, right, strict=True)]


def _spread(values: Values) -> dict[str, float] | None:
    known = [value for value in values if value is not None and np.isfinite(value)]
    if not known:
        return None
    return {name: round(float(value), 6) for name, value in median_and_spread(known)._asdict().items()}

"""Invented records of a study, and its summary, without training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anaphora.settings.run import Config
from anaphora.studies.grid import StudyCell
from anaphora.studies.plan import StudyPlan, VerdictRule
from anaphora.studies.records import RunRecord
from anaphora.studies.schema import Study
from anaphora.studies.summary import summarise


def plan(**changes: Any) -> StudyPlan:
    """Return a plan of two factors with one cell each, and their combination."""
    chosen: dict[str, Any] = {
        "name": "invented",
        "question": "Does it?",
        "prediction": "It does.",
        "factors": {
            "prediction head": {"bilinear": ["task/prediction=bilinear"]},
            "heads": {"one": ["model.attention.heads=1"]},
        },
        "pairs": [["bilinear", "one"]],
        "seeds": [0, 1, 2],
    }
    return StudyPlan(**(chosen | changes))


def cells(config: Config | None = None) -> list[StudyCell]:
    """Return the cells of `plan`; the summary does not depend on their settings."""
    named = [("base", "", ()), ("bilinear", "prediction head", ("bilinear",)), ("one", "heads", ("one",))]
    named.append(("bilinear+one", "pairs", ("bilinear", "one")))
    return [StudyCell(name, factor, parts, (f"{name}=1",), config) for name, factor, parts in named]  # type: ignore[arg-type]


def record(cell: str, seed: int, task: float, candidate: float, group: str = "set", language: str = "en") -> RunRecord:
    """Return a finished run with one group of items."""
    values: dict[str, float | None] = {
        "task_accuracy": task,
        "candidate_accuracy": candidate,
        "antecedent_mass": candidate / 2,
        "items": 9.0,
    }
    return RunRecord(
        cell=cell, seed=seed, status="finished", groups={language: {group: values}}, head=(1, 0), seconds=3.0
    )


def records() -> list[RunRecord]:
    """Return records: `base` and `one` solve the task, `bilinear` without its head, and the combination fails."""
    listed = []
    for seed in range(3):
        listed.append(record("base", seed, 0.99, 0.90 + seed / 100))
        listed.append(record("bilinear", seed, 1.0, 0.40 + seed / 100))
        listed.append(record("one", seed, 0.99, 0.95 + seed / 100))
    listed += [record("bilinear+one", seed, 0.60, 0.30) for seed in range(2)]
    listed.append(RunRecord(cell="bilinear+one", seed=2, status="failed", error="it broke", groups={}))
    return listed


def rule(**changes: Any) -> VerdictRule:
    """Return a condition on the set cues of the base cell."""
    return VerdictRule(**({"statement": "it points", "cell": "base", "group": "set"} | changes))


def study(**changes: Any) -> Study:
    """Return the summary of `records`."""
    return summarise(plan(**changes), cells(), records())


def check_rules_on(groups: Mapping[str, Mapping[str, Mapping[str, object]]], with_routes: bool = False) -> None:
    """Check that a rule may be about each measured column, group and language."""
    for language, of_language in groups.items():
        for group, values in of_language.items():
            for measure in values:
                whole = rule(measure=measure, group=group, languages=[language], at_least=0)
                whole.check_is_measured(with_routes)

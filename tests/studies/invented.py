"""Invented records of a study, and what is made of them, without training anything."""

from __future__ import annotations

from typing import Any

from anaphora.settings.run import Config
from anaphora.studies.grid import StudyCell
from anaphora.studies.plan import StudyPlan, VerdictRule
from anaphora.studies.records import RunRecord
from anaphora.studies.schema import Study
from anaphora.studies.summary import summarise


def plan(**changes: Any) -> StudyPlan:
    """Two factors with a cell each, and both together."""
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
    """The cells of `plan`; what is put together asks for no settings."""
    named = [("base", "", ()), ("bilinear", "prediction head", ("bilinear",)), ("one", "heads", ("one",))]
    named.append(("bilinear+one", "pairs", ("bilinear", "one")))
    return [StudyCell(name, factor, parts, (f"{name}=1",), config) for name, factor, parts in named]  # type: ignore[arg-type]


def record(cell: str, seed: int, task: float, candidate: float, group: str = "set", language: str = "en") -> RunRecord:
    """A finished run with one group of items."""
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
    """Base and `one` solve the task; `bilinear` solves it without pointing; both together fail, once altogether."""
    listed = []
    for seed in range(3):
        listed.append(record("base", seed, 0.99, 0.90 + seed / 100))
        listed.append(record("bilinear", seed, 1.0, 0.40 + seed / 100))
        listed.append(record("one", seed, 0.99, 0.95 + seed / 100))
    listed += [record("bilinear+one", seed, 0.60, 0.30) for seed in range(2)]
    listed.append(RunRecord(cell="bilinear+one", seed=2, status="failed", error="it broke", groups={}))
    return listed


def rule(**changes: Any) -> VerdictRule:
    """A condition on the base cell's set cues."""
    return VerdictRule(**({"statement": "it points", "cell": "base", "group": "set"} | changes))


def study(**changes: Any) -> Study:
    """The study that `records` make."""
    return summarise(plan(**changes), cells(), records())

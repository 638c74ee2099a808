"""Trained controls: the same training with one thing taken away, and what is left of the head that points.

What each changes, what is expected of it, and what was seen. Training them is for whoever calls.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from anaphora.analysis.capture import Look, seen_by
from anaphora.analysis.cells import ALL, KINDS
from anaphora.analysis.scores import Head, choose_head, score
from anaphora.analysis.settings import CONTROLS
from anaphora.analysis.summary import summarise
from anaphora.analysis.verdict import NEAR_CHANCE, near_chance
from anaphora.checkpoint import Run
from anaphora.config import Config
from anaphora.data.example import Example
from anaphora.errors import UserError
from anaphora.model.settings import NoPosition, Uniform, heads_of, projections_of

_WITHIN = f"within {100 * NEAR_CHANCE:g} points of chance"


@dataclass(frozen=True)
class Expectation:
    """What a control should show: these measures near chance for these kinds of cue."""

    measures: tuple[str, ...]
    kinds: tuple[str, ...]
    words: str
    otherwise: str = ""  # what it means where that is not so


EXPECTED = {
    "uniform": Expectation(
        ("task_accuracy",),
        ("role",),
        f"Role cues: task accuracy {_WITHIN}, since order cannot be seen. Set cues may be answered: there the set of "
        "words decides.",
    ),
    "frozen_query_key": Expectation(
        ("candidate_accuracy",),
        (*KINDS, ALL),
        f"Candidate accuracy {_WITHIN}: a head whose queries and keys were never trained does not point.",
        "Only the comparison is frozen: the states that are compared still learn, and can learn to match under any "
        "fixed comparison. Pointing is then learned in the states and not in the queries and keys.",
    ),
    "shuffled_labels": Expectation(
        ("candidate_accuracy",),
        (*KINDS, ALL),
        f"Candidate accuracy {_WITHIN}: without right answers to learn from no head points at them.",
    ),
    "no_positions": Expectation(
        ("task_accuracy", "candidate_accuracy"),
        ("role",),
        f"Role cues: task and candidate accuracy {_WITHIN}, since a bag of words does not say who did what.",
    ),
}
"""By the name of the control."""

_MEASURES = {"task_accuracy": "task", "candidate_accuracy": "candidate"}


def changed(config: Config, control: str) -> Config:
    """A run's settings with the one change that makes it a control.

    Where the run has nothing to change, as one of uniform attention has no queries to freeze, the settings come back
    as they are: the run is its own control.

    Raises:
        UserError: there is no such control.
    """
    match control:
        case "uniform":
            attention = Uniform(heads=heads_of(config.model.attention))
            frozen = [name for name in config.optimizer.frozen if name in projections_of(attention)]
            return replace(
                config,
                model=replace(config.model, attention=attention),
                optimizer=replace(config.optimizer, frozen=frozen),
            )
        case "frozen_query_key":
            known = config.optimizer.frozen
            there = [name for name in ("query", "key") if name in projections_of(config.model.attention)]
            frozen = [*known, *(name for name in there if name not in known)]
            return replace(config, optimizer=replace(config.optimizer, frozen=frozen))
        case "shuffled_labels":
            return replace(config, task=replace(config.task, shuffled_labels=True))
        case "no_positions":
            return replace(config, model=replace(config.model, position=NoPosition()))
    raise UserError(f"controls ({control!r}) must be taken from {', '.join(CONTROLS)}")


def measure(control: str, run: Run, development: Sequence[Example], measured: Sequence[Example]) -> dict[str, Any]:
    """What a trained control shows: its own head chosen on development, measured on other items.

    Args:
        control: its name.
        run: the trained control.
        development: where its head is chosen.
        measured: the items to report; main items count.

    Returns:
        {"run", "seed", "languages": {language: {kind: {"task_accuracy", "candidate_accuracy", "interval", "chance"}}},
        "as_expected", "expected", "seen"}; the interval is that of the candidate accuracy. Items without a kind are
        listed under "all". "as_expected" is None where the items hold nothing that the expectation is about; where it
        is False, "seen" says what that means.
    """
    head = choose_head(score(seen_by(run, development).records))
    found = seen_by(run, measured)
    languages = _cells(found, head)
    checks = [
        (language, kind, name, cell)
        for name in EXPECTED[control].measures
        for language, kinds in languages.items()
        for kind, cell in kinds.items()
        if kind in EXPECTED[control].kinds and cell[name] is not None
    ]
    passed = [bool(near_chance(cell[name], cell["chance"])) for _, _, name, cell in checks]
    return {
        "run": run.name,
        "seed": run.config.seed,
        "languages": languages,
        "as_expected": all(passed) if checks else None,
        "expected": EXPECTED[control].words,
        "seen": _seen(checks) + ("" if all(passed) else f" {EXPECTED[control].otherwise}".rstrip()),
    }


def path_of(directory: Path, split: str) -> Path:
    """Where the controls of a run directory are told, for the split on which they were measured."""
    return directory / "controls" / ("controls.json" if split == "test" else f"controls_{split}.json")


def read(directory: Path, split: str) -> dict[str, Any]:
    """The controls of a run directory by name; None for one that has not been trained."""
    path = path_of(directory, split)
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {name: known.get(name) for name in CONTROLS}


def _cells(found: Look, head: Head) -> dict[str, dict[str, dict[str, Any]]]:
    scores = score(found.records)
    nobody = np.zeros((0, len(scores.examples)))
    languages = summarise(scores, head, found.correct[scores.kept], {}, nobody)["languages"]
    return {
        language: {
            name: {
                "task_accuracy": cell["task_accuracy"],
                "candidate_accuracy": cell["candidate_accuracy"],
                "interval": cell["intervals"]["candidate_accuracy"],
                "chance": cell["chance"],
            }
            for name, cell in ({kind: whole[kind] for kind in KINDS if kind in whole} or {ALL: whole}).items()
        }
        for language, whole in languages.items()
    }


def _seen(checks: Sequence[tuple[str, str, str, dict[str, Any]]]) -> str:
    if not checks:
        return "The items measured hold nothing that this is about."
    told = [
        f"{language} {kind} cues {_MEASURES[name]} {100 * cell[name]:.1f} % (chance {100 * cell['chance']:.1f} %)"
        for language, kind, name, cell in checks
    ]
    return "; ".join(told).replace(f" {ALL} cues", " items") + "."

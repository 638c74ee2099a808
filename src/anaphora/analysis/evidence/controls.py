"""Trained controls of a run: their changed settings, expected results and measured scores.

A control is trained with the settings of the run, except for one change that should prevent a head from picking
antecedents, such as uniform attention or shuffled labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from anaphora.analysis.evidence.evidence import Control, MeasuredOn
from anaphora.analysis.evidence.plan import ALL_CONTROLS, CONTROLS, FURTHER_CONTROLS
from anaphora.analysis.evidence.verdict import NEAR_CHANCE, near_chance
from anaphora.analysis.maps.capture import Capture, capture_run
from anaphora.analysis.results.scores import ALL, KINDS, AccuracyCell, Groups, Head
from anaphora.analysis.results.typed_json import from_json, to_json
from anaphora.analysis.scores.heads import choose_head, score_records
from anaphora.analysis.scores.summary import summarise
from anaphora.base.console import say
from anaphora.base.errors import UserError
from anaphora.base.files import read_json, write_json
from anaphora.base.translation import N_
from anaphora.data.example import Example
from anaphora.runs.directory import Run
from anaphora.settings.model.attention import Uniform, heads_of
from anaphora.settings.model.position import NoPosition
from anaphora.settings.model.prediction import Bilinear, NoPrediction, reads_candidates
from anaphora.settings.run import Config
from anaphora.settings.training import Task

_NEAR_CHANCE = f"{100 * NEAR_CHANCE:g}"


@dataclass(frozen=True)
class Expectation:
    """Expected result of a control."""

    measures: tuple[str, ...]  # measures that should be near chance
    kinds: tuple[str, ...]  # cue categories to which the expectation applies
    statement: str  # the expected result in words
    if_above: str = ""  # conclusion in words if a measure is above chance instead


EXPECTED = {
    "uniform": Expectation(
        ("task_accuracy",),
        ("role",),
        N_(
            "Role cues: task accuracy within {0} points of chance, since order cannot be seen. Set cues may be "
            "answered: there the set of words decides."
        ).format(_NEAR_CHANCE),
    ),
    "frozen_query_key": Expectation(
        ("candidate_accuracy",),
        (*KINDS, ALL),
        N_(
            "Candidate accuracy within {0} points of chance: a head whose queries and keys were never trained does not "
            "point."
        ).format(_NEAR_CHANCE),
        N_(
            "Only the comparison is frozen: the states that are compared still learn, and can learn to match under any "
            "fixed comparison. Pointing is then learned in the states and not in the queries and keys."
        ),
    ),
    "shuffled_labels": Expectation(
        ("candidate_accuracy",),
        (*KINDS, ALL),
        N_(
            "Candidate accuracy within {0} points of chance: without right answers to learn from, no head picks the "
            "antecedent."
        ).format(_NEAR_CHANCE),
    ),
    "no_positions": Expectation(
        ("task_accuracy", "candidate_accuracy"),
        ("role",),
        N_(
            "Role cues: task and candidate accuracy within {0} points of chance, since a bag of words does not say who "
            "did what."
        ).format(_NEAR_CHANCE),
    ),
    "masked_tokens": Expectation(
        ("candidate_accuracy",),
        ("role",),
        N_(
            "Role cues: candidate accuracy within {0} points of chance, since no masked word depends on whom "
            "the pronoun refers to. The model gives no answer."
        ).format(_NEAR_CHANCE),
        N_("Predicting masked words is then enough for a head that points, and the answers are not what makes it."),
    ),
    "pairwise": Expectation(
        ("candidate_accuracy",),
        ("role",),
        N_(
            "Role cues: candidate accuracy within {0} points of chance, since the answer is read from the states of "
            "pronoun and candidates and needs no head that joins them. The task may be solved."
        ).format(_NEAR_CHANCE),
        N_("A head then points though the answer does not need it: pointing alone does not show that it is used."),
    ),
    "nearest": Expectation(
        ("task_accuracy", "candidate_accuracy"),
        ("role",),
        N_(
            "Role cues: task and candidate accuracy within {0} points of chance, since the nearest compatible "
            "candidate is the antecedent no more often than that."
        ).format(_NEAR_CHANCE),
    ),
}
"""Expected results by name of the control."""

_MASKED_SHARE = 0.15
_MEASURES = {"task_accuracy": "task", "candidate_accuracy": "candidate"}


def control_config(config: Config, control: str) -> Config:
    """Return a run's settings with the change that defines a control.

    A change that does not apply leaves the settings as they are, and the run itself serves as the control. For example,
    a run with uniform attention has no queries to freeze, and a run with only the masked-LM loss has no labels to
    shuffle.

    Raises:
        UserError: there is no such control.
    """
    match control:
        case "uniform":
            attention = Uniform(heads=heads_of(config.model.attention))
            frozen = [name for name in config.optimizer.frozen if name in attention.projections]
            return replace(
                config,
                model=replace(config.model, attention=attention),
                optimizer=replace(config.optimizer, frozen=frozen),
            )
        case "frozen_query_key":
            known = config.optimizer.frozen
            present = [name for name in ("query", "key") if name in config.model.attention.projections]
            frozen = [*known, *(name for name in present if name not in known)]
            return replace(config, optimizer=replace(config.optimizer, frozen=frozen))
        case "shuffled_labels" | "nearest" if not config.task.learns_labels:
            return config
        case "shuffled_labels":
            return replace(config, task=replace(config.task, labels="shuffled"))
        case "no_positions":
            return replace(config, model=replace(config.model, position=NoPosition()))
        case "masked_tokens":
            # There is no validation loss for early stopping.
            validation = replace(config.validation, patience=0)
            return replace(config, task=_masked_tokens_alone(config.task), validation=validation)
        case "pairwise" if reads_candidates(config.task.prediction):
            return config
        case "pairwise":
            scorer = Bilinear(none_of_them=config.task.prediction.none_of_them)
            return replace(config, task=replace(config.task, prediction=scorer))
        case "nearest":
            return replace(config, task=replace(config.task, labels="nearest"))
    raise UserError(f"controls ({control!r}) must be one of {', '.join(ALL_CONTROLS)}")


def _masked_tokens_alone(task: Task) -> Task:
    """Return task settings with only the masked-LM loss; if `task` masks no tokens, 15 % are masked, as in BERT."""
    return replace(
        task,
        prediction=NoPrediction(),
        masked_lm=task.masked_lm or _MASKED_SHARE,
        own_token=0.0,
        labels="gold",
        minimal_pair_contrast=0.0,
        supervision=replace(task.supervision, weight=0.0),
    )


def measure_control(control: str, run: Run, development: Sequence[Example], measured: Sequence[Example]) -> Control:
    """Choose a head of a trained control on development items; measure accuracies of head and answers on other items.

    Args:
        control: name of the control, a key of `EXPECTED`.
        run: the trained control.
        development: items on which the head is chosen.
        measured: items to report, of which only those of the main results (`Example.is_main`) count.

    Returns:
        Accuracies by language and cue category (`kind`), compared with the expected result. A language without cue
        categories has the kind "all". `as_expected` is None if the expected result concerns other kinds of items. If an
        accuracy is above chance although it should be near chance, `observed` also states what follows.

    Raises:
        UserError: no item of `development` that counts in the main results can be scored, or the control has no
            attention maps.
    """
    head = choose_head(score_records(capture_run(run, development).records))
    languages = _cells(capture_run(run, measured), head)
    checks = [
        (f"{language} {kind} cues {_MEASURES[name]}".replace(f" {ALL} cues", " items"), accuracy, cell.chance)
        for name in EXPECTED[control].measures
        for language, kinds in languages.items()
        for kind, cell in kinds.items()
        if kind in EXPECTED[control].kinds and (accuracy := getattr(cell, name)) is not None
    ]
    passed = [bool(near_chance(accuracy, chance)) for _, accuracy, chance in checks]
    # An accuracy far below chance is unexpected too, but does not mean that a head picks antecedents.
    is_above = any(not near and value > (chance or 0) for near, (_, value, chance) in zip(passed, checks, strict=True))
    return Control(
        run=run.name,
        seed=run.config.seed,
        languages=languages,
        as_expected=all(passed) if checks else None,
        expected=EXPECTED[control].statement,
        observed=_observation(checks) + (f" {EXPECTED[control].if_above}".rstrip() if is_above else ""),
    )


def controls_path(directory: Path, split: str) -> Path:
    """Return the path of the file with the results of a run's controls on a split."""
    return directory / "controls" / ("controls.json" if split == "test" else f"controls_{split}.json")


def read(directory: Path, split: str, argument: str | None = None) -> dict[str, Control | None]:
    """Return the stored results of a run's controls on a split by name; None for each of `CONTROLS` without a result.

    The error for a damaged file recommends a command with run=`argument`, by default `directory`.

    Raises:
        UserError: the file is damaged.
    """
    path = controls_path(directory, split)
    command = f"anaphora controls run={argument or directory}"
    way_out = f"delete the file, and {command} writes it again from the controls beside it"
    try:
        stored = read_json(path, {str: (None, dict)}, way_out)
    except FileNotFoundError:
        return dict.fromkeys(CONTROLS)
    try:
        if not stored.keys() & set(ALL_CONTROLS):
            raise UserError(f"it has none of {', '.join(ALL_CONTROLS)}")
        further = [name for name in FURTHER_CONTROLS if stored.get(name) is not None]
        named = {name: stored.get(name) for name in (*CONTROLS, *further)}
        return {name: None if one is None else from_json(Control, one, name) for name, one in named.items()}
    except UserError as error:
        raise UserError(f"{path}: {error}; {way_out}") from None


def current(run: Run, split: str, stored: Mapping[str, Control | None], about: MeasuredOn) -> dict[str, Control | None]:
    """Return the stored results of controls without outdated ones, which are named in a printed message.

    A result is outdated if its hashes of weights, items and code differ from `about` or are missing. Outdated results
    of `CONTROLS` are replaced by None; those of `FURTHER_CONTROLS` are left out.
    """
    outdated = [name for name, one in stored.items() if one and one.measured_on != about]
    if outdated:
        path = controls_path(run.directory, split)
        say(
            "{path}: measured on other weights or items, or by other code; anaphora controls run={run} split={split} "
            "'controls=[{controls}]' measures again",
            path=path,
            run=run.argument,
            split=split,
            controls=",".join(outdated),
        )
    kept = [name for name in stored if name in CONTROLS or name not in outdated]
    return {name: None if name in outdated else stored[name] for name in kept}


def read_to_replace(directory: Path, split: str) -> dict[str, Control | None]:
    """Return the result of `read`; if the file is damaged, print the error and return None for each of `CONTROLS`."""
    try:
        return read(directory, split)
    except UserError as error:
        say("damaged: {error}", error=error)
        return dict.fromkeys(CONTROLS)


def write(directory: Path, split: str, measured: Mapping[str, Control | None]) -> None:
    """Write the results of a run's controls on a split to the run directory.

    Raises:
        UserError: the file cannot be written.
    """
    write_json(controls_path(directory, split), to_json(measured))


def _cells(captured: Capture, head: Head) -> Groups[AccuracyCell]:
    scores = score_records(captured.records)
    nobody = np.zeros((0, len(scores.examples)))
    languages = summarise(scores, head, captured.correct[scores.kept], {}, nobody).languages
    return {
        language: {
            kind: AccuracyCell(
                task_accuracy=cell.task_accuracy,
                candidate_accuracy=cell.candidate_accuracy,
                interval=cell.intervals.candidate_accuracy,
                chance=cell.chance,
            )
            for kind, cell in (whole.by_kind or {ALL: whole}).items()
        }
        for language, whole in languages.items()
    }


def _observation(checks: Sequence[tuple[str, float, float | None]]) -> str:
    if not checks:
        return N_("The measured items contain nothing that this applies to.")
    shares = [
        f"{name} {100 * accuracy:.1f} % (chance {100 * (chance or 0):.1f} %)" for name, accuracy, chance in checks
    ]
    return "; ".join(shares) + "."

"""Reuse or training of a run with given settings, and the objective of a sweep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from pathlib import Path

from anaphora.base.console import console
from anaphora.base.device import evaluation_device
from anaphora.base.errors import UserError
from anaphora.base.translation import _
from anaphora.runs.directory import Run, RunFiles, load, tidy, training_record
from anaphora.settings.data import ExternalCorpus
from anaphora.settings.run import Config, read_config, same_settings
from anaphora.settings.typed import PATHS


def load_or_train(config: Config, advice: str, report: Callable[[str], None] | None = None) -> Run:
    """Load the finished run with these settings, after training or resuming the run if necessary.

    If its data were moved, the settings of the returned run have the new paths.

    Raises:
        UserError: the errors of `finish_training` and `load`.
    """
    run = load(finish_training(config, advice, report), evaluation_device(config.trainer.device))
    return replace(run, config=replace(run.config, data=config.data))


def finish_training(config: Config, advice: str, report: Callable[[str], None] | None = None) -> Path:
    """Return the directory of a finished run with these settings, after training or resuming the run if necessary.

    `advice` ends the error message about a directory that holds a run with other settings. `report` receives a line
    saying whether the run is reused, resumed or trained; by default, the line is printed. The data
    of a finished run may have moved: a digest of the training items is compared, not the path.

    Raises:
        UserError: `config.resume` is set; the directory holds a run that diverged, or a run with other settings or
            other training items; or the training fails.
    """
    assert config.name is not None
    if config.resume is not None:
        raise UserError(f"resume ({config.resume}) is for train.py alone, without -m; others find a run by name=")
    directory = Path(config.output) / config.name
    layout = RunFiles(directory)
    report = report or partial(console.print, soft_wrap=True)
    check_settings(config, advice)
    if layout.weights.exists():
        # Its weights are the best before divergence and must not pass for those of a complete training.
        if training_record(directory).get("diverged"):
            raise UserError(f"{directory}: its training diverged; delete the run to train it again, or {advice}")
        if _has_digest(config):
            from anaphora.runs.items import read_training_corpus

            read_training_corpus(directory, config.data)
        tidy(directory)
        report(_("{run}: finished; its weights are reused").format(run=directory))
        return directory

    from anaphora.training.run import train

    if layout.config.exists():
        report(_("{run}: unfinished; it is resumed").format(run=directory))
        train(replace(config, resume=str(directory)))
    else:
        report(_("{run}: training").format(run=directory))
        train(config)
    return directory


def check_settings(config: Config, advice: str) -> None:
    """Check that the directory of a run holds no run with other settings; the data of a finished run may have moved.

    `advice` ends the error message.
    """
    assert config.name is not None
    directory = Path(config.output) / config.name
    layout = RunFiles(directory)
    if layout.config.exists():
        stored = read_config(layout.config)
        if not same_settings(_with_paths_of(config, stored) if _has_digest(config) else stored, config):
            raise UserError(f"{directory} holds a run with other settings; {advice}")


def _has_digest(config: Config) -> bool:
    """Return whether a run is finished and records a digest of training items that were read from files."""
    assert config.name is not None
    directory = Path(config.output) / config.name
    # A built-in corpus is fully determined by its settings.
    is_read = RunFiles(directory).weights.exists() and isinstance(config.data, ExternalCorpus)
    return is_read and bool(training_record(directory).get("training_examples"))


def _with_paths_of(config: Config, stored: Config) -> Config:
    """Return stored settings with the data paths of `config`, but unchanged if the classes of data settings differ."""
    if type(stored.data) is not type(config.data):
        return stored
    names = [one.name for one in fields(config.data) if f"data.{one.name}" in PATHS]
    return replace(stored, data=replace(stored.data, **{name: getattr(config.data, name) for name in names}))


def objective(directory: Path, name: str) -> float:
    """Return the value that a sweep minimises: a validation result of the final weights of a finished run.

    `name` is "validation_loss", or "best_head" for the error rate of the best attention head: the share of items in
    which the head's strongest candidate is not the antecedent.

    Raises:
        UserError: the objective was not measured, or the run has no training record.
    """
    record = training_record(directory)
    if "best_validation" not in record or not record["validations"]:
        raise UserError(
            f"objective ({name}): {RunFiles(directory).training} is missing or has no best validation; "
            f"delete {directory} to train it again"
        )
    kept = record["validations"][record["best_validation"]]
    if name == "validation_loss":
        if "validation/loss" not in kept:
            raise UserError(f"objective (validation_loss): {directory} has no validation loss; use best_head")
        return float(kept["validation/loss"])
    if "validation/best_head" not in kept:
        raise UserError(f"objective (best_head): no head of {directory} is measured in training; use validation_loss")
    return 1.0 - float(kept["validation/best_head"])

"""Comparison of the settings of two runs."""

from __future__ import annotations

from dataclasses import replace

from anaphora.settings.model.prediction import Label
from anaphora.settings.run import Config
from anaphora.settings.training import DECIDE_RESULTS


def same_settings(stored: Config, wanted: Config) -> bool:
    """Return whether two runs have the same settings, apart from output folder and device.

    A stored run without a precision counts as trained with the default of its device. Labels that training took from
    the data and wrote into the settings are ignored if the wanted settings list none.
    """
    stored = _without_labels_of_the_data(stored, wanted)
    here = wanted.trainer
    if any(getattr(stored.trainer, name) != getattr(here, name) for name in DECIDE_RESULTS):
        return False
    return replace(stored, name=None, output="", trainer=here, objective=wanted.objective) == replace(
        wanted, name=None, output=""
    )


def _without_labels_of_the_data(stored: Config, wanted: Config) -> Config:
    """Remove the labels that training filled in from stored settings, if the wanted settings list none."""
    theirs, ours = stored.task.prediction, wanted.task.prediction
    if not isinstance(theirs, Label) or not isinstance(ours, Label) or ours.labels:
        return stored
    return replace(stored, task=replace(stored.task, prediction=replace(theirs, labels=[])))

"""Checkpoints of unfinished runs that were begun under older names, by the present ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anaphora.runs.directory import present_metric_name, present_weight_name


def with_present_names(checkpoint: Mapping[str, Any]) -> dict[str, Any]:
    """A checkpoint's weights and the state of its callbacks under their present names; `checkpoint` stays as it is.

    Before, the module's weights began with `resolver.`, and the callbacks were called History and Curves.
    """
    weights = {
        f"model.{present_weight_name(name.removeprefix('resolver.'))}" if name.startswith("resolver.") else name: value
        for name, value in checkpoint["state_dict"].items()
    }
    callbacks = dict(checkpoint["callbacks"])
    if "History" in callbacks:
        history, curves = callbacks.pop("History"), callbacks.pop("Curves")
        callbacks["ValidationCheckpoint"] = {
            "validations": [
                {present_metric_name(name): value for name, value in validation.items()}
                for validation in history["validations"]
            ],
            "seconds": history["seconds"],
            "curves_seconds": curves["seconds"],
        }
    return {**checkpoint, "state_dict": weights, "callbacks": callbacks}

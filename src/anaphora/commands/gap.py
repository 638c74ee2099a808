"""Evaluate GAP name decisions of fine-tuned runs, or, without fine-tuning, of shortcuts, single heads and a probe.

Example: anaphora gap 'runs=[outputs/gap]' data.path=gap-coreference
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from anaphora.base.checks import at_least, one_of
from anaphora.base.device import Device
from anaphora.settings.data import SPLITS, Data, Gap


@dataclass(kw_only=True)
class NameDecisions:
    """Settings of `anaphora gap`: decisions on whether a pronoun refers to each of two names."""

    runs: list[str] = field(default_factory=list)  # fine-tuned runs, one for each seed, such as `outputs/gap_*`
    weights: str | None = None  # pretrained weights, or a run, to measure without fine-tuning
    data: Data = field(default_factory=Gap)
    # Split that the runs answer: test (the default), dev, train, or folds, where each run answers its held-out fold.
    # Weights are measured on all development rows (train and dev).
    split: str | None = None
    # With `weights`, number of folds of the development rows for choosing heads and fitting the probe; by default 10.
    folds: int | None = None
    exchanged: bool = False  # also evaluate the mean of each run's answers with original and exchanged names
    output: str | None = None  # CSV file for the table
    trainer: Device = field(default_factory=Device)  # device to compute on

    def __post_init__(self) -> None:
        if self.split is not None:
            one_of("split", self.split, (*SPLITS, "folds"))
        if self.folds is not None:
            at_least("folds", self.folds, 2)
        if bool(self.runs) == (self.weights is not None):
            raise ValueError("give either runs=[...] (fine-tuned) or weights=... (heads without fine-tuning)")
        if self.exchanged and not self.runs:
            raise ValueError("exchanged=true needs answers, which weights=... does not have; give runs=[...]")
        if self.split is not None and not self.runs:
            raise ValueError(
                f"split ({self.split!r}) is what runs=[...] answer: weights=... is measured on all development rows"
            )
        if self.folds is not None and self.runs:
            raise ValueError(f"folds ({self.folds}) is for weights=...; the folds of runs=[...] are data.folds")


def gap(settings: NameDecisions) -> list[dict[str, Any]]:
    """Score name decisions, print the table, write it as CSV if `output` is set, and return its rows."""
    from anaphora.commands.parts.name_decisions import score_name_decisions

    return score_name_decisions(settings)

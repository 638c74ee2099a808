"""Evaluate the answers of one run, or compare several runs with shortcuts and linear models.

The runs of a comparison must differ only in seed and fold. They answer `data`, by default their own data; text
classifiers answer only their own data.

Example: anaphora evaluate run=outputs/demo split=dev
"""

from __future__ import annotations

from dataclasses import dataclass, field

from anaphora.base.checks import at_least, one_of
from anaphora.commands.parts.settings import RunHead
from anaphora.settings.data import SPLITS


@dataclass(kw_only=True)
class Evaluation(RunHead):
    """Settings of `anaphora evaluate`."""

    # Several runs of one recipe instead of `run`, such as `outputs/dpr_*`; they answer `data`, by default their own.
    runs: list[str] = field(default_factory=list)
    # With several runs, factors each of whose values gets its own rows; `type+stereotype` combines two factors.
    by: list[str] = field(default_factory=list)
    # With several runs, a factor with two values, such as `stereotype`: the table shows the accuracy on the
    # alphabetically first value minus that on the other.
    contrast: str | None = None
    # With several runs, number of folds of the items, by group, for fitting shortcuts on them; by default 5.
    folds: int | None = None
    # Split on which to calibrate the probabilities of a run's answers, `train`, `dev` or `test`: one temperature for
    # each language is written to `calibration.json` in the run directory. The calibration error on `split` is printed
    # before and after calibration.
    calibrate: str | None = None
    output: str | None = None  # folder for the files, by default in the run directory; with several runs a CSV file

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.folds is not None:
            at_least("folds", self.folds, 2)
        if self.calibrate is not None:
            one_of("calibrate", self.calibrate, SPLITS)
        if self.calibrate == self.split:
            raise ValueError(
                f"calibrate ({self.calibrate!r}) must be another split than the one measured ({self.split})"
            )
        one, several = ("layer", "head", "items", "calibrate"), ("by", "contrast", "folds")
        for name in one if self.runs else several:
            if getattr(self, name) not in (None, []):
                which = "run=... (one run)" if self.runs else "runs=[...] (several runs)"
                raise ValueError(f"{name} ({getattr(self, name)}) is for {which}")


def evaluate(settings: Evaluation) -> None:
    """Answer the pronoun questions of a split, or label its texts, and print and write answers and accuracies.

    On texts, a run without a prediction head has only a perplexity, which is printed. With `runs`, the accuracies of
    several runs are compared instead.
    """
    from anaphora.commands.parts.evaluation import evaluate_run, evaluate_runs

    (evaluate_runs if settings.runs else evaluate_run)(settings)

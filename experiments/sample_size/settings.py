"""Settings of the sample-size tables."""

from __future__ import annotations

from dataclasses import dataclass, field

from anaphora.base.checks import one_of
from anaphora.commands.parts.settings import Overwriting
from anaphora.settings.data import SPLITS


@dataclass(kw_only=True)
class SampleSize(Overwriting):
    """Numbers of items and seeds needed to detect a difference, from the spread of measured runs."""

    runs: list[str] = field(default_factory=list)  # scored runs of one recipe; a single run is enough for items
    study_folder: str | None = None  # folder of a study, or its study.json, for the spread over seeds of every cell
    spread: list[float] = field(default_factory=list)  # a published range: lowest and highest in percent, and seeds
    points: float = 5.0  # the difference to detect, in percentage points
    measure: str = "candidate_accuracy"  # measure whose spread is used: candidate_accuracy or task_accuracy
    alpha: float = 0.05  # significance level of the two-sided test
    power: float = 0.8  # probability that the test detects a difference of this size
    split: str = "test"  # split on which the runs were scored
    output: str | None = None  # CSV file for the tables

    def __post_init__(self) -> None:
        one_of("split", self.split, SPLITS)
        one_of("measure", self.measure, ("candidate_accuracy", "task_accuracy"))
        if not 0 < self.points <= 100:
            raise ValueError(f"points ({self.points:g}) must be above 0 and at most 100")
        for name, share in (("alpha", self.alpha), ("power", self.power)):
            if not 0 < share < 1:
                raise ValueError(f"{name} ({share:g}) must be above 0 and below 1")
        if self.alpha >= self.power:
            raise ValueError(f"alpha ({self.alpha:g}) must be below power ({self.power:g})")
        if self.spread:
            lowest, highest, seeds = self.spread if len(self.spread) == 3 else (1.0, 0.0, 0.0)
            if not (0 <= lowest <= highest <= 100 and seeds >= 2 and seeds == int(seeds)):
                raise ValueError(
                    f"spread ({self.spread}) must be lowest, highest (in percent) and seeds, as [90.4,95.4,5]"
                )
        if not self.runs and self.study_folder is None and not self.spread:
            raise ValueError(
                "give scored runs (runs=[...]), a study (study_folder=...) or a published range (spread=[...])"
            )

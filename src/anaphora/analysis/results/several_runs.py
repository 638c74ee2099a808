"""What is compared over several runs; it is part of a report and of no metrics.json."""

from __future__ import annotations

from dataclasses import dataclass

from anaphora.analysis.results.rows import Entry
from anaphora.analysis.results.scores import Spread
from anaphora.analysis.results.typed_json import Interval

MEASURES = ("task_accuracy", "candidate_accuracy", "quad_accuracy", "antecedent_mass", "random_init", "chance")
"""What is compared over runs; "random_init" is the mean of untrained models."""


@dataclass(frozen=True, kw_only=True)
class GroupSpread:
    """The spread of each of `MEASURES` over runs, for a language and kind of cue; None unless all have the measure.

    Attributes:
        language, kind: of the items.
        runs: how many have such items.
        items: how many the runs have, fewest and most.
        same_items: whether all runs were scored on the same items of the language; None where the scores do not say so.
        measures: the spreads by name.
    """

    language: str
    kind: str
    runs: int
    items: tuple[int, int]
    same_items: bool | None
    measures: dict[str, Spread | None]

    def to_row(self) -> dict[str, Entry]:
        """A row of a CSV file: each measure's median, and its lowest and highest."""
        row: dict[str, Entry] = {"language": self.language, "kind": self.kind, "runs": self.runs}
        row |= {"fewest_items": self.items[0], "most_items": self.items[1], "same_items": self.same_items}
        for name, spread in self.measures.items():
            row[name] = spread.median if spread else None
            row[f"{name}_lowest"] = spread.lowest if spread else None
            row[f"{name}_highest"] = spread.highest if spread else None
        return row


@dataclass(frozen=True, kw_only=True)
class RowDivergence:
    """How far the pronoun's rows of two runs' chosen heads are apart in one language: 0 the same, 1 no word in common.

    Attributes:
        run, other: the names of the two.
        language: of the items.
        items: how many.
        divergence: the mean in bits; None where a chosen head is ablated.
        interval: over templates.
    """

    run: str
    other: str
    language: str
    items: int
    divergence: float | None
    interval: Interval | None

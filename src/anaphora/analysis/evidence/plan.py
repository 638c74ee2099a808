"""Settings for measuring the evidence on whether a run's head picks antecedents, and the names of trained controls."""

from __future__ import annotations

from dataclasses import dataclass, field

from anaphora.base.checks import at_least, one_of
from anaphora.settings.data import SPLITS

CONTROLS = ("uniform", "frozen_query_key", "shuffled_labels", "no_positions")
"""Names of the trained controls without which the `Verdict` on a run cannot be "supported"."""
FURTHER_CONTROLS = ("masked_tokens", "pairwise", "nearest")
"""Names of trained controls that no `Verdict` requires; they are trained only if the user names them."""
ALL_CONTROLS = (*CONTROLS, *FURTHER_CONTROLS)


@dataclass(kw_only=True)
class Protocol:
    """Settings of an evaluation that are fixed before anything is measured.

    A hash in the report covers these settings, the main measure with its map, direction and split, the thresholds of
    the verdict, and the run's settings.
    """

    alpha: float = 0.05  # significance level; corrected p-values below it count as significant

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise ValueError(f"protocol.alpha ({self.alpha}) must be above 0 and below 1")


@dataclass(kw_only=True)
class EvidencePlan:
    """Settings for measuring the evidence on a run."""

    split: str = "test"  # `train`, `dev` or `test`
    items: int = 800  # approximate number of main items for causal tests and other maps; quads are kept together
    untrained: int = 20  # number of untrained models to measure as a control
    protocol: Protocol = field(default_factory=Protocol)

    def __post_init__(self) -> None:
        one_of("split", self.split, SPLITS)
        at_least("items", self.items, 1)
        at_least("untrained", self.untrained, 0)

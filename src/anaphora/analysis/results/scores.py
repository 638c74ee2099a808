"""Heads, groups of items and their scores, shared by several measures.

Shares lie in [0, 1]; None is what could not be computed. Layers and heads are counted from 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from anaphora.analysis.results.typed_json import Interval
from anaphora.base.errors import UserError

T = TypeVar("T")

KINDS = ("set", "role")
ALL = "all"
"""The cell of a language's items of every kind."""

Groups = dict[str, dict[str, T]]
"""A cell for each language and kind of cue: {language: {"all", "set" or "role": cell}}."""


UNTRAINED = ("random_init", "random_init_95")
"""The baselines that are untrained models and no shortcuts."""


@dataclass(frozen=True, order=True)
class Head:
    """One attention head; layers and heads count from 0."""

    layer: int
    head: int


def existing_head(head: Head, layers: Sequence[int], heads: int) -> Head:
    """Return a head that exists.

    Args:
        head: the head.
        layers: the numbers of the layers that have attention, in order.
        heads: how many heads each of them has.

    Raises:
        UserError: there is no such layer or head, or the layer has no attention.
    """
    for name, value, last in (("layer", head.layer, layers[-1]), ("head", head.head, heads - 1)):
        if not 0 <= value <= last:
            raise UserError(f"{name} ({value}) must be from 0 to {last}")
    if head.layer not in layers:
        raise UserError(f"layer ({head.layer}) has no attention; layers that have: {', '.join(map(str, layers))}")
    return head


@dataclass(frozen=True)
class Spread:
    """The median of a few numbers, with the lowest and highest."""

    median: float
    lowest: float
    highest: float


@dataclass(frozen=True, kw_only=True)
class HeadPosition:
    """A head of a layer; no head where a map has one row a layer."""

    layer: int
    head: int | None = None


@dataclass(frozen=True, kw_only=True)
class ScoreIntervals:
    """The intervals of a cell's measures; None if the clusters do not show how a measure varies."""

    task_accuracy: Interval | None
    candidate_accuracy: Interval | None
    quad_accuracy: Interval | None
    minimal_pair_accuracy: Interval | None
    open_accuracy: Interval | None
    focal_accuracy: Interval | None
    antecedent_mass: Interval | None
    lift: Interval | None


@dataclass(frozen=True, kw_only=True)
class Cell:
    """The scores of some items: the model's answers, the chosen head, chance and shortcuts.

    Attributes:
        items: how many.
        task_accuracy: of the model's own answers.
        candidate_accuracy: how often the antecedent is the head's strongest candidate.
        quad_accuracy: of whole quads; None without complete ones.
        minimal_pair_accuracy: of whole minimal pairs.
        open_accuracy: how often the antecedent is the strongest of all words.
        focal_accuracy: how often it is the strongest of the focal candidates.
        antecedent_mass: the head's weight on the antecedent.
        lift: that weight over the antecedent's share of the tokens.
        chance: the mean share of candidates that are right.
        intervals: of the measures above.
        baselines: the accuracy of each shortcut by name, with those of `UNTRAINED`, the mean and the 95th percentile of
            untrained models; empty if a cell is not compared with any.
    """

    items: int
    task_accuracy: float | None
    candidate_accuracy: float | None
    quad_accuracy: float | None
    minimal_pair_accuracy: float | None
    open_accuracy: float | None
    focal_accuracy: float | None
    antecedent_mass: float | None
    lift: float | None
    chance: float | None
    intervals: ScoreIntervals
    baselines: dict[str, float | None] = field(default_factory=dict)

    @property
    def best_shortcut(self) -> Shortcut | None:
        """Return the best baseline other than untrained models; None if none was measured."""
        known = [
            Shortcut(name=name, accuracy=accuracy)
            for name, accuracy in self.baselines.items()
            if accuracy is not None and name not in UNTRAINED
        ]
        # A rule that gets no further than chance tells more than chance, whose number stands next to it already.
        return max(known, key=lambda one: (one.accuracy, one.name != "chance"), default=None)


@dataclass(frozen=True, kw_only=True)
class Shortcut:
    """A model without attention, and its accuracy."""

    name: str
    accuracy: float


@dataclass(frozen=True, kw_only=True)
class WorstTemplate:
    """The template at which the head finds the antecedent least often."""

    template: str
    items: int
    task_accuracy: float | None
    candidate_accuracy: float | None


@dataclass(frozen=True, kw_only=True)
class LanguageScores(Cell):
    """Scores on the main items of a language, of all, by kind and by type of cue.

    `items_digest` is a digest of these items: two runs with the same one were scored on the same. None in files of
    earlier versions.
    """

    items_digest: str | None = None
    set: Cell | None = None
    role: Cell | None = None
    types: dict[str, Cell] = field(default_factory=dict)
    worst_template: WorstTemplate | None = None

    @property
    def by_kind(self) -> dict[str, Cell]:
        """Return the cells of the kinds of cue that occur."""
        return {kind: cell for kind in KINDS if (cell := getattr(self, kind)) is not None}


@dataclass(frozen=True, kw_only=True)
class AccuracyCell:
    """The model's and the head's accuracy; the interval is that of the candidate accuracy."""

    task_accuracy: float | None
    candidate_accuracy: float | None
    interval: Interval | None
    chance: float | None

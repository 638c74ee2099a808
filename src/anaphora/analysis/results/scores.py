"""Data classes for an attention head and for the scores of groups of items.

Shares lie in [0, 1]; None marks values that could not be computed. Layers and heads count from 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from anaphora.analysis.results.typed_json import Interval
from anaphora.base.errors import UserError
from anaphora.base.translation import N_

T = TypeVar("T")

KINDS = ("set", "role")
ALL = "all"
"""Key of the results for all items of a language, in place of a cue category (`KINDS`)."""

Groups = dict[str, dict[str, T]]
"""Results by language and cue category: {language: {"all", "set" or "role": result}}."""


UNTRAINED = ("random_init", "random_init_95")
"""Names of two baselines: the mean and the 95th percentile of the accuracies of untrained models."""


@dataclass(frozen=True, order=True)
class Head:
    """One attention head; layers and heads count from 0."""

    layer: int
    head: int


def existing_head(head: Head, layers: Sequence[int], heads: int) -> Head:
    """Return a head after checking that it exists.

    Args:
        head: the head.
        layers: indices of the layers with attention, in ascending order.
        heads: number of heads per layer.

    Raises:
        UserError: the layer or head does not exist, or the layer has no attention.
    """
    for name, value, last in (("layer", head.layer, layers[-1]), ("head", head.head, heads - 1)):
        if not 0 <= value <= last:
            raise UserError(N_("{name} ({value}) must be from 0 to {last}"), name=name, value=value, last=last)
    if head.layer not in layers:
        attending = ", ".join(map(str, layers))
        raise UserError(
            N_("layer ({layer}) has no attention; layers with attention: {attending}"),
            layer=head.layer,
            attending=attending,
        )
    return head


@dataclass(frozen=True)
class Spread:
    """Median, lowest and highest value of a measure, for instance over runs."""

    median: float
    lowest: float
    highest: float


@dataclass(frozen=True, kw_only=True)
class HeadPosition:
    """Layer and index of a head; `head` is None for a map with one row per layer."""

    layer: int
    head: int | None = None


@dataclass(frozen=True, kw_only=True)
class ScoreIntervals:
    """95 % cluster-bootstrap intervals of a `Cell`'s measures; None if there are too few clusters (`has_interval`)."""

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
    """Scores on a group of items: of the model's answers, the chosen head, chance and shortcut baselines.

    Attributes:
        task_accuracy: accuracy of the model's answers; None if the model has no prediction head.
        candidate_accuracy: share of items in which the head gives an antecedent the largest weight of all candidates.
        quad_accuracy: share of complete quads in which the head is right on every item; None if no quad is complete. A
            quad has four items: two cues, each with both orders of the candidates.
        minimal_pair_accuracy: share of minimal pairs in which the head is right on every item.
        open_accuracy: share of items in which a word of an antecedent gets the largest weight of all words except the
            pronoun.
        focal_accuracy: candidate accuracy if only the candidates that the cue distinguishes are compared.
        antecedent_mass: mean weight from the pronoun to the antecedent in the head.
        lift: antecedent mass over the antecedent's share of the tokens, which is its mass under uniform attention.
        chance: mean share of candidates that are antecedents.
        intervals: 95 % intervals of the measures above, except chance.
        baselines: accuracy by name of the shortcut, or of `UNTRAINED`; empty for the items of a single cue type.
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
        """Return the most accurate baseline other than untrained models; None if there is none."""
        known = [
            Shortcut(name=name, accuracy=accuracy)
            for name, accuracy in self.baselines.items()
            if accuracy is not None and name not in UNTRAINED
        ]
        # In a tie a rule is more informative than chance, which is reported anyway.
        return max(known, key=lambda one: (one.accuracy, one.name != "chance"), default=None)


@dataclass(frozen=True, kw_only=True)
class Shortcut:
    """Name and accuracy of a shortcut baseline."""

    name: str
    accuracy: float


@dataclass(frozen=True, kw_only=True)
class WorstTemplate:
    """Scores on the items of that template (sentence pattern) on which the head's candidate accuracy is lowest."""

    template: str
    items: int
    task_accuracy: float | None
    candidate_accuracy: float | None


@dataclass(frozen=True, kw_only=True)
class LanguageScores(Cell):
    """Main results of a language: scores on all items, and by cue category and cue type.

    Attributes:
        items_digest: hash of the items, equal for runs scored on the same items; None in files of earlier versions.
        set, role: scores by cue category (`kind`): the words alone decide ("set"), or it matters who did what to whom
            ("role"). None if there are no such items.
        types: scores by cue type (such as gender or causality), without baselines.
        worst_template: scores on the template with the lowest candidate accuracy; None if the items have no templates.
    """

    items_digest: str | None = None
    set: Cell | None = None
    role: Cell | None = None
    types: dict[str, Cell] = field(default_factory=dict)
    worst_template: WorstTemplate | None = None

    @property
    def by_kind(self) -> dict[str, Cell]:
        """Return the scores on the items of each cue category (`kind`) that occurs, keyed by the category."""
        return {kind: cell for kind in KINDS if (cell := getattr(self, kind)) is not None}


@dataclass(frozen=True, kw_only=True)
class AccuracyCell:
    """Accuracies of the model's answers and of the head (candidate accuracy with its interval), and chance."""

    task_accuracy: float | None
    candidate_accuracy: float | None
    interval: Interval | None
    chance: float | None

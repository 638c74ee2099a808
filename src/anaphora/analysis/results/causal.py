"""The causal tests as a part of the evidence. A *drop* is the loss of task accuracy: 0.3 is 30 percentage points."""

from __future__ import annotations

from dataclasses import dataclass, field

from anaphora.analysis.results.scores import Groups, HeadPosition, Spread
from anaphora.analysis.results.typed_json import OTHER_KEYS, Interval


@dataclass(frozen=True, kw_only=True)
class KnockoutLoss:
    """The task accuracy lost when one edge is knocked out, and the attention mass that was on it.

    Attributes:
        items: those that have such an edge, over which the rest is; None in files of earlier versions, where an item
            without one counted as one that lost nothing.
    """

    drop: float | None
    interval: Interval | None
    mass_removed: float | None
    items: int | None = None


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The difference between the cost of the gold edge and of the most costly matched edge."""

    value: float | None
    interval: Interval | None


@dataclass(frozen=True, kw_only=True)
class Knockout:
    """The edges knocked out in one scope: "gold", "distractor", "cue", "matched_*" and "value_zeroing"."""

    gold_minus_matched: Difference
    edges: dict[str, KnockoutLoss] = field(default_factory=dict, metadata=OTHER_KEYS)


@dataclass(frozen=True, kw_only=True)
class SingleAblation:
    """The loss of task accuracy when one head is ablated, and the mode of ablation."""

    layer: int
    head: int
    mode: str
    drop: float | None
    interval: Interval | None


@dataclass(frozen=True, kw_only=True)
class CumulativeAblation:
    """The task accuracy lost when the best k heads are ablated, next to as many random heads of the same layers."""

    k: int
    heads: tuple[tuple[int, int], ...]
    drop: float | None
    random: Spread | None


@dataclass(frozen=True, kw_only=True)
class HeadAblation:
    """Accuracy lost if heads are ablated one at a time, and cumulatively from the best head down."""

    single: tuple[SingleAblation, ...]
    cumulative: tuple[CumulativeAblation, ...]


@dataclass(frozen=True, kw_only=True)
class Flipped:
    """The share of right answers that flip to those of the minimal pair's other sentence."""

    flipped: float | None
    interval: Interval | None


@dataclass(frozen=True, kw_only=True)
class FlippedByCount:
    """The same share with the best k heads patched."""

    k: int
    flipped: float | None


@dataclass(frozen=True, kw_only=True)
class AlignedPatching:
    """Patching of the pronoun's rows between sentences of any lengths, aligned token by token."""

    pairs: int
    head: Flipped
    layer: Flipped


@dataclass(frozen=True, kw_only=True)
class PatternPatching:
    """Patching of the pronoun's rows with those of the other sentence of the minimal pair.

    Attributes:
        pairs: items whose minimal pair has equally many tokens and differs in one word.
        skipped: the others.
        aligned: all of them, whatever their lengths.
    """

    pairs: int
    skipped: int
    head: Flipped
    layer: Flipped
    cumulative: tuple[FlippedByCount, ...]
    all_layers: Flipped
    aligned: AlignedPatching | None = None

    @property
    def of_layer(self) -> Flipped:
        """Return the flips by patching the layer, for pairs that differ in one word or, if there are none, for all."""
        return self.aligned.layer if self.uses_aligned and self.aligned else self.layer

    @property
    def of_head(self) -> Flipped:
        """Return the flips by patching the head alone."""
        return self.aligned.head if self.uses_aligned and self.aligned else self.head

    @property
    def pairs_used(self) -> int:
        """Return the number of items behind these two."""
        return self.aligned.pairs if self.uses_aligned and self.aligned else self.pairs

    @property
    def uses_aligned(self) -> bool:
        """Check whether they include all pairs because none differs in one word (cues of two Chinese characters)."""
        return self.layer.flipped is None and self.aligned is not None


@dataclass(frozen=True, kw_only=True)
class RemovedMass:
    """Equal weight removed from the head's edge to the antecedent, and from all its other edges together.

    Attributes:
        mass: the weight.
        items: those of which either side has as much.
        antecedent_points, other_edges_points: of task accuracy lost.
    """

    mass: float
    items: int
    antecedent_points: float | None
    antecedent_interval: Interval | None
    other_edges_points: float | None
    other_edges_interval: Interval | None


@dataclass(frozen=True, kw_only=True)
class HeadLevel:
    """The effects of the chosen head alone.

    Attributes:
        antecedent_points: of task accuracy lost when nothing is taken along its edge from pronoun to antecedent.
        other_edges_points: lost when nothing is taken along all its other edges from the pronoun together.
        pairs: items of minimal pairs, of any lengths, of which both sentences are answered rightly.
        patch_flips: the share of their answers that follow the other sentence's row.
        exchange_items: items that are answered rightly and have a distractor.
        exchange_flips: the share of their answers that become the distractor when it and the antecedent take each
            other's weight.
        doses: equal weights removed on either side.
        freed_mass: shares of the weight that a knockout of the antecedent's edge frees: "distractors", "cue",
            "pronoun", "special", "other_words".
    """

    items: int
    antecedent_points: float | None
    antecedent_interval: Interval | None
    other_edges_points: float | None
    other_edges_interval: Interval | None
    pairs: int
    patch_flips: float | None
    patch_interval: Interval | None
    exchange_items: int = 0
    exchange_flips: float | None = None
    exchange_interval: Interval | None = None
    doses: tuple[RemovedMass, ...] = ()
    freed_mass: dict[str, float | None] | None = None


@dataclass(frozen=True, kw_only=True)
class Correlation:
    """Spearman's correlation of an edge's score with what knocking it out costs."""

    rho: float | None
    interval: Interval | None


@dataclass(frozen=True, kw_only=True)
class CausalCell:
    """The causal tests on some items; knockout by scope ("head", "layer", "window", "all_layers")."""

    items: int
    task_accuracy: float | None
    knockout: dict[str, Knockout]
    head_ablation: HeadAblation
    pattern_patching: PatternPatching
    dose_response: dict[str, Correlation]
    head_level: HeadLevel | None = None


@dataclass(frozen=True, kw_only=True)
class Causal:
    """The causal tests of one head."""

    items: int
    head: HeadPosition
    languages: Groups[CausalCell]

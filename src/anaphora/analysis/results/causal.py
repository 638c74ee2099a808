"""Data classes for results of causal tests. A *drop* is a decrease in task accuracy: 0.3 is 30 percentage points."""

from __future__ import annotations

from dataclasses import dataclass, field

from anaphora.analysis.results.scores import Groups, HeadPosition, Spread
from anaphora.analysis.results.typed_json import OTHER_KEYS, Interval


@dataclass(frozen=True, kw_only=True)
class KnockoutLoss:
    """Mean drop in task accuracy, and mean weight removed, if one kind of attention edge is knocked out.

    `items` is the number of items with such an edge. Means are taken over these items, and are None if there are none.
    In files of earlier versions, `items` is None, and an item without such an edge counts as a drop of 0.
    """

    drop: float | None
    interval: Interval | None
    mass_removed: float | None
    items: int | None = None


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Drop in accuracy from knocking out the edge to the antecedent, minus that from knocking out a control edge.

    Of the kinds of control edge, such as the strongest edge of another word (`MATCHED_EDGES`), the one with the largest
    drop is used. None if there are no control edges.
    """

    value: float | None
    interval: Interval | None


@dataclass(frozen=True, kw_only=True)
class Knockout:
    """Drops in task accuracy for each kind of attention edge that is knocked out in a set of heads.

    The edges lead from the pronoun to the antecedent ("gold"), to the distractor with the largest weight
    ("distractor"), or to the cue ("cue"). Control edges are called "matched_*" (`MATCHED_EDGES`) and lead to as many
    tokens as the antecedent has. The entry "value_zeroing" is the drop if the values along the antecedent's edge are
    zeroed instead. If the set is a single head, "value_zeroing_others" is the drop if the values along the pronoun's
    edges to all other tokens are zeroed.
    """

    gold_minus_matched: Difference
    edges: dict[str, KnockoutLoss] = field(default_factory=dict, metadata=OTHER_KEYS)


@dataclass(frozen=True, kw_only=True)
class SingleAblation:
    """Drop in task accuracy when one head is ablated in one of the modes of `subjects.ABLATION_MODES`."""

    layer: int
    head: int
    mode: str
    drop: float | None
    interval: Interval | None


@dataclass(frozen=True, kw_only=True)
class CumulativeAblation:
    """Drops in task accuracy when the best k heads are ablated, and when random sets of heads are ablated.

    Heads are ranked by their accuracy on the development split (`ranked_heads`). A random set has as many heads in each
    layer as the set of the best k heads. `random` is the spread of the drops over those random sets that differ from
    the set of the best k heads; None if all are equal to it.
    """

    k: int
    heads: tuple[tuple[int, int], ...]
    drop: float | None
    random: Spread | None


@dataclass(frozen=True, kw_only=True)
class HeadAblation:
    """Drops in task accuracy when single heads are ablated, and when the best k heads are ablated together."""

    single: tuple[SingleAblation, ...]
    cumulative: tuple[CumulativeAblation, ...]


@dataclass(frozen=True, kw_only=True)
class Flipped:
    """Share of right answers that become the antecedent of the minimal pair's other sentence; None without pairs."""

    flipped: float | None
    interval: Interval | None


@dataclass(frozen=True, kw_only=True)
class FlippedByCount:
    """Share of answers that change, as in `Flipped`, if the attention rows of the best k heads are patched."""

    k: int
    flipped: float | None


@dataclass(frozen=True, kw_only=True)
class AlignedPatching:
    """Results of patching the pronoun's attention rows between the sentences of a minimal pair, aligned token by token.

    The lengths of the two sentences may differ. `pairs` is the number of items in minimal pairs whose sentences
    have different antecedents and are both answered correctly. The rows are patched in the head under test (`head`),
    or in all heads of its layer (`layer`).
    """

    pairs: int
    head: Flipped
    layer: Flipped


@dataclass(frozen=True, kw_only=True)
class PatternPatching:
    """Results of replacing the pronoun's attention rows by those of the minimal pair's other sentence.

    Attributes:
        pairs: number of items in minimal pairs whose sentences differ in one word, have different antecedents, and are
            both answered correctly.
        skipped: number of items in other minimal pairs.
        head, layer, all_layers: results with the head under test, all heads of its layer, or all heads patched.
        cumulative: results with the best k heads patched.
        aligned: results for minimal pairs whose sentences may differ in length.
    """

    pairs: int
    skipped: int
    head: Flipped
    layer: Flipped
    cumulative: tuple[FlippedByCount, ...]
    all_layers: Flipped
    aligned: AlignedPatching | None = None

    @property
    def used(self) -> PatternPatching | AlignedPatching:
        """Return the results for pairs that differ in one word only, or for all aligned pairs if there are none.

        There are none if, for example, all cues consist of two Chinese characters.
        """
        return self.aligned if self.layer.flipped is None and self.aligned else self


@dataclass(frozen=True, kw_only=True)
class RemovedMass:
    """Effects of removing the same attention weight from the pronoun's edge to the antecedent, or from its other edges.

    Attributes:
        mass: removed weight.
        items: number of items in which the antecedent's edge and the other edges together each have at least this
            weight.
        antecedent_points: percentage points of task accuracy lost if the weight is removed from the antecedent's edge.
        other_edges_points: percentage points of task accuracy lost if the weight is removed from the other edges.
    """

    mass: float
    items: int
    antecedent_points: float | None
    antecedent_interval: Interval | None
    other_edges_points: float | None
    other_edges_interval: Interval | None


@dataclass(frozen=True, kw_only=True)
class HeadLevel:
    """Effects of editing the pronoun's attention edges in the chosen head alone.

    Attributes:
        antecedent_points: percentage points of task accuracy lost when values along the edge from pronoun to antecedent
            are zeroed.
        other_edges_points: percentage points lost when values along all other edges from the pronoun are zeroed.
        pairs: number of items in minimal pairs whose sentences have different antecedents and are both answered
            correctly; the sentences may differ in length.
        patch_flips: share of these items whose answer becomes that of the pair's other sentence if the pronoun gets the
            attention row of that sentence.
        exchange_items: number of items that have a distractor and are answered correctly by the model.
        exchange_flips: share of these items whose answer becomes the distractor when the weights on antecedent and
            distractor are exchanged.
        doses: effects of removing the same weight from the edge to the antecedent, or from the pronoun's other edges.
        freed_mass: shares of the weight freed by a knockout of the antecedent's edge that the softmax gives to
            "distractors", "cue", "pronoun", "special" tokens and "other_words".
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
    """Spearman's correlation between the weights of attention edges and the effects of knocking them out.

    It is None if there are fewer than two edges, or if all weights or all effects are equal.
    """

    rho: float | None
    interval: Interval | None


@dataclass(frozen=True, kw_only=True)
class CausalCell:
    """Results of the causal tests for a group of items.

    Attributes:
        knockout: drops in accuracy by scope, which is the set of edited heads: "head", "layer", "window" (the layer and
            its two neighbours) or "all_layers".
        dose_response: correlation between the weight of an edge and the effect of knocking out this edge, keyed by the
            name of the map from which the weight is taken.
    """

    items: int
    task_accuracy: float | None
    knockout: dict[str, Knockout]
    head_ablation: HeadAblation
    pattern_patching: PatternPatching
    dose_response: dict[str, Correlation]
    head_level: HeadLevel | None = None


@dataclass(frozen=True, kw_only=True)
class Causal:
    """Results of the causal tests of one head, by language and cue category (`kind`, or "all")."""

    items: int
    head: HeadPosition
    languages: Groups[CausalCell]

"""Results of the causal tests for a group of items."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from anaphora.analysis.causal.battery import CausalTests
from anaphora.analysis.causal.outcomes import (
    MATCHED_EDGES,
    AblatedTogether,
    AlignedPatch,
    Bools,
    DoseResponse,
    Floats,
    KnockedOut,
    PatternPatch,
)
from anaphora.analysis.results.causal import (
    AlignedPatching,
    Correlation,
    CumulativeAblation,
    Difference,
    Flipped,
    FlippedByCount,
    Knockout,
    KnockoutLoss,
    PatternPatching,
    SingleAblation,
)
from anaphora.analysis.results.scores import Head, Spread
from anaphora.analysis.scores.cells import rounded, rounded_interval
from anaphora.analysis.scores.statistics import cluster_interval, median_and_spread


def knockout_cell(
    tests: CausalTests, knocked: Mapping[str, Mapping[str, KnockedOut | None]], items: Bools
) -> dict[str, Knockout]:
    """Return the accuracy lost by each knockout, by scope and kind of edge, with intervals.

    Each loss is a mean over the items that have such an edge. A pronoun that is itself the cue has no edge to the cue.
    The edge to the antecedent is compared with the most costly matched edge, on the items that have the latter.
    """
    cell: dict[str, Knockout] = {}
    for scope, kinds in knocked.items():
        gold = kinds["gold"]
        matched = [done for kind, done in kinds.items() if kind in MATCHED_EDGES and done is not None]
        assert gold is not None
        # Items without a matched edge are left out; otherwise they would count as zero loss.
        compared = [(done, items & done.has_edge) for done in matched if (items & done.has_edge).any()]
        differences = [tests.mean(done.right - gold.right, shared) for done, shared in compared]
        losses = [float((tests.right - done.right)[shared].mean()) for done, shared in compared]
        value, interval = differences[int(np.argmax(losses))] if losses else (None, None)
        cell[scope] = Knockout(
            gold_minus_matched=Difference(value=value, interval=interval),
            edges={kind: _loss(tests, done, items) for kind, done in kinds.items()},
        )
    return cell


def _loss(tests: CausalTests, done: KnockedOut | None, items: Bools) -> KnockoutLoss:
    if done is None or not (cut := items & done.has_edge).any():
        return KnockoutLoss(items=0, drop=None, interval=None, mass_removed=None)
    drop, interval = tests.drop(done.right, cut)
    mass_removed = rounded(done.mass[cut].mean())
    return KnockoutLoss(items=int(cut.sum()), drop=drop, interval=interval, mass_removed=mass_removed)


def single_cell(tests: CausalTests, head: Head, mode: str, right: Floats, items: Bools) -> SingleAblation:
    """Return the task accuracy lost with one head ablated, from the correctness `right` of the answers, (N,)."""
    drop, interval = tests.drop(right, items)
    return SingleAblation(layer=head.layer, head=head.head, mode=mode, drop=drop, interval=interval)


def cumulative_cell(tests: CausalTests, step: AblatedTogether, items: Bools) -> CumulativeAblation:
    """Return the accuracy lost with the best heads ablated, and with random sets of as many heads if there are any."""
    before = tests.right[items].mean()
    spread = median_and_spread([before - right[items].mean() for right in step.random]) if step.random else None
    return CumulativeAblation(
        k=len(step.heads),
        heads=tuple((head.layer, head.head) for head in step.heads),
        drop=rounded(before - step.right[items].mean()),
        random=spread and Spread(*(round(value, 6) for value in vars(spread).values())),
    )


def patch_cell(tests: CausalTests, patch: PatternPatch, items: Bools) -> PatternPatching:
    """Return the share of answers that flip when the pronoun's rows come from the minimal pair's other sentence."""
    pairs = items & patch.pairs
    last = patch.by_count[max(patch.by_count)] if patch.by_count else patch.head
    return PatternPatching(
        pairs=int(pairs.sum()),
        skipped=int((items & patch.skipped).sum()),
        head=_flipped(tests, patch.head, pairs),
        layer=_flipped(tests, patch.layer, pairs),
        cumulative=tuple(
            FlippedByCount(k=count, flipped=_flipped(tests, flipped, pairs).flipped)
            for count, flipped in patch.by_count.items()
        ),
        all_layers=_flipped(tests, last, pairs),
        aligned=aligned_patch_cell(tests, patch.aligned, items),
    )


def _flipped(tests: CausalTests, flipped: Bools, pairs: Bools) -> Flipped:
    value, interval = tests.mean(flipped.astype(np.float64), pairs)
    return Flipped(flipped=value, interval=interval)


def aligned_patch_cell(tests: CausalTests, patch: AlignedPatch, items: Bools) -> AlignedPatching:
    """Return the share of answers that flip by patches between sentences of any lengths."""
    pairs = items & patch.pairs
    head, layer = (_flipped(tests, flipped, pairs) for flipped in (patch.head, patch.layer))
    return AlignedPatching(pairs=int(pairs.sum()), head=head, layer=layer)


def dose_response_cell(tests: CausalTests, doses: DoseResponse, items: Bools) -> Correlation:
    """Return Spearman's correlation of edge score and cost of knockout; None if either is constant or without edges."""
    here = items[doses.item]
    item, score, loss = doses.item[here], doses.score[here], doses.loss[here]
    if len(score) < 2 or score.min() == score.max() or loss.min() == loss.max():
        return Correlation(rho=None, interval=None)
    from scipy import stats  # the import takes a second

    rho = float(stats.spearmanr(score, loss).statistic)
    one, two = (stats.zscore(stats.rankdata(values)) for values in (score, loss))
    # The influence values have the mean rho, and to first order rho varies as their mean does.
    influence = one * two - rho * (one**2 + two**2) / 2 + rho
    ends = cluster_interval(influence, [tests.clusters[each] for each in item], bounds=(-1, 1))
    return Correlation(rho=rounded(rho), interval=rounded_interval(ends))

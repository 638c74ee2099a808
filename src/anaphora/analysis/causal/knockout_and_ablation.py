"""Causal tests of one model on N items: attention knockout, head ablation and dose-response.

An item's correctness is 1 for a right answer, 0 for a wrong one, and the share of right answers in a tie. Masks of
items are (N,).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.causal.edges import MATCHED_EDGES, HeadEdges, SentenceEdges
from anaphora.analysis.causal.subjects import ABLATION_MODES, Edges, Scores, Subject
from anaphora.analysis.maps.answers import Bools, Floats, right_answers, shares_right
from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.maps.words import mention_mass
from anaphora.analysis.results.causal import (
    Correlation,
    CumulativeAblation,
    Difference,
    Knockout,
    KnockoutLoss,
    SingleAblation,
)
from anaphora.analysis.results.scores import Head, Spread
from anaphora.analysis.results.typed_json import Interval
from anaphora.analysis.scores.cells import bootstrap_interval, clusters, mean_and_interval, rounded
from anaphora.analysis.scores.measures.roles import cue_tokens
from anaphora.analysis.scores.statistics import median_and_spread
from anaphora.base.console import Progress
from anaphora.base.errors import UserError, counted
from anaphora.base.translation import N_, _

RANDOM_SETS = 5
"""Number of random sets of heads that are ablated for comparison with each set of the best heads."""
EVERY_HEAD_UP_TO, BEST_OF_MANY = 64, 16
"""In a model of up to 64 heads, each head is ablated alone, and sets of the best heads grow by one. In larger models,
only the best 16 and the head under test are ablated alone, and the sets double in size, because each ablation is a
pass over all items."""
_KNOCKOUT_STAGES = {
    "head": N_("causal tests: knockout, head"),
    "layer": N_("causal tests: knockout, layer"),
    "window": N_("causal tests: knockout, window"),
    "all_layers": N_("causal tests: knockout, all_layers"),
}
"""Progress message for each scope of knockout."""


class KnockedOut(NamedTuple):
    """Results for each of N items if one kind of attention edge is knocked out, or the values along it are zeroed."""

    right: Floats  # correctness of the answers, (N,)
    mass: Floats  # attention weight on the edited edges, averaged over heads, (N,)
    has_edge: Bools  # mask of the items that have such an edge, (N,)


class AblatedTogether(NamedTuple):
    """Results of ablating a set of heads together, and of ablating random sets of heads for comparison."""

    heads: list[Head]
    right: Floats  # correctness of the answers, (N,)
    random: list[Floats]  # correctness with a random set of equally many heads ablated, (N,) for each set


class DoseResponse(NamedTuple):
    """Weights of E edges from pronouns to candidates in one kind of attention map, and effects of knocking them out."""

    item: NDArray[np.int64]  # index of the edge's item, (E,)
    score: Floats  # weight of the edge in the map, averaged over layers and heads, (E,)
    loss: Floats  # drop in the score of the model's answer when the edge is knocked out in every head, (E,)


class CausalTests:
    """Causal tests of one model. All of them use the answers and attention maps of the unedited model.

    `order` lists all heads of the layers with attention, best first.

    Raises:
        UserError: `order` lacks `head`, or does not hold all heads of each of its layers.
    """

    def __init__(self, subject: Subject, head: Head, order: Sequence[Head], progress: Progress) -> None:
        self.subject, self.head, self.order, self.progress = subject, head, list(order), progress
        layers, heads = subject.shape
        attending = sorted({one.layer for one in order} & set(range(layers)))  # a layer may have no attention
        self.all_heads = [Head(layer, number) for layer in attending for number in range(heads)]
        if sorted(order) != self.all_heads or head not in self.all_heads:
            raise UserError(
                f"causal tests: the heads to test are not those of {counted(layers, 'layer')} of "
                f"{counted(heads, 'head')}"
            )
        progress(_("causal tests: maps and answers"))
        self.clusters = clusters(subject.examples)
        self.before = subject.scores()
        self.answers = self.before.argmax(axis=1)
        self.gold = right_answers(subject.examples, self.before.shape[1])
        cues = cue_tokens(subject.examples, [tokens.spans for tokens in subject.tokens])
        sentences = {
            item: SentenceEdges.of(subject.examples[item], subject.tokens[item], maps, cues[item])
            for item, maps in subject.maps()
        }
        self.sentences = [sentences[item] for item in range(len(sentences))]
        self.right = self.is_right(self.before)
        self.heads_of_layer = [one for one in self.all_heads if one.layer == head.layer]
        self._ablated: dict[tuple[frozenset[Head], str], Floats] = {}

    def is_right(self, scores: Scores) -> Floats:
        """Return the correctness of the answers with the highest scores, (N,); in a tie, the share that is right."""
        return shares_right(scores, self.gold)

    def mean(
        self, values: Floats, items: Bools, bounds: tuple[float, float] = (-1, 1)
    ) -> tuple[float | None, Interval | None]:
        """Return the mean of `values` over the items in a mask, and its bootstrap interval, clipped to `bounds`.

        Both are None if the mask selects no items.
        """
        return mean_and_interval(values[items], self.clusters[items], bounds)

    def drop(self, right: Floats, items: Bools) -> tuple[float | None, Interval | None]:
        """Return the drop in task accuracy on the items in a mask, and its bootstrap interval.

        Both are None if the mask selects no items. `right` is the correctness of the answers after an edit, (N,).
        """
        return self.mean(self.right - right, items)

    def knockout(self) -> dict[str, dict[str, KnockedOut]]:
        """Knock out each kind of attention edge, and zero the values along the edges to the antecedent.

        Each edit is made in four scopes (sets of heads): "head" (the head under test), "layer", "window" (its layer and
        the two neighbours) and "all_layers". In the scope "head", the values along the pronoun's edges to all other
        tokens are also zeroed. The result is keyed by scope, then by kind of edge.
        """
        scopes = {
            "head": [self.head],
            "layer": self.heads_of_layer,
            "window": [head for head in self.all_heads if abs(head.layer - self.head.layer) <= 1],
            "all_layers": self.all_heads,
        }
        knockouts: dict[str, dict[str, KnockedOut]] = {}
        for name, heads in scopes.items():
            self.progress(_(_KNOCKOUT_STAGES[name]))
            knockouts[name] = {
                kind: self.knocked_out(kind, heads) for kind in ("gold", "distractor", "cue", *MATCHED_EDGES)
            }
            knockouts[name]["value_zeroing"] = self.zeroed("gold", heads)
        knockouts["head"]["value_zeroing_others"] = self.zeroed("other_keys", [self.head])
        return knockouts

    def knocked_out(self, kind: str, heads: Sequence[Head]) -> KnockedOut:
        """Knock out one kind of attention edge (see `SentenceEdges.edges`) in the given heads."""
        others = [head for head in self.all_heads if head not in heads]
        edges, mass, has_edge = self._edges([sentence.edges(kind, heads, others) for sentence in self.sentences])
        right = self.is_right(self.subject.knocked_out(edges)) if has_edge.any() else self.right
        return KnockedOut(right, mass, has_edge)

    def zeroed(self, kind: str, heads: Sequence[Head]) -> KnockedOut:
        """Zero the values along one kind of attention edge (see `SentenceEdges.edges`) in the given heads."""
        edges, mass, has_edge = self._edges([sentence.edges(kind, heads, []) for sentence in self.sentences])
        return KnockedOut(self.is_right(self.subject.value_zeroed(edges)), mass, has_edge)

    def single(self) -> list[tuple[Head, str, Floats]]:
        """Ablate heads one at a time; return head, mode and the correctness of the answers (N,) of each ablation.

        If there are more than 64 heads, only the head under test and the best 16 are ablated. The head under test is
        ablated in each of `ABLATION_MODES`, other heads only by zeros and by their mean outputs.
        """
        heads = self.all_heads
        if len(heads) > EVERY_HEAD_UP_TO:
            heads = sorted({self.head, *self.order[:BEST_OF_MANY]})
        ablations = []
        for number, head in enumerate(heads):
            stage = _("causal tests: head {number} of {heads} alone")
            self.progress(stage.format(number=number + 1, heads=len(heads)))
            modes = ABLATION_MODES if head == self.head else ABLATION_MODES[:2]
            ablations += [(head, mode, self._without([head], mode)) for mode in modes]
        return ablations

    def cumulative(self) -> list[AblatedTogether]:
        """Mean-ablate the best k heads for each k from `counts`, and random sets of k heads for comparison.

        A random set has as many heads in each layer as the best set; sets that equal the best set are left out.
        """
        random = np.random.default_rng(0)
        ablations = []
        for count in self.counts():
            stage = _("causal tests: the best {count} of {heads:head|heads}")
            self.progress(stage.format(count=count, heads=len(self.order)))
            heads = self.order[:count]
            right = self._without(heads, "mean")
            drawn = [self._as_many(heads, random) for _ in range(RANDOM_SETS)]
            others = [self._without(random_heads, "mean") for random_heads in drawn if set(random_heads) != set(heads)]
            ablations.append(AblatedTogether(heads, right, others))
        return ablations

    def mask(self, items: Iterable[int]) -> Bools:
        """Return a mask (N,) of the items with the given indices."""
        mask = np.zeros(len(self.right), dtype=bool)
        mask[list(items)] = True
        return mask

    def dose_response(self, records_by_map: Mapping[str, Sequence[AttentionRecord]]) -> dict[str, DoseResponse]:
        """Return, for each kind of map, the weight from pronoun to candidate and the effect of knocking out this edge.

        The weight is averaged over layers and heads. The effect is the decrease of the score of the model's answer if
        the edge is knocked out in every head.

        Args:
            records_by_map: attention records in further kinds of map, keyed by the name of the map.

        Returns:
            Results keyed by the name of the map, "raw" for raw attention.
        """
        self.progress(_("causal tests: dose-response"))
        examples, tokens = self.subject.examples, self.subject.tokens
        raw = [
            # An attention sink is not among the subject's tokens and may hold any share of a row.
            AttentionRecord.of(example, tokenized, sentence.rows.mean(axis=2), tolerance=1.0)
            for example, tokenized, sentence in zip(examples, tokens, self.sentences, strict=True)
        ]
        everything = np.arange(len(examples))
        best = self.before[everything, self.answers]
        losses = np.full((len(examples), max(len(example.candidates) for example in examples)), np.nan)
        for candidate in range(losses.shape[1]):
            cuts = [
                sentence.from_pronoun(self.all_heads, sentence.mentions[candidate])
                if candidate < len(sentence.mentions)
                else []
                for sentence in self.sentences
            ]
            edges, _mass, has_edge = self._edges(cuts)
            after = self.subject.knocked_out(edges)[everything, self.answers]
            losses[has_edge, candidate] = (best - after)[has_edge]
        return {name: self._doses(losses, records) for name, records in ({"raw": raw} | dict(records_by_map)).items()}

    def counts(self) -> list[int]:
        """Return each k for which the best k heads are ablated together.

        For at most 64 heads, k is every number from 1 to the number of heads. Otherwise, k is each power of two below
        the number of heads, and this number itself.
        """
        every = len(self.order)
        if every <= EVERY_HEAD_UP_TO:
            return list(range(1, every + 1))
        return [2**power for power in range(every.bit_length()) if 2**power < every] + [every]

    def _edges(self, cuts: Sequence[Sequence[HeadEdges]]) -> tuple[Edges, Floats, Bools]:
        """Convert each item's attention edges to arrays.

        Return also the weight on each item's edges, averaged over heads, and a mask of the items with edges, (N,) each.
        """
        listed = [
            (item, cut.head.layer, cut.head.head, query, key)
            for item, item_cuts in enumerate(cuts)
            for cut in item_cuts
            for query in cut.queries
            for key in cut.keys
        ]
        columns = np.array(listed, dtype=np.int64).reshape(-1, 5).T
        mass = np.array([np.mean([cut.mass for cut in item_cuts]) if item_cuts else 0.0 for item_cuts in cuts])
        return Edges(*columns), mass, np.isin(np.arange(len(cuts)), columns[0])

    def _without(self, heads: Sequence[Head], mode: str) -> Floats:
        key = (frozenset(heads), mode)
        if key not in self._ablated:
            self._ablated[key] = self.is_right(self.subject.ablated(heads, mode))
        return self._ablated[key]

    def _as_many(self, heads: Sequence[Head], random: np.random.Generator) -> list[Head]:
        """Return a random set with the same number of heads per layer as `heads`, preferring heads outside `heads`."""
        chosen: list[Head] = []
        for layer, count in Counter(head.layer for head in heads).items():
            candidates = [head for head in self.all_heads if head.layer == layer]
            shuffled = [candidates[number] for number in random.permutation(len(candidates))]
            chosen += sorted(shuffled, key=lambda head: head in heads)[:count]
        return chosen

    def _doses(self, losses: Floats, records: Sequence[AttentionRecord]) -> DoseResponse:
        by_example = {record.example: record for record in records}
        scores = np.full(losses.shape, np.nan)
        for item, example in enumerate(self.subject.examples):
            if example in by_example:
                # The knockout is in every layer and head, so the score is the mean over all of them.
                scores[item, : len(example.candidates)] = mention_mass(by_example[example]).mean(axis=(0, 1))
        items, candidates = np.nonzero(~np.isnan(scores + losses))
        return DoseResponse(items, scores[items, candidates], losses[items, candidates])


def knockout_cell(
    tests: CausalTests, knocked: Mapping[str, Mapping[str, KnockedOut]], items: Bools
) -> dict[str, Knockout]:
    """Return the drops in task accuracy from the knockouts, with intervals, keyed by scope (set of edited heads).

    Each drop is a mean over those items in the mask `items` in which the kind of edge exists. If the cue is the
    pronoun, for example, there is no edge to the cue. `gold_minus_matched` is the drop for the antecedent's edge minus
    the largest drop for a kind of control edge (`MATCHED_EDGES`), over the items that have this control edge.
    """
    cell: dict[str, Knockout] = {}
    for scope, kinds in knocked.items():
        matched = [done for kind, done in kinds.items() if kind in MATCHED_EDGES]
        # Items without a matched edge are left out; otherwise they would count as a drop of 0.
        compared = [(done, items & done.has_edge) for done in matched if (items & done.has_edge).any()]
        differences = [tests.mean(done.right - kinds["gold"].right, shared) for done, shared in compared]
        losses = [float((tests.right - done.right)[shared].mean()) for done, shared in compared]
        value, interval = differences[int(np.argmax(losses))] if losses else (None, None)
        cell[scope] = Knockout(
            gold_minus_matched=Difference(value=value, interval=interval),
            edges={kind: _loss(tests, done, items) for kind, done in kinds.items()},
        )
    return cell


def _loss(tests: CausalTests, done: KnockedOut, items: Bools) -> KnockoutLoss:
    cut = items & done.has_edge
    drop, interval = tests.drop(done.right, cut)
    mass_removed = rounded(done.mass[cut].mean()) if cut.any() else None
    return KnockoutLoss(items=int(cut.sum()), drop=drop, interval=interval, mass_removed=mass_removed)


def single_cell(tests: CausalTests, head: Head, mode: str, right: Floats, items: Bools) -> SingleAblation:
    """Return the drop in task accuracy on the items in a mask; `right` is the correctness after the ablation, (N,)."""
    drop, interval = tests.drop(right, items)
    return SingleAblation(layer=head.layer, head=head.head, mode=mode, drop=drop, interval=interval)


def cumulative_cell(tests: CausalTests, step: AblatedTogether, items: Bools) -> CumulativeAblation:
    """Return the drop in task accuracy on the items in a mask if the best k heads are ablated together.

    The result also has the spread of the drops if random sets of heads are ablated instead.
    """
    before = tests.right[items].mean()
    spread = median_and_spread([before - right[items].mean() for right in step.random]) if step.random else None
    return CumulativeAblation(
        k=len(step.heads),
        heads=tuple((head.layer, head.head) for head in step.heads),
        drop=rounded(before - step.right[items].mean()),
        random=spread and Spread(*(round(value, 6) for value in vars(spread).values())),
    )


def dose_response_cell(tests: CausalTests, doses: DoseResponse, items: Bools) -> Correlation:
    """Return Spearman's correlation between edge weights and knockout effects, for the items in a mask.

    It is None for fewer than two edges, and if all weights or all effects are equal.
    """
    here = items[doses.item]
    item, score, loss = doses.item[here], doses.score[here], doses.loss[here]
    if len(score) < 2 or score.min() == score.max() or loss.min() == loss.max():
        return Correlation(rho=None, interval=None)
    from scipy import stats  # the import takes a second

    ranks = [stats.rankdata(values) for values in (score, loss)]
    one, two = (stats.zscore(values) for values in ranks)
    rho = float((one * two).mean())
    # The interval is bootstrapped by linearisation: the influence values have the mean rho, and to first order, rho and
    # their mean vary alike over samples. An edge influences rho by its own two ranks and by raising all higher ranks.
    own = one * two - rho * (one**2 + two**2) / 2 + rho
    raised = _sums_above(score, two - rho * one) / ranks[0].std() + _sums_above(loss, one - rho * two) / ranks[1].std()
    influence = own + raised - raised.mean()
    return Correlation(rho=rounded(rho), interval=bootstrap_interval(influence, tests.clusters[item]))


def _sums_above(values: Floats, weights: Floats) -> Floats:
    """Return, for each value, the total weight of larger values plus half the total weight of equal values."""
    codes = np.unique(values, return_inverse=True)[1]
    sums = np.bincount(codes, weights)
    return np.asarray((sums[::-1].cumsum()[::-1] - sums / 2)[codes])

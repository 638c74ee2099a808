"""Causal tests of one model: knockout, ablation, patching and dose-response."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.causal.outcomes import (
    MATCHED_EDGES,
    RANDOM_SETS,
    AblatedTogether,
    AlignedPatch,
    Bools,
    DoseResponse,
    Floats,
    KnockedOut,
    PatternPatch,
    Progress,
)
from anaphora.analysis.causal.sentence import HeadEdges, SentenceEdges
from anaphora.analysis.causal.subjects import ABLATION_MODES, Edges, Scores, Subject
from anaphora.analysis.maps.answers import right_answers, shares_right
from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.maps.words import mention_mass
from anaphora.analysis.results.scores import Head
from anaphora.analysis.results.typed_json import Interval
from anaphora.analysis.scores.cells import clusters, rounded, rounded_interval
from anaphora.analysis.scores.measures.roles import cue_tokens
from anaphora.analysis.scores.quads import next_in_minimal_pair
from anaphora.analysis.scores.statistics import cluster_interval
from anaphora.base.errors import UserError
from anaphora.base.locale.translation import N_, _
from anaphora.data.example import Example

EVERY_HEAD_UP_TO, BEST_OF_MANY = 64, 16
"""Up to 64 heads, each head is ablated alone and sets of the best heads grow by one. In larger models only the best 16
are ablated alone, and the sets double in size, because each ablation is a pass over all items."""
_KNOCKOUT_STAGES = {
    "head": N_("causal tests: knockout, head"),
    "layer": N_("causal tests: knockout, layer"),
    "window": N_("causal tests: knockout, window"),
    "all_layers": N_("causal tests: knockout, all_layers"),
}
"""Progress message for each scope of knockout."""


class CausalTests:
    """The causal tests of one model, with the unedited answers and attention maps that they share.

    Args:
        subject: the model and its N items.
        head: the head under test.
        order: all heads of the layers with attention, best first.
        progress: callback for one-line progress messages.

    Raises:
        UserError: `order` is not made of all heads of its layers, or lacks `head`.
    """

    def __init__(self, subject: Subject, head: Head, order: Sequence[Head], progress: Progress) -> None:
        self.subject, self.head, self.order, self.progress = subject, head, list(order), progress
        layers, heads = subject.shape
        attending = sorted({one.layer for one in order} & set(range(layers)))  # a layer may have no attention
        self.all_heads = [Head(layer, number) for layer in attending for number in range(heads)]
        if sorted(order) != self.all_heads or head not in self.all_heads:
            raise UserError(f"causal tests: the heads to test are not those of {layers} layers of {heads} heads")
        progress(_("causal tests: maps and answers"))
        self.clusters = clusters(subject.examples)
        self.before = subject.scores()
        self.answers = self.before.argmax(axis=1)
        self.gold = right_answers(subject.examples, self.before.shape[1])
        sentences: list[SentenceEdges | None] = [None] * len(subject.examples)
        cues = cue_tokens(subject.examples, [tokens.spans for tokens in subject.tokens])
        for item, maps in subject.maps():
            example = subject.examples[item]
            sentences[item] = SentenceEdges.of(example, subject.tokens[item], maps, cues[item])
        self.sentences = [sentence for sentence in sentences if sentence is not None]
        self.right = self.is_right(self.before)
        self._ablated: dict[tuple[frozenset[Head], str], Floats] = {}

    def is_right(self, scores: Scores) -> Floats:
        """Return each item's correctness: 1 if an antecedent has the highest score, a fraction for ties; (N,)."""
        return shares_right(scores, self.gold)

    def mean(
        self, values: Floats, items: Bools, bounds: tuple[float, float] = (-1, 1)
    ) -> tuple[float | None, Interval | None]:
        """Return the mean over the selected items and its interval, clipped to `bounds`; None without items."""
        chosen = np.flatnonzero(items)
        if not len(chosen):
            return None, None
        ends = cluster_interval(values[chosen], [self.clusters[item] for item in chosen], bounds=bounds)
        return rounded(values[chosen].mean()), rounded_interval(ends)

    def drop(self, right: Floats, items: Bools) -> tuple[float | None, Interval | None]:
        """Return the loss of task accuracy over the selected items and its interval; None without items."""
        return self.mean(self.right - right, items)

    def knockout(self) -> dict[str, dict[str, KnockedOut | None]]:
        """Knock out each kind of edge in each scope, and zero the values along the edges to the antecedent.

        For the head under test, a further test zeroes the values along all other edges of the pronoun.

        Returns:
            Outcomes by scope, then by kind of edge; None for "matched_heads" if too few heads are outside the scope.
        """
        layer = self.head.layer
        scopes = {
            "head": [self.head],
            "layer": [head for head in self.all_heads if head.layer == layer],
            "window": [head for head in self.all_heads if abs(head.layer - layer) <= 1],
            "all_layers": self.all_heads,
        }
        knockouts: dict[str, dict[str, KnockedOut | None]] = {}
        for name, heads in scopes.items():
            self.progress(_(_KNOCKOUT_STAGES[name]))
            knockouts[name] = {
                kind: self.knocked_out(kind, heads) for kind in ("gold", "distractor", "cue", *MATCHED_EDGES)
            }
            knockouts[name]["value_zeroing"] = self.zeroed("gold", heads)
        knockouts["head"]["value_zeroing_others"] = self.zeroed("other_keys", [self.head])
        return knockouts

    def knocked_out(self, kind: str, heads: Sequence[Head]) -> KnockedOut | None:
        """Knock out one kind of edge in the given heads; return None if too few other heads exist for matched edges."""
        others = [head for head in self.all_heads if head not in heads]
        if kind == "matched_heads" and len(others) < len(heads):
            return None
        edges, mass = self._edges([sentence.edges(kind, heads, others) for sentence in self.sentences])
        return KnockedOut(self.is_right(self.subject.knocked_out(edges)), mass, self._has_edge(edges))

    def zeroed(self, kind: str, heads: Sequence[Head]) -> KnockedOut:
        """Zero the values along one kind of the pronoun's edges in the given heads; all other weights stay the same."""
        edges, mass = self._edges([sentence.edges(kind, heads, []) for sentence in self.sentences])
        return KnockedOut(self.is_right(self.subject.value_zeroed(edges)), mass, self._has_edge(edges))

    def single(self) -> list[tuple[Head, str, Floats]]:
        """Ablate each head alone, or only the best heads of a large model.

        The head under test is ablated in all of `ABLATION_MODES`, the other heads with zeros and with their mean.

        Returns:
            The head, the mode and the correctness of the answers (N,) of each ablation.
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
        """Mean-ablate sets of the best heads, and random sets with equally many heads in each layer.

        Random sets that equal the set of best heads are left out.
        """
        random = np.random.default_rng(0)
        ablations = []
        for count in self._counts():
            stage = _("causal tests: the best {count} of {heads} heads")
            self.progress(stage.format(count=count, heads=len(self.order)))
            heads = self.order[:count]
            drawn = [self._as_many(heads, random) for _ in range(RANDOM_SETS)]
            random_sets = [random_heads for random_heads in drawn if set(random_heads) != set(heads)]
            ablations.append(
                AblatedTogether(
                    heads,
                    self._without(heads, "mean"),
                    [self._without(random_heads, "mean") for random_heads in random_sets],
                )
            )
        return ablations

    def patch(self) -> PatternPatch:
        """Patch the pronoun's rows with those of the minimal pair's other sentence, and keep the values.

        The patched heads are sets of the best heads, the head under test, and all heads of its layer.
        """
        minimal_pairs = next_in_minimal_pair(self.subject.examples)
        fit = {item: other for item, other in minimal_pairs.items() if self._fits(item, other)}
        pairs, skipped = self._mask(fit), self._mask(minimal_pairs.keys() - fit.keys())
        rows = {item: self.sentences[other].rows for item, other in fit.items()}
        self.progress(_("causal tests: pattern patch"))
        siblings = [other for other in self.order if other.layer == self.head.layer]
        by_count, head, layer = dict[int, Bools](), pairs, pairs
        if fit:
            by_count = {count: self._flipped(fit, rows, self.order[:count]) for count in self._counts()}
            head = by_count[1] if self.order[0] == self.head else self._flipped(fit, rows, [self.head])
            layer = self._flipped(fit, rows, siblings)
        return PatternPatch(pairs, skipped, by_count, head, layer, self._aligned_patch(minimal_pairs, siblings))

    def _aligned_patch(self, minimal_pairs: Mapping[int, int], siblings: Sequence[Head]) -> AlignedPatch:
        """Patch the head and its whole layer between sentences of any lengths, with rows aligned by `lay_over`."""
        fit = {
            item: other
            for item, other in minimal_pairs.items()
            if self.right[item] == self.right[other] == 1 and self.answers[item] != self.answers[other]
        }
        pairs = self._mask(fit)
        if not fit:
            return AlignedPatch(pairs, pairs, pairs)
        tokens = self.subject.tokens
        rows = {}
        for item, other in fit.items():
            lent, queries = self.sentences[other].rows, len(self.sentences[item].pronoun)
            if lent.shape[2] != queries:  # the pronouns differ in token count: every token gets the mean row
                lent = lent.mean(axis=2, keepdims=True).repeat(queries, axis=2)
            rows[item] = lay_over(lent, tokens[other].ids, tokens[item].ids)
        head, layer = (self._flipped(fit, rows, heads) for heads in ([self.head], siblings))
        return AlignedPatch(pairs, head, layer)

    def _mask(self, items: Iterable[int]) -> Bools:
        mask = np.zeros(len(self.right), dtype=bool)
        mask[list(items)] = True
        return mask

    def _flipped(self, fit: Mapping[int, int], rows: Mapping[int, NDArray[np.float32]], heads: Sequence[Head]) -> Bools:
        """Return a mask of the items in `fit` whose answer becomes that of their partner with patched rows: (N,)."""
        expected = np.full(len(self.right), -1)
        expected[list(fit)] = self.answers[list(fit.values())]
        flipped: Bools = self.subject.patched(heads, rows).argmax(axis=1) == expected
        return flipped

    def dose_response(self, records_by_map: Mapping[str, Sequence[AttentionRecord]]) -> dict[str, DoseResponse]:
        """Return, for each map, the score of the pronoun's edge to each candidate and the cost of its knockout.

        The cost is the loss in score of the model's answer when the edge is knocked out in every head.
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
        losses = np.full((len(examples), max(len(sentence.mentions) for sentence in self.sentences)), np.nan)
        for candidate in range(losses.shape[1]):
            cuts = [
                sentence.from_pronoun(self.all_heads, sentence.mentions[candidate])
                if candidate < len(sentence.mentions)
                else []
                for sentence in self.sentences
            ]
            edges = self._edges(cuts)[0]
            after = self.subject.knocked_out(edges)[everything, self.answers]
            has_edge = self._has_edge(edges)
            losses[has_edge, candidate] = (best - after)[has_edge]
        return {name: self._doses(losses, records) for name, records in ({"raw": raw} | dict(records_by_map)).items()}

    def _counts(self) -> list[int]:
        """Return the sizes of the sets of best heads: 1 to all, or powers of two and all if there are many heads."""
        every = len(self.order)
        if every <= EVERY_HEAD_UP_TO:
            return list(range(1, every + 1))
        return [2**power for power in range(every.bit_length()) if 2**power < every] + [every]

    def _edges(self, cuts: Sequence[Sequence[HeadEdges]]) -> tuple[Edges, Floats]:
        """Return the edges of all items as arrays, and each item's weight on its edges, averaged over heads: (N,)."""
        listed = [
            (item, cut.head.layer, cut.head.head, query, key)
            for item, item_cuts in enumerate(cuts)
            for cut in item_cuts
            for query in cut.queries
            for key in cut.keys
        ]
        columns = np.array(listed, dtype=np.int64).reshape(-1, 5).T
        mass = np.array([np.mean([cut.mass for cut in item_cuts]) if item_cuts else 0.0 for item_cuts in cuts])
        return Edges(*columns), mass

    def _has_edge(self, edges: Edges) -> Bools:
        """Return a mask of the items that have at least one of the edges: (N,)."""
        return np.isin(np.arange(len(self.sentences)), edges.item)

    def _without(self, heads: Sequence[Head], mode: str) -> Floats:
        """Return the correctness of the answers with the given heads ablated, cached by set and mode: (N,)."""
        key = (frozenset(heads), mode)
        if key not in self._ablated:
            self._ablated[key] = self.is_right(self.subject.ablated(heads, mode))
        return self._ablated[key]

    def _as_many(self, heads: Sequence[Head], random: np.random.Generator) -> list[Head]:
        """Sample as many heads from each layer as `heads` has there, heads outside `heads` first."""
        chosen: list[Head] = []
        for layer, count in Counter(head.layer for head in heads).items():
            candidates = [head for head in self.all_heads if head.layer == layer]
            shuffled = [candidates[number] for number in random.permutation(len(candidates))]
            chosen += sorted(shuffled, key=lambda head: head in heads)[:count]
        return chosen

    def _fits(self, item: int, other: int) -> bool:
        """Return True if two sentences have different, correct answers and differ only in one word, token by token."""
        one, two = self.subject.tokens[item], self.subject.tokens[other]
        if len(one.ids) != len(two.ids) or self.sentences[item].pronoun != self.sentences[other].pronoun:
            return False
        changed = [token for token, (left, right) in enumerate(zip(one.ids, two.ids, strict=True)) if left != right]
        words = {(one.words[token], two.words[token]) for token in changed}
        both = self.right[item] == self.right[other] == 1
        return len(words) == 1 and both and self.answers[item] != self.answers[other]

    def _doses(self, losses: Floats, records: Sequence[AttentionRecord]) -> DoseResponse:
        by_example = {record.example: record for record in records}
        points: list[tuple[int, float, float]] = []
        for item, example in enumerate(self.subject.examples):
            if example in by_example:
                # The knockout is in every layer and head, so the score is the mean over all of them.
                scores = mention_mass(by_example[example]).mean(axis=(0, 1))
                points += [
                    (item, float(score), float(loss))
                    for score, loss in zip(scores, losses[item], strict=False)
                    if not np.isnan(loss)
                ]
        columns = np.array(points, dtype=np.float64).reshape(-1, 3)
        return DoseResponse(columns[:, 0].astype(np.int64), columns[:, 1], columns[:, 2])


def has_antecedent_and_distractor(example: Example) -> bool:
    """Return True if an item has an antecedent and a distractor."""
    return 0 < len(example.antecedents) < len(example.candidates)


def lay_over(rows: NDArray[np.float32], source: Sequence[int], target: Sequence[int]) -> NDArray[np.float32]:
    """Map attention rows from the tokens of one sentence to those of another, which may differ in length.

    Common tokens keep their weight. Weight on a span of the source that the target replaces is distributed equally
    over the replacement; weight on a deleted span is distributed over the common tokens in proportion.

    Args:
        rows: (..., T), each row sums to 1.
        source, target: token ids of the two sentences, of length T and S.

    Returns:
        (..., S), each row sums to 1, unless it has weight on deleted tokens but none on common tokens.
    """
    laid = np.zeros((*rows.shape[:-1], len(target)), dtype=np.float64)
    kept = np.zeros(len(target), dtype=bool)
    deleted = np.zeros(rows.shape[:-1], dtype=np.float64)
    for kind, start, end, first, last in SequenceMatcher(None, source, target, autojunk=False).get_opcodes():
        if kind == "equal":
            laid[..., first:last] = rows[..., start:end]
            kept[first:last] = True
        elif last > first:
            laid[..., first:last] = rows[..., start:end].sum(axis=-1, keepdims=True, dtype=np.float64) / (last - first)
        else:
            deleted += rows[..., start:end].sum(axis=-1, dtype=np.float64)
    common = laid[..., kept].sum(axis=-1)
    share = np.divide(deleted, common, out=np.zeros_like(deleted), where=common > 0)
    laid[..., kept] *= 1 + share[..., None]
    return laid.astype(np.float32)

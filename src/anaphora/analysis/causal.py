"""Does the map matter? Edges are cut, heads switched off and rows swapped, and the model is asked again.

N items, L layers, H heads, M candidates at most, Q tokens of the pronoun, T tokens of a sentence. A *drop* is task
accuracy lost, as a share: 0.3 is 30 points. Intervals are 95 % bootstrap intervals over templates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.cells import KINDS, clusters, rounded
from anaphora.analysis.intervene import MODES, Edges, PackedSubject, Scores, Subject, next_twins
from anaphora.analysis.record import AttentionRecord
from anaphora.analysis.roles import cue_tokens
from anaphora.analysis.scores import Head, HeadScores, is_main, macro_weights
from anaphora.analysis.statistics import cluster_interval, median_and_spread
from anaphora.analysis.words import mention_mass
from anaphora.checkpoint import Run
from anaphora.data.batch import Encoded
from anaphora.data.example import Example
from anaphora.data.tokenizer import Tokens
from anaphora.errors import UserError
from anaphora.model.settings import NoReadout

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Progress = Callable[[str], None]

MATCHED = ("matched_query", "matched_heads", "matched_distance")
"""Edges that take the place of the pronoun's edge to its antecedent, with as many attended tokens. Special tokens and
the attending token itself are left out.

matched_query: of each head, the strongest edge of another word of the sentence.
matched_heads: the pronoun's strongest edge to a word that is neither a candidate nor the cue, in the heads outside the
scope where it is strongest, as many as the scope has; none where the scope holds every head.
matched_distance: in the same heads, from the pronoun to words that are neither, as far from it as the antecedent.
"""

RANDOM_SETS = 5
"""Random sets of heads beside each set of the best ones."""


def causal(
    run: Run,
    examples: Sequence[Example],
    head: Head,
    head_scores: HeadScores,
    records_by_map: Mapping[str, Sequence[AttentionRecord]] | None,
    progress: Progress,
) -> dict[str, Any]:
    """Every causal test of a trained run, on the main items that have an antecedent and a distractor.

    Args:
        run: the run.
        examples: the items, thinned by the caller; twins are needed for the pattern patch.
        head: the head that the development split chose.
        head_scores: every head's scores on the development split, by which heads are ranked.
        records_by_map: what other maps than the raw weights say about the same items, for the dose-response.
        progress: is told what is going on.

    Returns:
        As `causal_tests`.

    Raises:
        UserError: the run answers nothing, or there is no item to test.
    """
    if isinstance(run.config.task.readout, NoReadout):
        raise UserError("causal tests: this run was trained without a read-out (task.readout=no_readout)")
    main = is_main(examples)
    asked = [each for each, chosen in zip(examples, main, strict=True) if chosen and _has_an_answer(each)]
    if not asked:
        raise UserError("causal tests: no item of stratum main has both an antecedent and a distractor")
    data = Encoded(asked, run.tokenizer)
    subject = PackedSubject(run.resolver, data, run.config.batching, run.config.task.readout)
    return causal_tests(subject, head, ranked_heads(head_scores), records_by_map, progress)


def causal_tests(
    subject: Subject,
    head: Head,
    order: Sequence[Head],
    records_by_map: Mapping[str, Sequence[AttentionRecord]] | None,
    progress: Progress,
) -> dict[str, Any]:
    """Every causal test of any model; its items each have an antecedent and a distractor.

    Args:
        subject: the model and its items.
        head: the head under test.
        order: all heads, best first; sets of heads are its beginnings.
        records_by_map: see `causal`; records of other items are passed over.
        progress: is told what is going on.

    Returns:
        {"items", "head", "languages": {language: {"all" or kind: cell}}} of plain numbers, ready for JSON; None where
        a number is undefined. A cell holds "items", "task_accuracy", "knock_out", "heads", "patch", "dose_response".
    """
    tests = _Tests(subject, head, order, progress)
    knocked = tests.knock_out()
    single, cumulative = tests.single(), tests.cumulative()
    patch = tests.patch()
    doses = tests.dose_response(records_by_map or {})
    languages: dict[str, dict[str, Any]] = {}
    spoken = np.array([example.language for example in subject.examples])
    kinds = np.array([example.factors.get("kind", "") for example in subject.examples])
    for language in sorted(set(spoken.tolist())):
        cells = {"all": spoken == language, **{kind: (spoken == language) & (kinds == kind) for kind in KINDS}}
        languages[language] = {
            name: {
                "items": int(items.sum()),
                "task_accuracy": rounded(tests.right[items].mean()),
                "knock_out": _knock_out_cell(tests, knocked, items),
                "heads": {
                    "single": [
                        {"layer": one.layer, "head": one.head, "mode": mode, **tests.drop(right, items)}
                        for one, mode, right in single
                    ],
                    "cumulative": [_cumulative_cell(tests, step, items) for step in cumulative],
                },
                "patch": _patch_cell(tests, patch, items),
                "dose_response": {name: _dose_cell(tests, dose, items) for name, dose in doses.items()},
            }
            for name, items in cells.items()
            if items.any()
        }
    return {
        "items": len(subject.examples),
        "head": {"layer": head.layer, "head": head.head},
        "languages": languages,
    }


def ranked_heads(scores: HeadScores) -> list[Head]:
    """All heads by candidate accuracy on the main items, best first, as `choose_head` weighs them."""
    main = scores.select(is_main(scores.examples))
    weights = macro_weights(main.examples)
    accuracy = np.einsum("n,nlh->lh", weights, main.candidate_accuracy).round(9).ravel()
    mass = np.einsum("n,nlh->lh", weights, main.antecedent_mass).ravel()
    heads = scores.shape[1]
    return [Head(*divmod(int(each), heads)) for each in np.lexsort((-mass, -accuracy))]


class _CutHere(NamedTuple):
    """Edges of one item in one head: every query with every key, and the weight on them, mean over the queries."""

    head: Head
    queries: Sequence[int]
    keys: Sequence[int]
    mass: float


@dataclass(frozen=True, eq=False)
class _Sentence:
    """What an item's edges are chosen by.

    Attributes:
        pronoun: its tokens.
        mentions: the tokens of each candidate.
        antecedents: the tokens of all antecedents.
        distractors: the tokens of each distractor.
        cue: the words in which the item differs from its twin, where that is not the pronoun.
        free: words that are neither the pronoun nor a candidate nor the cue.
        rows: (L, H, Q, T), what the pronoun's tokens attend to.
        elsewhere: (L, H) the other token whose heaviest edges, as many as `antecedents`, weigh most.
        elsewhere_keys: (L, H, K) where these edges lead; -1 where there are fewer.
        elsewhere_mass: (L, H) and what they weigh.
    """

    pronoun: list[int]
    mentions: list[list[int]]
    antecedents: list[int]
    distractors: list[list[int]]
    cue: list[int]
    free: list[int]
    rows: NDArray[np.float32]
    elsewhere: NDArray[np.int64]
    elsewhere_keys: NDArray[np.int64]
    elsewhere_mass: NDArray[np.float32]

    @classmethod
    def of(cls, example: Example, tokens: Tokens, maps: NDArray[np.float32], cue: NDArray[np.bool_]) -> _Sentence:
        pronoun = tokens.covering(example.pronoun)
        mentions = [
            sorted({token for span in spans for token in tokens.covering(span)}) for spans in example.candidates
        ]
        gold = sorted({token for index in example.antecedents for token in mentions[index]})
        words = [token for token, word in enumerate(tokens.words) if word >= 0]
        cues = np.flatnonzero(cue).tolist()
        taken = {*pronoun, *cues, *(token for mention in mentions for token in mention)}
        others = [token for token in words if token not in pronoun]
        between_words = np.zeros(maps.shape[2:], dtype=bool)
        between_words[np.ix_(others, words)] = True
        np.fill_diagonal(between_words, False)
        allowed = np.where(between_words, maps, np.float32(-1))
        keys = np.argsort(-allowed, axis=3, kind="stable")[..., : len(gold)]  # (L, H, T, K)
        weights = np.take_along_axis(allowed, keys, axis=3)
        keys = np.where(weights < 0, -1, keys)
        mass = weights.clip(min=0).sum(axis=3)
        best = mass.argmax(axis=2)
        return cls(
            pronoun=pronoun,
            mentions=mentions,
            antecedents=gold,
            distractors=[
                [token for token in mention if token not in gold]
                for index, mention in enumerate(mentions)
                if index not in example.antecedents
            ],
            cue=cues,
            free=[token for token in words if token not in taken],
            rows=maps[:, :, pronoun].copy(),
            elsewhere=best,
            elsewhere_keys=np.take_along_axis(keys, best[..., None, None], axis=2)[:, :, 0],
            elsewhere_mass=np.take_along_axis(mass, best[..., None], axis=2)[..., 0],
        )

    def mass(self, head: Head, keys: Sequence[int]) -> float:
        """The pronoun's weight on some tokens in one head."""
        return float(self.rows[head.layer, head.head][:, list(keys)].sum(axis=1).mean())

    def from_pronoun(self, heads: Sequence[Head], keys: Sequence[int]) -> list[_CutHere]:
        """The pronoun's edges to some tokens."""
        return [_CutHere(head, self.pronoun, keys, self.mass(head, keys)) for head in heads if keys]

    def edges(self, kind: str, heads: Sequence[Head], others: Sequence[Head]) -> list[_CutHere]:
        """The edges of one kind; `heads` are those of the scope, `others` the rest."""
        count = len(self.antecedents)
        match kind:
            case "gold":
                return self.from_pronoun(heads, self.antecedents)
            case "distractor":  # the one that these heads look at most
                return self.from_pronoun(
                    heads, max(self.distractors, key=lambda keys: sum(self.mass(head, keys) for head in heads))
                )
            case "cue":
                return self.from_pronoun(heads, self.cue)
            case "matched_query":
                return [self._elsewhere(head) for head in heads]
            case "matched_heads":
                row = self.rows.mean(axis=2)
                cuts = []
                for head in others:
                    weights = row[head.layer, head.head]
                    keys = sorted(self.free, key=lambda token: -weights[token])[:count]
                    cuts += self.from_pronoun([head], keys)
                return sorted(cuts, key=lambda cut: -cut.mass)[: len(heads)]
            case _:  # matched_distance
                return self.from_pronoun(heads, self._as_far_as_gold())

    def _elsewhere(self, head: Head) -> _CutHere:
        here = (head.layer, head.head)
        keys = [key for key in self.elsewhere_keys[here].tolist() if key >= 0]
        return _CutHere(head, [int(self.elsewhere[here])], keys, float(self.elsewhere_mass[here]))

    def _as_far_as_gold(self) -> list[int]:
        """For each token of the antecedents the free one nearest to it in distance from the pronoun."""
        middle = sum(self.pronoun) / len(self.pronoun)
        left = list(self.free)
        chosen = []
        for gold in self.antecedents[: len(left)]:
            nearest = min(left, key=lambda token: abs(abs(token - middle) - abs(gold - middle)))
            left.remove(nearest)
            chosen.append(nearest)
        return chosen


class _Knocked(NamedTuple):
    """What is left after a cut: (N,) whether each item is still right, and (N,) the weight that was removed."""

    right: Floats
    mass: Floats


class _Step(NamedTuple):
    """A set of heads switched off, and as many others of the same layers: whether each item is still right, (N,)."""

    heads: list[Head]
    right: Floats
    random: list[Floats]


class _Patched(NamedTuple):
    """Pattern patches: which items take part and which could not, (N,), and which answers became the twin's."""

    pairs: Bools
    skipped: Bools
    by_count: list[Bools]  # the best 1, 2, ... heads, up to all
    head: Bools
    layer: Bools  # all heads of that head's layer


class _Doses(NamedTuple):
    """One map's score of an edge and what cutting it costs, for every candidate of every item that has a record."""

    item: NDArray[np.int64]
    score: Floats
    loss: Floats


class _Tests:
    """The tests of one model, which share the answers before any of them and the sentences' maps."""

    def __init__(self, subject: Subject, head: Head, order: Sequence[Head], progress: Progress) -> None:
        self.subject, self.head, self.order, self.progress = subject, head, list(order), progress
        layers, heads = subject.shape
        self.all_heads = [Head(layer, each) for layer in range(layers) for each in range(heads)]
        if sorted(order) != self.all_heads or head not in self.all_heads:
            raise UserError(f"causal tests: the heads to test are not those of {layers} layers of {heads} heads")
        progress("causal tests: maps and answers")
        self.clusters = clusters(subject.examples)
        self.before = subject.scores()
        self.answers = self.before.argmax(axis=1)
        self.gold = np.zeros(self.before.shape, dtype=bool)
        sentences: list[_Sentence | None] = [None] * len(subject.examples)
        cues = cue_tokens(subject.examples, [tokens.spans for tokens in subject.tokens])
        for item, maps in subject.maps():
            example = subject.examples[item]
            self.gold[item, list(example.antecedents)] = True
            sentences[item] = _Sentence.of(example, subject.tokens[item], maps, cues[item])
        self.sentences = [sentence for sentence in sentences if sentence is not None]
        self.right = self.is_right(self.before)
        self._gated: dict[tuple[frozenset[Head], str], Floats] = {}

    def is_right(self, scores: Scores) -> Floats:
        """Whether the highest score is an antecedent's: (N,) of 0 and 1."""
        right: Floats = self.gold[np.arange(len(scores)), scores.argmax(axis=1)].astype(np.float64)
        return right

    def mean(self, values: Floats, items: Bools) -> tuple[float | None, list[float | None] | None]:
        """The mean over some items with its interval."""
        places = np.flatnonzero(items)
        if not len(places):
            return None, None
        ends = cluster_interval(values[places], [self.clusters[place] for place in places])
        return rounded(values[places].mean()), None if ends is None else [rounded(end) for end in ends]

    def drop(self, right: Floats, items: Bools) -> dict[str, Any]:
        """The task accuracy that some items lost."""
        value, interval = self.mean(self.right - right, items)
        return {"drop": value, "interval": interval}

    def knock_out(self) -> dict[str, dict[str, _Knocked | None]]:
        """Each scope's edges cut, kind by kind, and the values of the gold ones dropped."""
        layer = self.head.layer
        scopes = {
            "head": [self.head],
            "layer": [head for head in self.all_heads if head.layer == layer],
            "window": [head for head in self.all_heads if abs(head.layer - layer) <= 1],
            "everywhere": self.all_heads,
        }
        found: dict[str, dict[str, _Knocked | None]] = {}
        for name, heads in scopes.items():
            self.progress(f"causal tests: knock-out, {name}")
            others = [head for head in self.all_heads if head not in heads]
            found[name] = {
                kind: None if kind == "matched_heads" and not others else self._cut(kind, heads, others)
                for kind in ("gold", "distractor", "cue", *MATCHED)
            }
            edges, mass = self._edges([sentence.edges("gold", heads, others) for sentence in self.sentences])
            found[name]["value_zero"] = _Knocked(self.is_right(self.subject.dropped(edges)), mass)
        return found

    def single(self) -> list[tuple[Head, str, Floats]]:
        """Each head switched off, the one under test in every way."""
        found = []
        for number, head in enumerate(self.all_heads):
            self.progress(f"causal tests: head {number + 1} of {len(self.all_heads)} alone")
            modes = MODES if head == self.head else MODES[:2]
            found += [(head, mode, self._without([head], mode)) for mode in modes]
        return found

    def cumulative(self) -> list[_Step]:
        """The best 1, 2, ... heads silenced at their mean, beside random sets of as many heads of the same layers."""
        random = np.random.default_rng(0)
        found = []
        for count in range(1, len(self.order) + 1):
            self.progress(f"causal tests: the best {count} of {len(self.order)} heads")
            heads = self.order[:count]
            drawn = [self._as_many(heads, random) for _ in range(RANDOM_SETS)]
            found.append(_Step(heads, self._without(heads, "mean"), [self._without(each, "mean") for each in drawn]))
        return found

    def patch(self) -> _Patched:
        """The pronoun's rows of the twin with this sentence's values, in more and more heads."""
        twins = next_twins(self.subject.examples)
        fit = {item: other for item, other in twins.items() if self._fits(item, other)}
        pairs, skipped = (np.zeros(len(self.right), dtype=bool) for _ in range(2))
        pairs[list(fit)] = True
        skipped[[item for item in twins if item not in fit]] = True
        rows = {item: self.sentences[other].rows for item, other in fit.items()}
        wanted = np.full(len(self.right), -1)
        wanted[list(fit)] = self.answers[list(fit.values())]

        def flipped(heads: Sequence[Head]) -> Bools:
            turned: Bools = self.subject.patched(heads, rows).argmax(axis=1) == wanted
            return turned

        self.progress("causal tests: pattern patch")
        by_count = [flipped(self.order[:count]) for count in range(1, len(self.order) + 1)] if fit else []
        head = by_count[0] if fit and self.order[0] == self.head else flipped([self.head]) if fit else pairs
        siblings = [one for one in self.order if one.layer == self.head.layer]
        return _Patched(pairs, skipped, by_count, head, flipped(siblings) if fit else pairs)

    def dose_response(self, records_by_map: Mapping[str, Sequence[AttentionRecord]]) -> dict[str, _Doses]:
        """What cutting the pronoun's edges to each candidate costs its answer, beside what each map says of them."""
        self.progress("causal tests: dose-response")
        examples, tokens = self.subject.examples, self.subject.tokens
        raw = [
            AttentionRecord(example, each.spans, each.words, sentence.rows.mean(axis=2))
            for example, each, sentence in zip(examples, tokens, self.sentences, strict=True)
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
            after = self.subject.cut(self._edges(cuts)[0])[everything, self.answers]
            there = [bool(cut) for cut in cuts]
            losses[there, candidate] = (best - after)[there]
        return {name: self._doses(losses, records) for name, records in ({"raw": raw} | dict(records_by_map)).items()}

    def _cut(self, kind: str, heads: Sequence[Head], others: Sequence[Head]) -> _Knocked:
        edges, mass = self._edges([sentence.edges(kind, heads, others) for sentence in self.sentences])
        return _Knocked(self.is_right(self.subject.cut(edges)), mass)

    def _edges(self, cuts: Sequence[Sequence[_CutHere]]) -> tuple[Edges, Floats]:
        """The edges of all items as arrays, and the weight on them, (N,), mean over an item's heads."""
        listed = [
            (item, cut.head.layer, cut.head.head, query, key)
            for item, here in enumerate(cuts)
            for cut in here
            for query in cut.queries
            for key in cut.keys
        ]
        columns = np.array(listed, dtype=np.int64).reshape(-1, 5).T
        mass = np.array([np.mean([cut.mass for cut in here]) if here else 0.0 for here in cuts])
        return Edges(*columns), mass

    def _without(self, heads: Sequence[Head], mode: str) -> Floats:
        """Whether each item is still right when heads are switched off; each set is asked once."""
        key = (frozenset(heads), mode)
        if key not in self._gated:
            self._gated[key] = self.is_right(self.subject.gated(heads, mode))
        return self._gated[key]

    def _as_many(self, heads: Sequence[Head], random: np.random.Generator) -> list[Head]:
        """As many heads of each layer at random, those that are not among `heads` first."""
        drawn: list[Head] = []
        for layer, count in Counter(head.layer for head in heads).items():
            there = [head for head in self.all_heads if head.layer == layer]
            shuffled = [there[place] for place in random.permutation(len(there))]
            drawn += sorted(shuffled, key=lambda head: head in heads)[:count]
        return drawn

    def _fits(self, item: int, other: int) -> bool:
        """Whether two twins differ in one word, token for token, and are both answered rightly and differently."""
        one, two = self.subject.tokens[item], self.subject.tokens[other]
        if len(one.ids) != len(two.ids) or self.sentences[item].pronoun != self.sentences[other].pronoun:
            return False
        places = [place for place, (left, right) in enumerate(zip(one.ids, two.ids, strict=True)) if left != right]
        words = {(one.words[place], two.words[place]) for place in places}
        both = self.right[item] == self.right[other] == 1
        return len(words) == 1 and both and self.answers[item] != self.answers[other]

    def _doses(self, losses: Floats, records: Sequence[AttentionRecord]) -> _Doses:
        by_example = {record.example: record for record in records}
        points: list[tuple[int, float, float]] = []
        for item, example in enumerate(self.subject.examples):
            if example in by_example:
                # The cut is made in every layer and head, so the score is the mean over all of them.
                scores = mention_mass(by_example[example]).mean(axis=(0, 1))
                points += [
                    (item, float(score), float(loss))
                    for score, loss in zip(scores, losses[item], strict=False)
                    if not np.isnan(loss)
                ]
        columns = np.array(points, dtype=np.float64).reshape(-1, 3)
        return _Doses(columns[:, 0].astype(np.int64), columns[:, 1], columns[:, 2])


def _has_an_answer(example: Example) -> bool:
    return 0 < len(example.antecedents) < len(example.candidates)


def _knock_out_cell(
    tests: _Tests, knocked: Mapping[str, Mapping[str, _Knocked | None]], items: Bools
) -> dict[str, dict[str, Any]]:
    cell: dict[str, dict[str, Any]] = {}
    for scope, kinds in knocked.items():
        cell[scope] = {
            kind: {"drop": None, "interval": None, "mass_removed": None}
            if done is None
            else {**tests.drop(done.right, items), "mass_removed": rounded(done.mass[items].mean())}
            for kind, done in kinds.items()
        }
        gold = kinds["gold"]
        matched = [done for kind, done in kinds.items() if kind in MATCHED and done is not None]
        assert gold is not None
        worst = min(matched, key=lambda done: float(done.right[items].mean()))
        value, interval = tests.mean(worst.right - gold.right, items)
        cell[scope]["gold_minus_matched"] = {"value": value, "interval": interval}
    return cell


def _cumulative_cell(tests: _Tests, step: _Step, items: Bools) -> dict[str, Any]:
    before = tests.right[items].mean()
    spread = median_and_spread([before - right[items].mean() for right in step.random])
    return {
        "k": len(step.heads),
        "heads": [[head.layer, head.head] for head in step.heads],
        "drop": rounded(before - step.right[items].mean()),
        "random": {name: rounded(value) for name, value in spread._asdict().items()},
    }


def _patch_cell(tests: _Tests, patch: _Patched, items: Bools) -> dict[str, Any]:
    pairs = items & patch.pairs

    def share(flipped: Bools) -> dict[str, Any]:
        value, interval = tests.mean(flipped.astype(np.float64), pairs)
        return {"flipped": value, "interval": interval}

    return {
        "pairs": int(pairs.sum()),
        "skipped": int((items & patch.skipped).sum()),
        "head": share(patch.head),
        "layer": share(patch.layer),
        "cumulative": [
            {"k": count, "flipped": share(flipped)["flipped"]} for count, flipped in enumerate(patch.by_count, start=1)
        ],
        "everywhere": share(patch.by_count[-1] if patch.by_count else patch.head),
    }


def _dose_cell(tests: _Tests, doses: _Doses, items: Bools) -> dict[str, Any]:
    here = items[doses.item]
    item, score, loss = doses.item[here], doses.score[here], doses.loss[here]
    if len(score) < 2 or score.min() == score.max() or loss.min() == loss.max():
        return {"rho": None, "interval": None}
    from scipy import stats  # a second to import

    rho = float(stats.spearmanr(score, loss).statistic)
    one, two = (stats.zscore(stats.rankdata(values)) for values in (score, loss))
    # A correlation is no mean, but to first order it varies as the mean of these does, and their mean is rho itself.
    influence = one * two - rho * (one**2 + two**2) / 2 + rho
    ends = cluster_interval(influence, [tests.clusters[each] for each in item])
    return {"rho": rounded(rho), "interval": None if ends is None else [rounded(end) for end in ends]}

"""What can be had without understanding: policies of position, and shortcuts learned from the training split.

A policy gives every candidate of an example a score, (M,) for M candidates; the highest is its answer, a tie among k
counts 1 / k. Policies that need nothing but the example stand first; the learned ones are fitted on training examples.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.statistics import cluster_interval
from anaphora.data.corpora.division import together
from anaphora.data.example import Example, Span

Floats = NDArray[np.float64]
Policy = Callable[[Example], Floats]

_WORDS = re.compile(r"[\u3400-\u9fff]|[^\W_]+(?:['’-][^\W_]+)*")
_FURTHEST = 40  # tokens; a fixed offset beyond it is not tried
_BUCKETS = 2**18  # of hashed features
_VALUES = 20  # of a factor, at most
_RANKED = 20_000  # training items of one language and kind from which a linear ranker learns
_FEW = 10  # candidates
_MANY = 100  # items, from which on a word must stand in two of them to count
_PLACED = 5_000  # the same for the logistic regression of places, which is fitted for each penalty and fold
_INNER = 4  # folds by group in which its penalty is chosen
_STRENGTHS = (0.01, 0.1, 1.0, 10.0)  # 1 / penalty


def nearest(example: Example) -> Floats:
    """The mention with the fewest characters between it and the pronoun."""
    return np.array([-min(_gap(span, example.pronoun) for span in spans) for spans in example.candidates], dtype=float)


def first(example: Example) -> Floats:
    """The candidate that is mentioned first."""
    return -np.arange(len(example.candidates), dtype=float)


def longest(example: Example) -> Floats:
    """The candidate whose longest mention has most characters."""
    return np.array([max(end - start for start, end in spans) for spans in example.candidates], dtype=float)


def most_mentioned(example: Example) -> Floats:
    """The candidate with most mentions."""
    return np.array([len(spans) for spans in example.candidates], dtype=float)


def subject(example: Example) -> Floats:
    """The grammatical subject, where the factor `subject` names it; no opinion elsewhere."""
    scores = np.zeros(len(example.candidates))
    if "subject" in example.factors:
        scores[int(example.factors["subject"])] = 1
    return scores


POLICIES: Mapping[str, Policy] = {
    "nearest": nearest,
    "first": first,
    "subject": subject,
    "longest": longest,
    "most_mentioned": most_mentioned,
}
"""The policies that need no training split."""


def correctness(policy: Policy, examples: Sequence[Example]) -> Floats:
    """How right a policy is when it may choose any candidate: (N,) in [0, 1], a tie among k counting 1 / k."""
    return np.array([_right(policy(example), example, range(len(example.candidates))) for example in examples])


def focal_correctness(policy: Policy, examples: Sequence[Example]) -> Floats:
    """How right a policy is when it may choose among the focal candidates alone: (N,) in [0, 1]."""
    return np.array([_right(policy(example), example, example.focal) for example in examples])


def chance(examples: Sequence[Example]) -> Floats:
    """How right a blind choice among the focal candidates is: (N,)."""
    return focal_correctness(_blind, examples)


def best_offset(train: Sequence[Example]) -> Policy:
    """The place that is right most often in training: the k-th candidate, or the one nearest to a fixed token offset.

    Places are counted from the first candidate, from the last one, and outwards from the pronoun; offsets are -40 to
    40 tokens from the pronoun.
    """
    shown = _thinned(train, 2000)
    return max(_places(), key=lambda place: float(focal_correctness(place, shown).mean()))


def most_frequent(train: Sequence[Example]) -> Policy:
    """The candidate whose words were the antecedent most often in training."""
    counts = Counter(_name(example, index) for example in train for index in example.antecedents)
    return lambda example: np.array([counts[_name(example, index)] for index in range(len(example.candidates))], float)


def entity_cue(train: Sequence[Example]) -> Policy:
    """A memoriser: how often, of the times that training showed a cue with these words, they were the antecedent.

    Without a factor `cue` the pronoun is the cue. A pair that training never showed is rated one half.
    """
    shown: Counter[tuple[str, str]] = Counter()
    right: Counter[tuple[str, str]] = Counter()
    for example in train:
        for index in range(len(example.candidates)):
            pair = (_cue(example), _name(example, index))
            shown[pair] += 1
            right[pair] += index in example.antecedents

    def scores(example: Example) -> Floats:
        pairs = [(_cue(example), _name(example, index)) for index in range(len(example.candidates))]
        return np.array([(right[pair] + 0.5) / (shown[pair] + 1) for pair in pairs])

    return scores


def odd_one_out(train: Sequence[Example]) -> Policy:
    """A linear ranker that sees the candidates alone, pronoun and context hidden: words, places, who is beside whom."""

    def features(example: Example) -> Iterator[list[str]]:
        names = [_name(example, other) for other in range(len(example.candidates))]
        for index, own in enumerate(names):
            others = [name for other, name in enumerate(names) if other != index]
            yield [
                f"own={own}",
                f"place={index}/{len(names)}",
                *(f"beside={name}" for name in others),
                *(f"pair={own}|{name}" for name in others),
            ]

    return _ranker(train, features)


def bag_of_words(train: Sequence[Example]) -> Policy:
    """A linear ranker over the candidate's own words and the words of the text, each for itself and without order.

    The text is the same for all candidates of an item, so that their own words alone decide between them.
    """

    def features(example: Example) -> Iterator[list[str]]:
        text = [f"text={word}" for word in _context(example)]
        for own in _all_own_words(example):
            yield [*(f"own={word}" for word in own), *text]

    return _ranker(train, features)


def bag_with_interactions(train: Sequence[Example]) -> Policy:
    """The bag of words, and each of the candidate's words together with each word of the text."""

    def features(example: Example) -> Iterator[list[str]]:
        context = _context(example)
        text = [f"text={word}" for word in context]
        for own in _all_own_words(example):
            pairs = [f"pair={word}|{other}" for word in own for other in context]
            yield [*(f"own={word}" for word in own), *pairs, *text]

    return _ranker(train, features)


def bag_by_place(train: Sequence[Example]) -> Policy:
    """The bag of words with a weight for each word of the text and place of the candidate: first, second, ...

    For found text. In the controlled corpus's role items the cue's word and the order are the rule itself, which this
    would learn: no shortcut there.
    """

    def features(example: Example) -> Iterator[list[str]]:
        context = _context(example)
        for index, own in enumerate(_all_own_words(example)):
            yield [*(f"own={word}" for word in own), *(f"text={word}|{index}" for word in context)]

    return _ranker(train, features)


def words(train: Sequence[Example]) -> Policy:
    """The place of the answer, told by which words the text holds: see `_placer`."""
    return _placer(train, longest=1)


def words_and_pairs(train: Sequence[Example]) -> Policy:
    """The same by words and pairs of neighbours."""
    return _placer(train, longest=2)


LEARNED: Mapping[str, Callable[[Sequence[Example]], Policy]] = {
    "best_offset": best_offset,
    "odd_one_out": odd_one_out,
    "most_frequent": most_frequent,
    "entity_cue": entity_cue,
    "bag_of_words": bag_of_words,
    "bag_with_interactions": bag_with_interactions,
}
"""The shortcuts that are fitted on the training split."""

LEARNED_FROM_FOUND_TEXT: Mapping[str, Callable[[Sequence[Example]], Policy]] = {**LEARNED, "bag_by_place": bag_by_place}
"""The same for items without a kind of cue, which no block balances."""

LEARNED_FROM_FEW_CANDIDATES: Mapping[str, Callable[[Sequence[Example]], Policy]] = {
    **LEARNED_FROM_FOUND_TEXT,
    "words": words,
    "words_and_pairs": words_and_pairs,
}
"""The same where items have few candidates, so that "the first" and "the second" are something to learn."""


@dataclass(frozen=True, kw_only=True)
class Shortcut:
    """The accuracy of one shortcut on the test items of one language and kind of cue."""

    name: str
    language: str
    kind: str  # "set" or "role"; "" where the examples have no kind
    items: int
    accuracy: float
    low: float | None  # the 95 % interval over templates; None where there are fewer than two
    high: float | None


def per_item(train: Sequence[Example], test: Sequence[Example]) -> dict[str, Floats]:
    """How right each shortcut is on each test item, among the focal candidates: name -> (N,).

    A learned one is fitted on the training items of the same language and kind. Items without an antecedent count as
    wrong for all; leave them out where that is not meant. NaN where a shortcut does not apply: a learned one that has
    nothing to learn from, `bag_by_place` is for items without a kind of cue, `words` for those of few candidates too.
    """
    results = unlearned(test)
    for cell, places in _cells(test).items():
        known = [example for example in train if _cell(example) == cell and example.antecedents]
        for name, fit in _learned(cell[1], known).items():
            right = results.setdefault(name, np.full(len(test), np.nan))
            if known:
                right[places] = focal_correctness(fit(known), [test[place] for place in places])
    return results


def unlearned(test: Sequence[Example]) -> dict[str, Floats]:
    """The same of the shortcuts that need no training split: name -> (N,)."""
    return {name: focal_correctness(policy, test) for name, policy in {"chance": _blind, **POLICIES}.items()}


def by_kind(results: Mapping[str, Floats], test: Sequence[Example]) -> list[Shortcut]:
    """What `per_item` gives by language and kind, with a bootstrap interval over templates (else groups, items).

    A cell to which a shortcut does not apply is left out.
    """
    clusters = [_cluster(place, example) for place, example in enumerate(test)]
    cells = _cells(test)
    rows = []
    for name, right in results.items():
        for (language, kind), places in cells.items():
            if np.isnan(right[places]).any():
                continue
            low, high = cluster_interval(right[places], [clusters[place] for place in places]) or (None, None)
            rows.append(
                Shortcut(
                    name=name,
                    language=language,
                    kind=kind,
                    items=len(places),
                    accuracy=float(right[places].mean()),
                    low=low,
                    high=high,
                )
            )
    return sorted(rows, key=lambda row: (row.language, row.kind))


def by_factor(results: Mapping[str, Floats], test: Sequence[Example]) -> list[dict[str, str | int | float | None]]:
    """The mean of what `per_item` gives by every value of the factors that tell items of found text apart.

    A factor with more values than `_VALUES` names items rather than kinds of them, and is left out; so are items with a
    kind of cue, which `by_kind` has. None where a shortcut does not apply.
    """
    places: dict[str, dict[str, list[int]]] = {}
    for place, example in enumerate(test):
        for factor, value in () if "kind" in example.factors else example.factors.items():
            places.setdefault(factor, {}).setdefault(value, []).append(place)
    return [
        {
            "factor": factor,
            "value": value,
            "items": len(chosen),
            **{name: _mean(right[chosen]) for name, right in results.items()},
        }
        for factor, values in places.items()
        if 1 < len(values) <= _VALUES
        for value, chosen in sorted(values.items())
    ]


def _mean(right: Floats) -> float | None:
    return None if np.isnan(right).any() else float(right.mean())


def _blind(example: Example) -> Floats:
    return np.zeros(len(example.candidates))


def _right(scores: Floats, example: Example, allowed: Sequence[int]) -> float:
    """The share of the highest scores among the allowed candidates that are antecedents."""
    best = max(scores[index] for index in allowed)
    picked = [index for index in allowed if scores[index] == best]
    return sum(index in example.antecedents for index in picked) / len(picked)


def _gap(span: Span, pronoun: Span) -> int:
    return max(span[0] - pronoun[1], pronoun[0] - span[1])


def _places() -> list[Policy]:
    def from_first(rank: int) -> Policy:
        return lambda example: -abs(np.arange(len(example.candidates), dtype=float) - rank)

    def from_last(rank: int) -> Policy:
        return lambda example: -abs(np.arange(len(example.candidates), dtype=float)[::-1] - rank)

    def outwards(rank: int) -> Policy:
        def scores(example: Example) -> Floats:
            order = np.argsort(np.argsort(-nearest(example), kind="stable")).astype(np.float64)
            return -np.abs(order - rank)

        return scores

    def at_offset(offset: int) -> Policy:
        return lambda example: -abs(_offsets(example) - offset)

    ranked = [build(rank) for rank in range(6) for build in (from_first, from_last, outwards)]
    return [*ranked, *(at_offset(offset) for offset in range(-_FURTHEST, _FURTHEST + 1))]


def _offsets(example: Example) -> Floats:
    """How many tokens after the pronoun each candidate's first mention begins; before it, a negative number."""
    starts = _token_starts(example.text)
    pronoun = bisect_left(starts, example.pronoun[0])
    return np.array([bisect_left(starts, spans[0][0]) - pronoun for spans in example.candidates], dtype=float)


@lru_cache(maxsize=4096)  # one text is asked for every offset that is tried
def _token_starts(text: str) -> list[int]:
    return [match.start() for match in _WORDS.finditer(text)]


def _thinned(examples: Sequence[Example], most: int) -> list[Example]:
    step = -(-len(examples) // most) if examples else 1
    return list(examples[::step])


def _name(example: Example, index: int) -> str:
    return example.words(index).lower()


def _cue(example: Example) -> str:
    start, end = example.pronoun
    return example.factors.get("cue") or example.text[start:end].lower()


def _all_own_words(example: Example) -> list[list[str]]:
    names = [_name(example, index) for index in range(len(example.candidates))]
    return [[name] if example.language == "zh" else _WORDS.findall(name) for name in names]


def _context(example: Example) -> list[str]:
    """The pronoun and the words of the text outside the candidates, each once; of Chinese, characters and their pairs.

    The pronoun is one word: 他的 is not 他 and something more.
    """
    text = example.text.lower()
    pieces, at = [], 0
    for start, end in sorted([example.pronoun, *(span for spans in example.candidates for span in spans)]):
        pieces.append(text[at:start])
        at = end
    pieces.append(text[at:])
    words = {text[slice(*example.pronoun)]: None}
    for piece in pieces:
        found = _WORDS.findall(piece)
        words.update(dict.fromkeys(found))
        if example.language == "zh":
            words.update(dict.fromkeys(left + right for left, right in pairwise(found)))
    return list(words)


def _ranker(train: Sequence[Example], features: Callable[[Example], Iterator[list[str]]]) -> Policy:
    """A logistic regression that tells antecedents from other focal candidates, from hashed features.

    Args:
        train: of these at most `_RANKED`, evenly spread.
        features: those of each candidate of an example.
    """
    from sklearn.feature_extraction import FeatureHasher
    from sklearn.linear_model import SGDClassifier

    shown = _thinned(train, _RANKED)
    answers = [index in example.antecedents for example in shown for index in example.focal]
    if len(set(answers)) < 2:
        return _blind

    def rows() -> Iterator[list[str]]:
        for example in shown:
            listed = list(features(example))
            yield from (listed[index] for index in example.focal)

    hasher = FeatureHasher(_BUCKETS, input_type="string", alternate_sign=False, dtype=np.float32)
    model = SGDClassifier(loss="log_loss", alpha=1e-6, max_iter=8, tol=None, random_state=0, average=True)
    model.fit(hasher.transform(rows()), answers)
    weights = model.coef_[0]

    def scores(example: Example) -> Floats:
        matrix = hasher.transform(features(example))
        # What candidates share may differ in the last digit by the order of the sum; it must not break a tie.
        rounded: Floats = np.round(matrix @ weights, 6)
        return rounded

    return scores


def _learned(kind: str, known: Sequence[Example]) -> Mapping[str, Callable[[Sequence[Example]], Policy]]:
    """The learned shortcuts for items of a kind of cue, or of none."""
    if kind:
        return LEARNED
    few = all(len(example.candidates) <= _FEW for example in known)
    return LEARNED_FROM_FEW_CANDIDATES if few else LEARNED_FROM_FOUND_TEXT


def _placer(train: Sequence[Example], longest: int) -> Policy:
    """Which place the answer has (first, second, ...): a logistic regression on what the text holds.

    It sees each text once and is not told which words are the candidates'; its penalty is chosen by folds by group
    inside training. On items of two candidates that is stronger than a ranker of candidates, which sees every text
    twice. Of Chinese, characters are the words. An item of several answers teaches the first of them; places too rare
    to be in every fold are not taught.

    Args:
        train: of these at most `_PLACED`, evenly spread.
        longest: stretches of neighbouring words up to so many.
    """
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
    from sklearn.model_selection import StratifiedGroupKFold

    shown = _thinned(train, _PLACED)
    groups: dict[int, set[str]] = {}
    for example in shown:
        groups.setdefault(min(example.antecedents), set()).add(together(example))
    often = sorted(place for place, found in groups.items() if len(found) >= 2 * _INNER)
    known = often if len(often) > 1 else sorted(groups)
    if len(known) < 2:
        return lambda example: (np.arange(len(example.candidates)) == known[0]).astype(np.float64)
    shown = [example for example in shown if min(example.antecedents) in known]
    places = [min(example.antecedents) for example in shown]
    least = 2 if len(shown) >= _MANY else 1
    counter = CountVectorizer(token_pattern=_WORDS.pattern, ngram_range=(1, longest), binary=True, min_df=least)
    counted = counter.fit_transform(example.text for example in shown)
    if known != often:  # too few items to choose by
        model = LogisticRegression(C=_STRENGTHS[0])
    else:
        model = LogisticRegressionCV(
            Cs=list(_STRENGTHS),
            cv=list(StratifiedGroupKFold(_INNER).split(counted, places, list(map(together, shown)))),
            scoring="neg_log_loss",
            l1_ratios=(0,),
            use_legacy_attributes=False,
        )
    model.fit(counted, places)

    def scores(example: Example) -> Floats:
        likely = dict(zip(known, model.predict_proba(counter.transform([example.text]))[0], strict=True))
        return np.array([likely.get(place, 0.0) for place in range(len(example.candidates))])

    return scores


def _cell(example: Example) -> tuple[str, str]:
    return example.language, example.factors.get("kind", "")


def _cells(examples: Sequence[Example]) -> dict[tuple[str, str], list[int]]:
    """The places of the examples of each language and kind."""
    cells: dict[tuple[str, str], list[int]] = {}
    for place, example in enumerate(examples):
        cells.setdefault(_cell(example), []).append(place)
    return cells


def _cluster(place: int, example: Example) -> Hashable:
    return example.factors.get("template") or example.group or place

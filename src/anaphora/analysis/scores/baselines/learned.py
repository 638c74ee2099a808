"""Shortcut baselines that are fitted on the training split: frequencies, bags of words, linear models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from anaphora.analysis.maps.answers import Floats
from anaphora.analysis.scores.baselines.policies import (
    WORDS,
    Policy,
    PolicyOfMany,
    focal_shares,
    positional_scores,
    random_choice,
)
from anaphora.data.corpora.division import group_key
from anaphora.data.example import Example

_HASH_BUCKETS = 2**18  # buckets of hashed features
_MAX_RANKER_ITEMS = 20_000  # maximum number of training items of a linear ranker
_MAX_FEW_CANDIDATES = 10  # maximum number of candidates per training item for an order classifier
_MIN_ITEMS_FOR_WORD_CUTOFF = 100  # with as many training items, words that occur in only one item are ignored
_MAX_ORDER_ITEMS = 5_000  # maximum number of training items of an order classifier, fitted for each penalty and fold
_INNER_FOLDS = 4  # number of folds of the cross-validation, by group, that chooses the penalty
_INVERSE_PENALTIES = (0.01, 0.1, 1.0, 10.0)  # 1 / penalty
_MAX_ITERATIONS = 1000  # enough for the smallest penalty on `_MAX_ORDER_ITEMS` texts; others stop long before


def best_offset(train: Sequence[Example]) -> Policy:
    """Return the positional shortcut that is most accurate on at most 2,000 training items.

    A positional shortcut (`positional_scores`) prefers, for example, the second candidate from the start.
    """
    sample = _evenly_spaced(train, 2000)
    shares = np.stack([focal_shares(positional_scores(example), example) for example in sample], axis=1)
    means = [float(of_policy.mean()) for of_policy in shares]
    best = means.index(max(means))
    return lambda example: positional_scores(example)[best]


def most_frequent(train: Sequence[Example]) -> Policy:
    """Return the shortcut that picks the candidate whose words were the antecedent most often in training."""
    counts = Counter(_name(example, index) for example in train for index in example.antecedents)
    return lambda example: np.array([counts[_name(example, index)] for index in range(len(example.candidates))], float)


def entity_cue(train: Sequence[Example]) -> Policy:
    """Return a shortcut that scores a candidate by how often it was the antecedent in training items with the same cue.

    The score is (a + 0.5) / (n + 1), where n is the number of training items in which this candidate occurs with this
    cue, and a is the number of these in which it is an antecedent. In an item without the factor `cue`, the pronoun is
    the cue.
    """

    def pairs_of(example: Example) -> list[tuple[str, str]]:
        start, end = example.pronoun
        cue = example.factors.get("cue") or example.text[start:end].lower()
        return [(cue, _name(example, index)) for index in range(len(example.candidates))]

    counts = Counter(pair for example in train for pair in pairs_of(example))
    right = Counter(pairs_of(example)[index] for example in train for index in example.antecedents)

    def scores(example: Example) -> Floats:
        return np.array([(right[pair] + 0.5) / (counts[pair] + 1) for pair in pairs_of(example)])

    return scores


def odd_one_out(train: Sequence[Example]) -> Policy:
    """Return a linear ranker of candidates that sees only their words and order, not the pronoun or the context.

    It could learn, for example, to pick a name that differs from the other names in gender.
    """

    def features(example: Example) -> Iterator[list[str]]:
        names = [_name(example, other) for other in range(len(example.candidates))]
        for index, own in enumerate(names):
            others = [name for other, name in enumerate(names) if other != index]
            beside = [f"beside={name}" for name in others]
            yield [f"own={own}", f"place={index}/{len(names)}", *beside, *(f"pair={own}|{name}" for name in others)]

    return _ranker(train, features)


def bag_of_words(train: Sequence[Example]) -> Policy:
    """Return a linear ranker of candidates by the candidate's words and the text's words, without interactions.

    The text's words add the same score to all candidates of an item, so that only the candidates' words decide.
    """
    return _bag_ranker(train, lambda _index, _own, context: [f"text={word}" for word in context])


def bag_with_interactions(train: Sequence[Example]) -> Policy:
    """Return a linear ranker like `bag_of_words` with additional features: pairs of a candidate's and a text's word."""

    def features(_index: int, own: list[str], context: list[str]) -> list[str]:
        pairs = [f"pair={word}|{other}" for word in own for other in context]
        return [*pairs, *(f"text={word}" for word in context)]

    return _bag_ranker(train, features)


def bag_by_order(train: Sequence[Example]) -> Policy:
    """Return a linear ranker of candidates by the candidate's words, and by the text's words and the candidate's order.

    A word of the text has a separate weight for the first candidate, the second and so on. The ranker is meant for
    natural text. In items of the built-in corpus in which roles matter, this ranker would not be a shortcut,
    because a cue word and the order of the candidates together determine the antecedent there.
    """
    return _bag_ranker(train, lambda index, _own, context: [f"text={word}|{index}" for word in context])


LEARNED: Mapping[str, Callable[[Sequence[Example]], Policy]] = {
    "best_offset": best_offset,
    "odd_one_out": odd_one_out,
    "most_frequent": most_frequent,
    "entity_cue": entity_cue,
    "bag_of_words": bag_of_words,
    "bag_with_interactions": bag_with_interactions,
}
"""Functions that fit shortcuts on training items, by name of the shortcut; for items with a cue category."""

LEARNED_FROM_NATURAL_TEXT: Mapping[str, Callable[[Sequence[Example]], Policy]] = {
    **LEARNED,
    "bag_by_place": bag_by_order,
}
"""The same for items without a cue category, whose candidates are not balanced in order."""

LEARNED_FROM_FEW_CANDIDATES: Mapping[str, Callable[[Sequence[Example]], Policy]] = {
    **LEARNED_FROM_NATURAL_TEXT,
    "words": lambda train: order_classifier(train, longest=1),
    "words_and_pairs": lambda train: order_classifier(train, longest=2),
}
"""The same for items without a cue category and with few candidates, so that the antecedent's index can be learned."""


def _evenly_spaced(examples: Sequence[Example], most: int) -> list[Example]:
    step = -(-len(examples) // most) if examples else 1
    return list(examples[::step])


def _name(example: Example, index: int) -> str:
    return example.words(index).lower()


def _context(example: Example) -> list[str]:
    """Return the pronoun and the distinct words outside the candidates, in lower case.

    Chinese words are characters and bigrams of characters, but the pronoun is never split: 他的 is one word.
    """
    text = example.text.lower()
    segments, at = [], 0
    for start, end in sorted(example.spans):
        segments.append(text[at:start])
        at = end
    segments.append(text[at:])
    words = {text[slice(*example.pronoun)]: None}
    for segment in segments:
        segment_words = WORDS.findall(segment)
        words.update(dict.fromkeys(segment_words))
        if example.language == "zh":
            words.update(dict.fromkeys(left + right for left, right in pairwise(segment_words)))
    return list(words)


def _bag_ranker(train: Sequence[Example], of_text: Callable[[int, list[str], list[str]], list[str]]) -> Policy:
    """Return a linear ranker of candidates by the candidate's words and by the features that `of_text` returns.

    The arguments of `of_text` are the candidate's index in order of mention, its words and the words of the text.
    """

    def features(example: Example) -> Iterator[list[str]]:
        context = _context(example)
        for index in range(len(example.candidates)):
            name = _name(example, index)
            own = [name] if example.language == "zh" else WORDS.findall(name)
            yield [*(f"own={word}" for word in own), *of_text(index, own, context)]

    return _ranker(train, features)


def _ranker(train: Sequence[Example], features: Callable[[Example], Iterator[list[str]]]) -> Policy:
    """Return a logistic regression on hashed features that separates antecedents from the other candidates.

    It is fitted on the candidates that the cue distinguishes (`Example.focal`), in at most `_MAX_RANKER_ITEMS` items.
    If all or none of these candidates are antecedents, the result is a random choice.
    """
    from sklearn.feature_extraction import FeatureHasher
    from sklearn.linear_model import SGDClassifier

    sample = _evenly_spaced(train, _MAX_RANKER_ITEMS)
    answers = [index in example.antecedents for example in sample for index in example.focal]
    if len(set(answers)) < 2:
        return random_choice

    def rows() -> Iterator[list[str]]:
        for example in sample:
            listed = list(features(example))
            yield from (listed[index] for index in example.focal)

    hasher = FeatureHasher(_HASH_BUCKETS, input_type="string", alternate_sign=False, dtype=np.float32)
    model = SGDClassifier(loss="log_loss", alpha=1e-6, max_iter=8, tol=None, random_state=0, average=True)
    model.fit(hasher.transform(rows()), answers)
    weights = model.coef_[0]

    def scores(examples: Sequence[Example]) -> Floats:
        matrix = hasher.transform(row for example in examples for row in features(example))
        # Rounding keeps ties between candidates with the same features, whose sums may differ in the last digit.
        return np.asarray(np.round(matrix @ weights, 6))

    return PolicyOfMany(scores)


def learned_answers(kind: str, known: Sequence[Example]) -> Mapping[str, Callable[[Sequence[Example]], Policy]]:
    """Return functions that fit the learned shortcuts for items of one cue category, by name of the shortcut.

    Args:
        kind: cue category ("set" or "role"); "" for items without one, such as natural text.
        known: training items. If `kind` is "", their largest number of candidates determines which shortcuts apply.
    """
    if kind:
        return LEARNED
    few = all(len(example.candidates) <= _MAX_FEW_CANDIDATES for example in known)
    return LEARNED_FROM_FEW_CANDIDATES if few else LEARNED_FROM_NATURAL_TEXT


def order_classifier(train: Sequence[Example], longest: int) -> Policy:
    """Return a logistic regression from the text to the antecedent's index in order of mention (first, second, ...).

    The model sees each text once, and does not see which words are candidates. On items with two candidates it is
    stronger than a ranker of candidates, which sees every text twice. Chinese texts are split into characters. If an
    item has several antecedents, the index of the first is used. The features are n-grams of words; with 100 or more
    training items, n-grams that occur in only one item are ignored. At most 5,000 training items are used, evenly
    spaced.

    The penalty is chosen by grouped cross-validation. Indices that are right in fewer than 8 groups are not predicted,
    and their items are left out. If fewer than two indices remain, all items are used, and the penalty is fixed. If the
    index is the same in all training items, it is always predicted.

    Args:
        train: training items.
        longest: maximum number of words in an n-gram.
    """
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
    from sklearn.model_selection import StratifiedGroupKFold

    sample = _evenly_spaced(train, _MAX_ORDER_ITEMS)
    groups: dict[int, set[str]] = {}
    for example in sample:
        groups.setdefault(min(example.antecedents), set()).add(group_key(example))
    often = sorted(rank for rank, names in groups.items() if len(names) >= 2 * _INNER_FOLDS)
    known = often if len(often) > 1 else sorted(groups)
    if len(known) < 2:
        return lambda example: (np.arange(len(example.candidates)) == known[0]).astype(np.float64)
    sample = [example for example in sample if min(example.antecedents) in known]
    ranks = [min(example.antecedents) for example in sample]
    least = 2 if len(sample) >= _MIN_ITEMS_FOR_WORD_CUTOFF else 1
    counter = CountVectorizer(token_pattern=WORDS.pattern, ngram_range=(1, longest), binary=True, min_df=least)
    counted = counter.fit_transform(example.text for example in sample)
    if known != often:  # too few items for cross-validation
        model = LogisticRegression(C=_INVERSE_PENALTIES[0], max_iter=_MAX_ITERATIONS)
    else:
        model = LogisticRegressionCV(
            Cs=list(_INVERSE_PENALTIES),
            cv=list(StratifiedGroupKFold(_INNER_FOLDS).split(counted, ranks, list(map(group_key, sample)))),
            scoring="neg_log_loss",
            max_iter=_MAX_ITERATIONS,
            l1_ratios=(0,),
            use_legacy_attributes=False,
        )
    model.fit(counted, ranks)

    def scores(examples: Sequence[Example]) -> Floats:
        counts = [len(example.candidates) for example in examples]
        likely = np.zeros((len(examples), max([*counts, *(rank + 1 for rank in known)])))
        likely[:, known] = model.predict_proba(counter.transform(example.text for example in examples))
        return np.concatenate([row[:count] for row, count in zip(likely, counts, strict=True)])

    return PolicyOfMany(scores)

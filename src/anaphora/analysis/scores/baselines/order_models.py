"""Shortcuts that predict which of two names is the antecedent: the first or the second in the text.

They are fitted for each language on the whole training split, without the names as features. There are a look-up table
of wordings, logistic regressions on words, pairs and triples of words, and boosted trees on words. In the trees and in
half of the regressions, each word has a zone: before the names, between them, before the pronoun or after it. For
comparison, a low-rank model gets predicate, cue and voice, which determine the antecedent; it is no shortcut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.maps.answers import Floats
from anaphora.data.example import Example, overlap
from anaphora.data.grouping import indices_by
from anaphora.data.tokens.tokenizer import TokenizedText, Tokenizer

RULE = ("predicate", "cue", "voice")
"""Factors of an item that determine its antecedent: keys of the look-up table, and inputs of the rule model."""
WORDING = ("type", "scenario", "cue", "voice")
"""Factors that together identify a wording, whatever the names, in a generated corpus."""
TABLE_OF_WORDINGS = "table_of_wordings"
RULE_MODEL = "rule_model"
"""Name of the model that gets the factors in `RULE` and learns how they determine the antecedent."""
_ZONES = 4  # number of zones of a text: before the names, between them, up to the pronoun, after it
_CHUNK = 2_000  # items per step of the logistic regressions
_RATE, _UPDATES, _MOST_EPOCHS = 1.0, 200_000, 60  # settings of the logistic regressions, whose rows have length 1
_LEAST_ITEMS_OF_A_TREE_FEATURE = 20
_WITH_PLACES = "_with_places"
_LONGEST_FIRST = ("boosted_trees", "triples", "pairs", "words")  # ten seconds to less than one for 40,000 items
_LEAST_ITEMS_SIDE_BY_SIDE = 10_000  # with fewer items, starting processes costs more time than it saves
# Features are binary, so two bins suffice.
_TREE_SETTINGS = {"max_iter": 100, "learning_rate": 0.2, "max_leaf_nodes": 31, "max_bins": 2, "early_stopping": False}
_RANK, _RULE_STEPS, _RULE_RATE = 8, 400, 0.05


@dataclass(frozen=True)
class OrderItems:
    """Features and labels of N items, for fitting and evaluating the shortcuts of this module."""

    words: list[Ints]  # sorted token ids of each item's distinct words, without names
    placed_words: list[Ints]  # sorted codes of each item's distinct words and their zones (`_words_with_zones`)
    second: NDArray[np.bool_]  # whether the antecedent is the second name in the text, (N,)
    examples: Sequence[Example]


Delayed = tuple[Callable[..., Floats], tuple[Any, ...], Mapping[str, Any]]
"""Delayed call of joblib: function, arguments and keyword arguments."""


def fit_order_models(
    splits: Sequence[tuple[Sequence[Example], Sequence[Example]]], tokenizer: Tokenizer
) -> list[dict[str, Floats]]:
    """Fit shortcuts and a model for comparison on training items, and return their correctness on test items.

    The model for comparison, `RULE_MODEL`, gets the factors that determine the antecedent. Large splits are fitted in
    parallel.

    Args:
        splits: training items and N test items of each language. Each item has one antecedent, and two candidates that
            the cue distinguishes.
        tokenizer: tokenizer whose tokens are used as words.

    Returns:
        For each language, the correctness (N,) by name of the shortcut or model; 0.5 in a tie. `RULE_MODEL` is left out
        if the items lack the factors in `RULE`.
    """
    from sklearn.utils.parallel import Parallel

    read = [tuple(_order_items(examples, tokenizer) for examples in pair) for pair in splits]
    learners = {
        (number, name): learner for number, pair in enumerate(read) for name, learner in _learners(*pair).items()
    }
    # The longest jobs start first, so that no core waits at the end.
    begun = sorted(learners, key=lambda each: _LONGEST_FIRST.index(each[1].removesuffix(_WITH_PLACES)))
    side_by_side = any(len(train) >= _LEAST_ITEMS_SIDE_BY_SIDE for train, _ in splits)
    answers = Parallel(n_jobs=-1 if side_by_side else 1)(learners[each] for each in begun)
    says_second = dict(zip(begun, answers, strict=True))
    all_results = []
    for number, (known, items) in enumerate(read):
        table = _table_of_wordings(known.examples, items.examples, RULE)
        results = {TABLE_OF_WORDINGS: _correctness(table, items.second)}
        results |= {name: _correctness(says_second[own, name], items.second) for own, name in learners if own == number}
        if all(factor in known.examples[0].factors for factor in RULE):
            results[RULE_MODEL] = _rule_model(known, items)
        all_results.append(results)
    return all_results


def _learners(known: OrderItems, items: OrderItems) -> dict[str, Delayed]:
    """Return delayed calls that fit each shortcut on `known` and predict the antecedents of `items`, (N,)."""
    from sklearn.utils.parallel import delayed

    readings = {"": (known.words, items.words), _WITH_PLACES: (known.placed_words, items.placed_words)}
    linear = {
        f"{name}{suffix}": delayed(_linear)(*texts, known.second, count)
        for count, name in enumerate(("words", "pairs", "triples"), start=1)
        for suffix, texts in readings.items()
    }
    return linear | {"boosted_trees": delayed(_boosted_trees)(*readings[_WITH_PLACES], known.second)}


def wordings_seen(train: Sequence[Example], test: Sequence[Example]) -> Floats:
    """Return the correctness, (N,), of a shortcut that looks up which name was the antecedent in training.

    It selects the first or the second name, whichever was more often the antecedent in training items with the same
    wording (`WORDING`). In a tie, or if the wording is unknown, the correctness is 0.5. The shortcut applies only to
    items of the cue category "role" with one antecedent and two candidates (`is_of_two`). The correctness is NaN for
    other items, and for all items if no such training item has the factor `cue`.
    """
    right = np.full(len(test), np.nan)
    known = list(filter(_is_role_of_two, train))
    if any("cue" in example.factors for example in known):
        items = list(filter(_is_role_of_two, test))
        predicted = _table_of_wordings(known, items, ("language", *WORDING))
        right[list(map(_is_role_of_two, test))] = _correctness(predicted, _seconds(items))
    return right


def is_of_two(example: Example) -> bool:
    """Return whether an item has one antecedent, and two candidates that the cue distinguishes (`Example.focal`)."""
    return len(example.focal) == 2 and len(example.antecedents) == 1


def _is_role_of_two(example: Example) -> bool:
    return example.factors.get("kind") == "role" and is_of_two(example)


def _second_is_meant(example: Example) -> bool:
    starts = _mention_starts(example)
    return example.antecedents[0] == max(starts, key=lambda index: starts[index])


def _mention_starts(example: Example) -> dict[int, int]:
    """Return the start of the mention of each candidate that the cue distinguishes, keyed by the candidate's index.

    This is the candidate's first mention. In a short text of several sentences, it is the mention in the sentence in
    which one candidate acts on the other (factor `event_names`).
    """
    in_event = example.factors.get("event_names", "").split(",")
    return {
        index: min(example.candidates[index], key=lambda span: (str(span[0]) not in in_event, span))[0]
        for index in example.focal
    }


def _order_items(examples: Sequence[Example], tokenizer: Tokenizer) -> OrderItems:
    tokens = tokenizer.encode_batch([example.text for example in examples])
    placed = [_words_with_zones(*pair) for pair in zip(examples, tokens, strict=True)]
    return OrderItems([np.unique(words // _ZONES) for words in placed], placed, _seconds(examples), examples)


def _words_with_zones(example: Example, tokens: TokenizedText) -> Ints:
    """Return the sorted distinct words outside the candidates, each as token id * 4 + the index of its zone.

    The zones are before the names, between them, from the names to the pronoun, and after it.
    """
    bounds = [*sorted(_mention_starts(example).values()), example.pronoun[0]]
    zones = (
        token * _ZONES + sum(span[0] >= bound for bound in bounds)
        for token, span in zip(tokens.ids, tokens.spans, strict=True)
        if span[0] < span[1] and not any(overlap(span, name) for name in example.spans[1:])
    )
    return np.unique(np.fromiter(zones, dtype=np.int64))


def _seconds(examples: Sequence[Example]) -> NDArray[np.bool_]:
    return np.array([_second_is_meant(example) for example in examples], dtype=np.bool_)


def _correctness(says_second: Floats, second: NDArray[np.bool_]) -> Floats:
    """Return the correctness, (N,), of predictions that are positive for the second name; 0.5 for a prediction of 0."""
    return (np.sign(says_second) * np.where(second, 1, -1) + 1) / 2


def _table_of_wordings(known: Sequence[Example], test: Sequence[Example], factors: Sequence[str]) -> Floats:
    """Predict the antecedents of test items from the training items with the same wording, (N,).

    A prediction is the number of these training items in which the second name is the antecedent, minus the number in
    which the first name is: it is positive for the second name. A wording is defined by the values of `factors`.
    """
    counts: Counter[tuple[str, ...]] = Counter()
    for example in known:
        counts[_wording(example, factors)] += 1 if _second_is_meant(example) else -1
    return np.array([counts[_wording(example, factors)] for example in test], dtype=np.float64)


def _wording(example: Example, factors: Sequence[str]) -> tuple[str, ...]:
    return tuple(example.factors.get(factor, "") for factor in factors)


def _linear(known_words: Sequence[Ints], test_words: Sequence[Ints], second: NDArray[np.bool_], count: int) -> Floats:
    """Fit a logistic regression on sets of words; return predictions, positive if the second of two names is meant."""
    from sklearn.linear_model import SGDClassifier

    epochs = min(_MOST_EPOCHS, -(-_UPDATES // len(known_words)))
    model = SGDClassifier(
        loss="log_loss", alpha=1e-8, learning_rate="constant", eta0=_RATE, max_iter=epochs, tol=None, random_state=0
    )
    sets = WordSets(known_words, count)
    chunks = -(-len(known_words) // _CHUNK)
    if chunks == 1:
        model.fit(sets.matrix(range(len(known_words))), second)
    else:
        order = np.random.default_rng(0)
        for _ in range(epochs):
            for items in np.array_split(order.permutation(len(known_words)), chunks):
                model.partial_fit(sets.matrix(items), second[items], classes=[False, True])
    says = [
        model.decision_function(sets.matrix_of(test_words[start : start + _CHUNK]))
        for start in range(0, len(test_words), _CHUNK)
    ]
    return np.concatenate(says)


def _boosted_trees(known_words: Sequence[Ints], test_words: Sequence[Ints], second: NDArray[np.bool_]) -> Floats:
    """Fit boosted trees on words with zones; return predictions, positive if the second of two names is meant."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    words, counts = np.unique(np.concatenate(known_words), return_counts=True)
    often = words[counts >= _LEAST_ITEMS_OF_A_TREE_FEATURE]
    if not len(often):  # no word is frequent enough for a prediction
        return np.zeros(len(test_words))
    present = _presence(known_words, often)
    # Of words that always occur together, only the first is kept, to save time.
    first: dict[bytes, int] = {}
    for number, column in enumerate(np.packbits(present.astype(np.bool_), axis=0).T):
        first.setdefault(column.tobytes(), number)
    kept = list(first.values())
    present = present[:, kept]
    model = HistGradientBoostingClassifier(random_state=0, **_TREE_SETTINGS)
    model.fit(present, second)
    probability: Floats = model.predict_proba(_presence(test_words, often[kept]))[:, list(model.classes_).index(True)]
    return probability - 0.5


def _presence(texts: Sequence[Ints], features: Ints) -> Floats:
    """Return a matrix (N, F) that is 1 where a text, given by its sorted words, contains a feature, and 0 elsewhere.

    The matrix is stored column by column, as the trees need it. `features` are F sorted words.
    """
    flat = np.concatenate(texts)
    text_of = np.repeat(np.arange(len(texts)), [len(words) for words in texts])
    column = np.minimum(np.searchsorted(features, flat), len(features) - 1)
    known = features[column] == flat
    present = np.zeros((len(texts), len(features)), order="F")
    present[text_of[known], column[known]] = 1
    return present


def _rule_model(known: OrderItems, test: OrderItems) -> Floats:
    """Fit a low-rank model of how the factors in `RULE` determine the antecedent, and return its correctness, (N,).

    Each value of a factor has a vector. The logit of an item is the sum of the elementwise product of the vectors of
    its values. A value that does not occur in training gets the vector of the factor's first value.
    """
    import torch
    from torch.nn import functional

    numbers = {
        factor: {value: code for code, value in enumerate(sorted({each.factors[factor] for each in known.examples}))}
        for factor in RULE
    }

    def codes(items: OrderItems) -> torch.Tensor:
        return torch.tensor(
            [[numbers[factor].get(each.factors[factor], 0) for factor in RULE] for each in items.examples]
        )

    generator = torch.Generator().manual_seed(0)
    sizes = map(len, numbers.values())
    tables = [torch.randn(size, _RANK, generator=generator).mul_(0.5).requires_grad_() for size in sizes]
    optimizer = torch.optim.Adam(tables, lr=_RULE_RATE)
    columns, labels = codes(known), torch.tensor(known.second, dtype=torch.float32)

    def logits(rows: torch.Tensor) -> torch.Tensor:
        # Indexing would add gradients up in a random order with more than one thread.
        vectors = [functional.embedding(column, table) for table, column in zip(tables, rows.T, strict=True)]
        return (vectors[0] * vectors[1] * vectors[2]).sum(dim=1)

    for _ in range(_RULE_STEPS):
        optimizer.zero_grad()
        functional.binary_cross_entropy_with_logits(logits(columns), labels).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    with torch.no_grad():
        return _correctness(logits(codes(test)).double().numpy(), test.second)


Ints = NDArray[np.int64]
Columns = NDArray[np.int32]

_BUCKETS = 2**22  # buckets of hashed features; a power of two
_TEXTS_AT_ONCE = 2_000
_FACTORS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], dtype=np.uint64)


class WordSets:
    """Features of texts for the logistic regressions: all sets of 1 to `count` of a text's words; `count` is at most 3.

    A text is given by the sorted ids of its distinct words. Each set is hashed to one of four million buckets. To save
    time, since each training step updates all weights, only buckets that occur in training have a column of the feature
    matrix. All other buckets share column 0, whose weight stays 0.
    """

    def __init__(self, texts: Sequence[Ints], count: int) -> None:
        self._count = count
        numbers: dict[bytes, int] = {}
        self._row_of = [numbers.setdefault(words.tobytes(), len(numbers)) for words in texts]
        self._rows = _buckets_of_sets([np.frombuffer(words, np.int64) for words in numbers], count)
        reached = np.zeros(_BUCKETS, dtype=np.bool_)
        for row in self._rows:
            reached[row] = True
        self._column_of: Columns = np.where(reached, reached.cumsum(), 0).astype(np.int32)
        self._columns = int(reached.sum()) + 1
        for row in self._rows:
            row[:] = self._column_of[row]

    def matrix(self, items: Sequence[int] | Ints):  # type: ignore[no-untyped-def]  # scipy has no types
        """Return the feature matrix of the given training texts, sparse (items, columns), with rows of unit length."""
        return _sparse([self._rows[self._row_of[item]] for item in items], self._columns)

    def matrix_of(self, texts: Sequence[Ints]):  # type: ignore[no-untyped-def]
        """Return the feature matrix of other texts, sparse (texts, columns), with rows of unit length."""
        return _sparse([self._column_of[row] for row in _buckets_of_sets(texts, self._count)], self._columns)


def _sparse(rows: Sequence[Columns], columns: int):  # type: ignore[no-untyped-def]
    from scipy.sparse import csr_matrix

    lengths = np.array([len(row) for row in rows])
    values = np.repeat(1 / np.sqrt(np.maximum(lengths, 1)), lengths)
    starts = np.concatenate(([0], np.cumsum(lengths)))
    # Both index arrays need the same type, otherwise scipy copies the columns.
    starts = starts.astype(np.int32) if starts[-1] <= np.iinfo(np.int32).max else starts
    return csr_matrix((values, np.concatenate(rows), starts), shape=(len(rows), columns))


def _buckets_of_sets(texts: Sequence[Ints], count: int) -> list[Columns]:
    """Return the hash buckets of all sets of 1 to `count` words in each text, ordered by size of the set."""
    rows: list[Columns] = [np.zeros(0, np.int32)] * len(texts)
    # Texts of one length are hashed at once; a text without words has no sets.
    for length, alike in indices_by(len(words) or None for words in texts).items():
        for start in range(0, len(alike), _TEXTS_AT_ONCE):
            numbers = alike[start : start + _TEXTS_AT_ONCE]
            stacked = np.array([texts[number] for number in numbers], dtype=np.uint64)
            hashed = np.concatenate([_hashed_sets(stacked, size) for size in range(1, min(count, length) + 1)], axis=1)
            for number, row in zip(numbers, hashed, strict=True):
                rows[number] = row
    return rows


def _hashed_sets(words: NDArray[np.uint64], size: int) -> Columns:
    """Return the hash buckets, (N, S), of all S sets of `size` words in each of N texts; `words` is (N, W)."""
    places = _sets_of(words.shape[1], size)
    mixed = np.zeros((len(words), len(places)), dtype=np.uint64)
    for column, factor in zip(places.T, _FACTORS, strict=False):
        mixed ^= words[:, column] + np.uint64(1)
        mixed *= factor
        mixed ^= mixed >> np.uint64(29)
    return (mixed & np.uint64(_BUCKETS - 1)).astype(np.int32)


@lru_cache(maxsize=256)
def _sets_of(count: int, size: int) -> Ints:
    return np.array(list(combinations(range(count), size)))

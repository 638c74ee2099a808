from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.linear_model import SGDClassifier

from anaphora.analysis.scores.baselines import order_models
from anaphora.analysis.scores.baselines.order_models import WordSets

BUCKETS = 2**22
FACTORS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)


def bucket(words: tuple[int, ...]) -> int:
    mixed = 0
    for word, factor in zip(words, FACTORS, strict=False):
        mixed = ((mixed ^ (word + 1)) * factor) % 2**64
        mixed ^= mixed >> 29
    return mixed % BUCKETS


def every_bucket(texts: list[NDArray[np.int64]], count: int) -> csr_matrix:
    """Return the features by their definition, with a column for every bucket and without caching."""
    rows = [
        [bucket(words) for size in range(1, count + 1) for words in combinations(text.tolist(), size)] for text in texts
    ]
    values = [1 / np.sqrt(len(row)) for row in rows for _ in row]
    starts = np.cumsum([0, *map(len, rows)])
    return csr_matrix((values, [each for row in rows for each in row], starts), shape=(len(texts), BUCKETS))


def texts_of_words(number: int, seed: int) -> list[NDArray[np.int64]]:
    draw = np.random.default_rng(seed)
    return [np.unique(draw.integers(0, 40, draw.integers(1, 9))) for _ in range(number)]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_model_answers_to_the_last_digit_as_one_with_a_weight_for_every_bucket(count: int) -> None:
    known, others = texts_of_words(120, 1) * 2, texts_of_words(30, 2)  # every text twice, as under other names
    second = np.random.default_rng(3).random(len(known)) < 0.5
    sets = WordSets(known, count)
    answers = []
    for features in (sets.matrix(range(len(known))), every_bucket(known, count)):
        model = SGDClassifier(loss="log_loss", alpha=1e-8, learning_rate="constant", eta0=1.0, random_state=0)
        model.partial_fit(features[:200], second[:200], classes=[False, True])
        model.partial_fit(features[200:], second[200:])
        tested = sets.matrix_of(others) if features.shape[1] < BUCKETS else every_bucket(others, count)
        answers.append((model.decision_function(features), model.decision_function(tested)))
    for ours, plain in zip(*answers, strict=True):
        assert np.array_equal(ours, plain)


def test_only_buckets_that_training_reaches_have_columns_and_the_others_share_the_first_one() -> None:
    sets = WordSets([np.array([1, 2]), np.array([2, 3])], 2)
    assert sets.matrix([0, 1, 1]).shape == (3, 6)  # 1, 2, 3, 1 with 2, 2 with 3
    assert sets.matrix([0, 1]).indices.min() > 0
    assert sets.matrix_of([np.array([2, 9])]).indices.tolist()[1:] == [0, 0]


def test_trees_answer_alike_with_all_bins_and_with_words_that_always_come_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known, others = texts_of_words(400, 4), texts_of_words(30, 5)
    more_known, more_others = (
        [np.union1d(text, text[text % 5 == 0] + 100) for text in texts] for texts in (known, others)
    )
    second = np.array([(3 in text) ^ (7 in text) ^ (20 in text) for text in known])
    answers = [
        order_models._boosted_trees(known, others, second),
        order_models._boosted_trees(more_known, more_others, second),
    ]
    monkeypatch.setitem(order_models._TREE_SETTINGS, "max_bins", 255)
    answers.append(order_models._boosted_trees(known, others, second))
    assert np.unique(answers[0]).size > 5
    assert np.array_equal(answers[0], answers[1]) and np.array_equal(answers[0], answers[2])

from __future__ import annotations

import numpy as np
import pytest

from anaphora.analysis.tasks.gap import MIN_WEIGHT, head_features, out_of_fold_probabilities
from anaphora.base.errors import UserError


def test_features_are_log_weights_of_a_candidate_and_of_the_others() -> None:
    forth, back = np.full((1, 1, 2, 3), 0.5, dtype=np.float32), np.zeros((1, 1, 2, 3), dtype=np.float32)
    forth[0, 0, 1] = [0.25, 0.5, 1.0]
    features = head_features(forth, back)
    assert features.shape == (1, 3, 8)
    own, others = features[0, :, :4], features[0, :, 4:]
    np.testing.assert_allclose(own[:, 1], np.log([0.25, 0.5, 1.0]))
    np.testing.assert_allclose(others[0, 1], np.log([0.5, 1.0]).mean())
    np.testing.assert_allclose(own[:, 2:], np.log(MIN_WEIGHT))


def items(count: int, informative: bool) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(1)
    gold = np.eye(2, dtype=np.bool_)[draw.integers(2, size=count)]
    features = draw.normal(size=(count, 2, 6))
    if informative:
        features[:, :, 2] += 2 * gold
    return features, gold


def test_a_probe_finds_the_head_that_tells_and_nothing_where_none_does() -> None:
    folds = [place % 4 for place in range(400)]
    for informative, low, high in ((True, 0.85, 1.0), (False, 0.4, 0.6)):
        features, gold = items(400, informative)
        likely = out_of_fold_probabilities(features, gold, folds)
        right = gold[np.arange(400), likely.argmax(axis=1)].mean()
        assert low < right < high


def test_no_item_is_judged_by_a_reader_that_saw_it() -> None:
    features, gold = items(80, informative=False)
    folds = [place % 2 for place in range(80)]
    before = out_of_fold_probabilities(features, gold, folds)
    gold[0] = ~gold[0]  # an item's own label changes the other fold's reader alone
    after = out_of_fold_probabilities(features, gold, folds)
    assert np.array_equal(before[::2], after[::2])
    assert not np.array_equal(before[1::2], after[1::2])


def test_too_few_items_for_the_probe_are_told() -> None:
    features, gold = np.zeros((6, 2, 3)), np.array([[True, False]] * 6)
    with pytest.raises(UserError, match="3 items outside fold 0; the probe"):
        out_of_fold_probabilities(features, gold, [0, 1] * 3)
    with pytest.raises(UserError, match="with names that are antecedents"):
        out_of_fold_probabilities(features, np.zeros_like(gold), list(range(6)))

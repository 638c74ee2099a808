"""Importance, maps and their correlation, each against a model whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from anaphora.data.vocabulary import of_words
from anaphora.replication.blank_out import (
    MAPS,
    TOKENS,
    correlations,
    importance,
    maps_of_cls,
    right_probability,
    spearman,
)
from anaphora.replication.classifier import Coded, NumberClassifier, Rows, fresh, hide, rows_of, train
from anaphora.replication.number_agreement import VOCABULARY, number_items
from anaphora.replication.settings import Replication
from anaphora.specials import CLS, PADDING, UNKNOWN

TINY = Replication(layers=2, heads=2, width=16, steps=6, batch_tokens=128, sentences=200, items=12)
ITEMS = number_items(TINY.sentences, seed=0)
TOKENIZER = of_words((), VOCABULARY)
CODED = Coded.of(ITEMS, TOKENIZER)
FEW = Coded(CODED.ids[:8], CODED.plural[:8])


@pytest.fixture(scope="module")
def model() -> NumberClassifier:
    found = fresh(TINY, TOKENIZER.size, 0)
    with torch.no_grad():  # large weights, so that attention is far from even
        for weight in found.parameters():
            weight.mul_(6 if weight.dim() > 1 else 1)
    return found


class OneWord(NumberClassifier):
    """Sure of a plural where a certain token stands, undecided elsewhere."""

    def __init__(self, token: int) -> None:
        super().__init__(fresh(TINY, 8, 0).encoder.settings, 8)
        self.token = token

    def forward(self, rows: Rows) -> torch.Tensor:
        there = (rows.ids == self.token).any(dim=1).float()
        return torch.stack((torch.zeros_like(there), 3 * there), dim=1)


def test_every_word_is_one_token_behind_cls() -> None:
    assert all(len(ids) == 1 + len(item.text.split()) for ids, item in zip(CODED.ids, ITEMS, strict=True))
    assert all(ids[0] == CLS and UNKNOWN not in ids for ids in CODED.ids)


def test_only_the_word_that_the_answer_rests_on_is_important() -> None:
    data = Coded([(CLS, 5, 6, 7), (CLS, 5, 7)], torch.tensor([1, 0]))
    first, second = importance(OneWord(6), data)
    sure = 1 / (1 + np.exp(-3.0))
    np.testing.assert_allclose(first, [0, 0, sure - 0.5, 0], atol=1e-6)
    np.testing.assert_allclose(second, np.zeros(3), atol=1e-6)


def test_importance_has_no_sign() -> None:
    (right,) = importance(OneWord(6), Coded([(CLS, 5, 6)], torch.tensor([1])))
    (wrong,) = importance(OneWord(6), Coded([(CLS, 5, 6)], torch.tensor([0])))
    np.testing.assert_allclose(right, wrong)
    assert wrong[2] > 0.4


def test_padding_changes_no_answer(model: NumberClassifier) -> None:
    together = right_probability(model, FEW.ids, FEW.plural)
    alone = [right_probability(model, [ids], [int(plural)])[0] for ids, plural in zip(FEW.ids, FEW.plural, strict=True)]
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_the_raw_row_is_the_weight_of_cls_and_every_row_sums_to_one(model: NumberClassifier) -> None:
    ids = FEW.ids[0]
    found = maps_of_cls(model, ids)
    rows = rows_of([ids])
    with torch.no_grad():
        whole = [layer[0].mean(dim=0) for layer in model.encoder.maps(rows.ids, rows.places, rows.segments)]
    np.testing.assert_allclose(found["raw"], torch.stack(whole)[:, 0], atol=1e-6)
    second = (whole[1] + torch.eye(len(ids))) / 2 @ ((whole[0] + torch.eye(len(ids))) / 2)
    np.testing.assert_allclose(found["rollout"][1], second[0], atol=1e-6)
    for name in MAPS:
        np.testing.assert_allclose(found[name].sum(axis=1), np.ones(2), atol=1e-5)


def test_at_the_first_layer_the_maps_rank_words_alike_and_cls_apart(model: NumberClassifier) -> None:
    found = correlations(model, FEW, importance(model, FEW), lambda: None)
    assert {key: rows.shape for key, rows in found.items()} == {
        (which, name): (8, 2) for which in TOKENS for name in MAPS
    }
    np.testing.assert_allclose(found["words", "raw"][:, 0], found["words", "rollout"][:, 0])
    np.testing.assert_allclose(found["all", "flow"][:, 0], found["all", "rollout"][:, 0])
    assert not np.allclose(found["all", "raw"][:, 0], found["all", "rollout"][:, 0])


def test_spearman_is_scipys_and_zero_where_nothing_is_ranked() -> None:
    draw = np.random.default_rng(0)
    first, second = draw.integers(0, 4, (5, 9)), draw.normal(size=9)
    expected = [spearmanr(row, second).statistic for row in first]
    np.testing.assert_allclose(spearman(first, np.broadcast_to(second, first.shape)), expected)
    assert spearman(np.ones(4), np.arange(4)) == 0


def test_hiding_leaves_cls_and_padding_and_hides_the_share() -> None:
    rows = rows_of(CODED.ids)
    hidden = hide(rows, 0.3, np.random.default_rng(0))
    words = rows.ids > UNKNOWN
    words &= rows.ids != CLS
    assert float((hidden.ids == UNKNOWN)[words].float().mean()) == pytest.approx(0.3, abs=0.05)
    assert torch.equal(hidden.ids[~words], rows.ids[~words])
    assert (rows.ids == PADDING).any()


def test_training_learns_and_is_the_same_for_the_same_seed() -> None:
    chosen = Replication(**{**vars(TINY), "steps": 20, "learning_rate": 0.02})
    short = Coded(
        [(CLS, 5 + number % 2, 7) for number in range(64)], torch.tensor([number % 2 for number in range(64)])
    )
    before = torch.get_rng_state()
    models = [train(chosen, short, 8, seed, lambda loss: None) for seed in (0, 0, 1)]
    assert torch.equal(before, torch.get_rng_state())
    first, again, other = (one.state_dict()["output.weight"] for one in models)
    assert torch.equal(first, again) and not torch.equal(first, other)
    assert right_probability(models[0], short.ids, short.plural).min() > 0.9

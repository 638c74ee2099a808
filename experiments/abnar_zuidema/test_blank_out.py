"""Tests of importance, maps and correlation with a model whose predictions are known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from torch import Tensor

from anaphora.base.batch import Batch, EncoderInput
from anaphora.data.batches.texts import EncodedTexts
from anaphora.data.tokens.vocabulary import word_vocabulary
from anaphora.model.prediction import EncoderOutput
from anaphora.model.pronoun_model import PronounModel
from anaphora.runs.directory import randomly_initialised
from anaphora.settings.vocabulary import CLS, UNKNOWN
from experiments.abnar_zuidema.blank_out import (
    MAPS,
    TOKEN_SETS,
    blank_out_importance,
    cls_attention_maps,
    correct_probability,
    rank_correlations,
    spearman,
    token_ids,
)
from experiments.abnar_zuidema.number_agreement import VOCABULARY, NumberItem, generate_items
from experiments.abnar_zuidema.number_model import encode_items, run_settings
from experiments.abnar_zuidema.settings import Replication

TINY = Replication(layers=2, heads=2, width=16, steps=6, batch_tokens=128, sentences=200, items=12)
ITEMS = generate_items(TINY.sentences, seed=0)
TOKENIZER = word_vocabulary((), VOCABULARY)


@pytest.fixture(scope="module")
def few(corpus_cache: object) -> EncodedTexts:
    return encode_items(ITEMS[:8], TOKENIZER)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> PronounModel:
    config = run_settings(TINY, tmp_path_factory.mktemp("unread") / "sentences.jsonl", 0)
    random = randomly_initialised(config, TOKENIZER.size, 0)
    with torch.no_grad():  # large weights, so that attention is far from even
        for weight in random.parameters():
            weight.mul_(6 if weight.dim() > 1 else 1)
    return random


@pytest.fixture
def one_word(model: PronounModel, monkeypatch: pytest.MonkeyPatch) -> PronounModel:
    """Return a model that predicts a plural with certainty after "lamps", and equal probabilities otherwise."""
    (token,) = TOKENIZER.encode_batch(["lamps"])[0].ids[1:]

    def scores(output: EncoderOutput, batch: Batch) -> Tensor:
        plural = 3.0 * (batch.inputs == token).any(dim=1).float()
        return torch.stack((torch.zeros_like(plural), plural, torch.full_like(plural, -torch.inf)), dim=1)

    monkeypatch.setattr(model.prediction_head, "scores", scores)
    return model


def item(text: str, plural: bool) -> NumberItem:
    return NumberItem(text, plural, subject=0, attractors=0, template="")


def test_every_word_is_one_token_behind_cls() -> None:
    for ids, sentence in zip(token_ids(encode_items(ITEMS, TOKENIZER)), ITEMS, strict=True):
        assert len(ids) == 1 + len(sentence.text.split())
        assert ids[0] == CLS
        assert UNKNOWN not in ids


def test_only_the_word_that_the_prediction_rests_on_is_important(one_word: PronounModel) -> None:
    data = encode_items([item("the lamps still", True), item("the lamp", False)], TOKENIZER)
    first, second = blank_out_importance(one_word, data)
    sure = 1 / (1 + np.exp(-3.0))
    np.testing.assert_allclose(first, [0, 0, sure - 0.5, 0], atol=1e-6)
    np.testing.assert_allclose(second, np.zeros(3), atol=1e-6)


def test_importance_has_no_sign(one_word: PronounModel) -> None:
    right, wrong = (
        blank_out_importance(one_word, encode_items([item("the lamps", plural)], TOKENIZER))[0]
        for plural in (True, False)
    )
    np.testing.assert_allclose(right, wrong)
    assert wrong[2] > 0.4


def test_padding_changes_no_prediction(model: PronounModel, few: EncodedTexts) -> None:
    alone = [correct_probability(model, encode_items([sentence], TOKENIZER))[0] for sentence in ITEMS[:8]]
    np.testing.assert_allclose(correct_probability(model, few), alone, atol=1e-5)


def test_the_raw_row_is_the_weight_of_cls_and_every_row_sums_to_one(model: PronounModel, few: EncodedTexts) -> None:
    ids = token_ids(few)[0]
    maps = cls_attention_maps(model, ids)
    tokens = torch.tensor([ids])
    sentence = EncoderInput(tokens, torch.arange(len(ids))[None], torch.zeros_like(tokens))
    with torch.no_grad():
        layers = [layer[0].mean(dim=0) for layer in model.encoder.maps(sentence)]
    np.testing.assert_allclose(maps["raw"], torch.stack(layers)[:, 0], atol=1e-6)
    second = (layers[1] + torch.eye(len(ids))) / 2 @ ((layers[0] + torch.eye(len(ids))) / 2)
    np.testing.assert_allclose(maps["rollout"][1], second[0], atol=1e-6)
    for name in MAPS:
        np.testing.assert_allclose(maps[name].sum(axis=1), np.ones(2), atol=1e-5)


def test_at_the_first_layer_the_maps_rank_words_alike_and_cls_apart(model: PronounModel, few: EncodedTexts) -> None:
    correlations = rank_correlations(model, few, blank_out_importance(model, few), lambda: None)
    assert {key: rows.shape for key, rows in correlations.items()} == {
        (tokens, name): (8, 2) for tokens in TOKEN_SETS for name in MAPS
    }
    np.testing.assert_allclose(correlations["words", "raw"][:, 0], correlations["words", "rollout"][:, 0])
    np.testing.assert_allclose(correlations["all", "flow"][:, 0], correlations["all", "rollout"][:, 0])
    assert not np.allclose(correlations["all", "raw"][:, 0], correlations["all", "rollout"][:, 0])


def test_spearman_is_scipys_and_zero_where_nothing_is_ranked() -> None:
    draw = np.random.default_rng(0)
    first, second = draw.integers(0, 4, (5, 9)), draw.normal(size=9)
    expected = [spearmanr(row, second).statistic for row in first]
    np.testing.assert_allclose(spearman(first, np.broadcast_to(second, first.shape)), expected)
    assert spearman(np.ones(4), np.arange(4)) == 0

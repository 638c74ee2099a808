"""Tests that generated sentences have the requested lengths."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from anaphora.base.errors import UserError
from anaphora.data import store
from anaphora.settings.data import ControlledCorpus
from benchmarks.speed import layouts
from benchmarks.speed.sentences import LONG_TOKENS, MAX_TOKENS, MIN_WORDS, VOCABULARY, draw_lengths, generate_sentences


def test_a_sentence_has_as_many_tokens_as_asked_and_one_pronoun_token() -> None:
    lengths = np.array([MIN_WORDS, 7, MAX_TOKENS])
    data = generate_sentences(lengths, np.random.default_rng(0))
    assert data.ids.lengths.tolist() == lengths.tolist()
    assert data.queries.lengths.tolist() == [1, 1, 1]


def test_the_vocabulary_is_as_large_as_set() -> None:
    assert generate_sentences(np.array([4]), np.random.default_rng(0)).vocabulary == VOCABULARY


def test_padded_batches_of_the_lognormal_mix_are_a_quarter_real_tokens() -> None:
    lengths = draw_lengths("lognormal", 64 * 30, np.random.default_rng(0))
    padded = sum(64 * max(lengths[row[0]] for row in batch) for batch in layouts.in_arrival_order(lengths, 64))
    assert np.median(lengths) == pytest.approx(24, abs=1.5)
    assert lengths.max() == MAX_TOKENS
    assert lengths.sum() / padded == pytest.approx(0.25, abs=0.03)


def test_the_corpus_mix_has_the_lengths_of_the_corpus(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANAPHORA_CACHE", str(tmp_path))
    small = store.load(ControlledCorpus(languages=["en"], train_items=200, test_items=40))
    monkeypatch.setattr(store, "load", lambda settings: small)
    words = [len(example.text.split()) for example in small.examples("train")]
    lengths = draw_lengths("corpus", 500, np.random.default_rng(0))
    assert np.median(lengths) == pytest.approx(np.median(words) + 2, abs=2)  # [CLS] and the full stop are tokens too


def test_long_texts_are_all_of_one_length() -> None:
    assert set(draw_lengths("long", 3, np.random.default_rng(0)).tolist()) == {LONG_TOKENS}


def test_an_unknown_mix_is_refused() -> None:
    with pytest.raises(UserError, match=r"'even'.*lognormal, corpus, long"):
        draw_lengths("even", 3, np.random.default_rng(0))

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.maps.words import (
    SPECIAL,
    mention_mass,
    word_columns,
    word_labels,
    word_map,
    word_roles,
    word_tokens,
    word_weights,
)
from anaphora.data.example import Example, Span

TEXT = "The kitten's mother slept because she was tired."
KITTEN, MOTHER, SHE = (4, 10), (13, 19), (34, 37)


def record(
    spans: Sequence[Span],
    words: Sequence[int],
    weights: Sequence[float],
    candidates: tuple[tuple[Span, ...], ...] = ((KITTEN,), (MOTHER,)),
) -> AttentionRecord:
    example = Example(text=TEXT, language="en", pronoun=SHE, candidates=candidates, antecedents=(1,))
    return AttentionRecord(example, tuple(spans), tuple(words), np.array(weights, dtype=np.float32).reshape(1, 1, -1))


def test_roles_are_words_and_special_tokens_count() -> None:
    one = record([(0, 0), (4, 7), (7, 10), (13, 19), (34, 37)], [-1, 0, 0, 1, 2], [0.2] * 5)
    assert word_roles(one.example, word_weights(one).spans) == ([3], [[2]], [[1]])


def test_a_word_is_written_as_in_the_text_and_weighs_the_sum_of_its_pieces() -> None:
    spans = [(0, 0), (0, 3), (4, 7), (7, 10), (13, 19), (0, 0)]
    row = word_weights(record(spans, [-1, 0, 1, 1, 2, -1], [0.1, 0.2, 0.05, 0.15, 0.4, 0.1]))
    assert row.words == (SPECIAL, "The", "kitten", "mother", SPECIAL)
    assert row.spans == ((0, 0), (0, 3), (4, 10), (13, 19), (0, 0))
    np.testing.assert_allclose(row.weights[0, 0], [0.1, 0.2, 0.2, 0.4, 0.1], rtol=1e-6)


def test_the_tokens_of_a_word_are_those_of_its_column_with_a_special_token_between_them() -> None:
    words = [0, 1, 1, 2, 3, -1, 3, -1, 4]
    assert word_columns(words) == [0, 1, 1, 2, 3, 4, 3, 5, 6]
    assert word_tokens(words) == [[0], [1, 2], [3], [4, 6], [5], [7], [8]]


def test_a_special_token_has_its_own_name_where_it_is_known() -> None:
    spans, words = [(0, 0), (0, 3), (0, 0), (4, 10), (0, 0)], [-1, 0, -1, 1, -1]
    named = replace(record(spans, words, [0.2] * 5), special=("<s>", "▁", "</s>"))
    assert word_weights(named).words == ("<s>", "The", "▁", "kitten", "</s>")
    assert word_labels(TEXT, spans, ["[CLS]"]) == ("[CLS]", "The", SPECIAL, "kitten", SPECIAL)


@given(st.lists(st.sampled_from([-1, 0, 1]), min_size=1, max_size=12), st.integers(0, 2**32 - 1))
def test_merging_sub_words_keeps_the_sum_of_every_row(steps: list[int], seed: int) -> None:
    words: list[int] = []
    current = -1
    for step in steps:  # -1: a special token; 0: another piece of the same word; 1: a new word
        current = max(current + max(step, 0), 0)
        words.append(current if step >= 0 else -1)
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(words)), size=(2, 3, len(words))).astype(np.float32)
    merged = word_map(weights, words)
    count = len({word for word in words if word >= 0}) + words.count(-1)
    assert merged.shape == (2, 3, count, count)
    np.testing.assert_allclose(merged.sum(axis=-1), 1, rtol=1e-5)


def test_a_map_is_summed_over_attended_and_averaged_over_attending_tokens() -> None:
    weights = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8], [0.0, 0.4, 0.6]], dtype=np.float32)[None, None]
    merged = word_map(weights, [0, 0, 1])
    np.testing.assert_allclose(merged[0, 0], [[(0.8 + 0.2) / 2, (0.2 + 0.8) / 2], [0.4, 0.6]], rtol=1e-6)


def test_a_map_of_another_size_is_refused_with_the_size_expected() -> None:
    with pytest.raises(ValueError, match=r"\(L, H, 2, 2\)"):
        word_map(np.zeros((1, 1, 3, 3), dtype=np.float32), [0, 1])


def test_mass_is_summed_over_all_mentions_and_counts_a_token_once() -> None:
    candidates: tuple[tuple[Span, ...], ...] = (
        ((4, 7), (8, 10), (20, 25)),
        (MOTHER,),
    )  # two spans of one mention fall into the token "kitten"
    sentence = record([(4, 10), (13, 19), (20, 25)], [0, 1, 2], [0.5, 0.2, 0.3], candidates)
    np.testing.assert_allclose(mention_mass(sentence)[0, 0], [0.8, 0.2], rtol=1e-6)


def test_a_token_across_two_mentions_is_shared_by_characters() -> None:
    sentence = record([(0, 7), (7, 15), (15, 25)], [0, 1, 2], [0.1, 0.5, 0.4])
    # "ten's mo": three characters of the kitten, two of the mother
    np.testing.assert_allclose(mention_mass(sentence)[0, 0], [0.1 + 0.5 * 3 / 5, 0.5 * 2 / 5 + 0.4], rtol=1e-6)


def test_a_mention_without_a_token_has_no_mass() -> None:
    sentence = record([(0, 3), (4, 10)], [0, 1], [0.25, 0.75])
    assert mention_mass(sentence)[0, 0].tolist() == [0.75, 0.0]

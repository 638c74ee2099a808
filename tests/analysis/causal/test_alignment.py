from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anaphora.analysis.causal.patching import align_rows

SENTENCES = st.lists(st.integers(0, 5), min_size=1, max_size=9)


def row(*weights: float) -> np.ndarray:
    return np.array([weights], dtype=np.float32)


def test_sentences_of_the_same_words_take_the_row_as_it_is() -> None:
    rows = row(0.1, 0.2, 0.3, 0.4)
    assert np.array_equal(align_rows(rows, [1, 2, 3, 4], [1, 2, 3, 4]), rows)


def test_a_passive_takes_the_row_of_an_active() -> None:
    active, passive = [10, 1, 11, 5, 6], [10, 2, 3, 4, 11, 5, 6]  # Anna helped Emma / Anna was helped by Emma
    laid = align_rows(row(0.5, 0.3, 0.1, 0.06, 0.04), active, passive)
    assert laid[0] == pytest.approx([0.5, 0.1, 0.1, 0.1, 0.1, 0.06, 0.04])


def test_an_active_takes_the_row_of_a_passive() -> None:
    laid = align_rows(row(0.5, 0.1, 0.15, 0.05, 0.1, 0.06, 0.04), [10, 2, 3, 4, 11, 5, 6], [10, 1, 11, 5, 6])
    assert laid[0] == pytest.approx([0.5, 0.3, 0.1, 0.06, 0.04])


def test_what_lay_on_words_that_are_gone_goes_to_the_others_in_proportion() -> None:
    assert align_rows(row(0.6, 0.2, 0.2), [1, 9, 2], [1, 2])[0] == pytest.approx([0.75, 0.25])


@given(SENTENCES, SENTENCES, st.integers(0, 1000))
def test_a_row_keeps_its_sum_where_a_word_is_common_or_replaced(lender: list[int], taker: list[int], seed: int) -> None:
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(lender)), size=2).astype(np.float32)
    laid = align_rows(weights, lender, taker)
    assert laid.shape == (2, len(taker)) and (laid >= 0).all()
    assert laid.sum(axis=-1) == pytest.approx(np.ones(2), abs=1e-5)

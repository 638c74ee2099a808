from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from anaphora.analysis.maps.record import AttentionRecord, from_arrays
from anaphora.base.errors import UserError
from anaphora.data.example import Example, Span

TEXT = "Ann saw Eve when she left"
SPANS = ((0, 0), (0, 3), (4, 7), (8, 11), (12, 16), (17, 20), (21, 25))
WORDS = (-1, 0, 1, 2, 3, 4, 5)
ANN, EVE, SHE = SPANS[1], SPANS[3], SPANS[5]
EXAMPLE = Example(text=TEXT, language="en", pronoun=SHE, candidates=((ANN,), (EVE,)), antecedents=(0,))


def even(layers: int = 2, heads: int = 3, tokens: int = 7) -> NDArray[np.float32]:
    return np.full((layers, heads, tokens), 1 / tokens, dtype=np.float32)


def changed(layer: int, head: int, token: int, value: float) -> NDArray[np.float32]:
    weights = even()
    weights[layer, head, token] = value
    return weights


@pytest.mark.parametrize(
    ("spans", "words", "weights", "message"),
    [
        (SPANS, WORDS, even(tokens=6), r"weights: the shape is \(2, 3, 6\); expected \(layers, heads, 7\)"),
        (SPANS, WORDS, even()[0], r"weights: the shape is \(3, 7\); expected \(layers, heads, 7\)"),
        (SPANS, WORDS, np.zeros((0, 3, 7)), r"weights: the shape is \(0, 3, 7\)"),
        (SPANS, WORDS, np.ones((1, 1, 7), dtype=np.int64), "weights: the type is int64; expected floating-point"),
        (SPANS, WORDS[:-1], even(), "words: there are 6; expected 7"),
        ((*SPANS[:-1], (21, 26)), WORDS, even(), r"spans\[6\]: \[21, 26\] must be .* <= 25, the text's length"),
        (SPANS, (0, *WORDS[1:]), even(), r"words\[0\]: 0 at span \[0, 0\]; expected -1"),
        (SPANS, (-1, -1, *WORDS[2:]), even(), r"words\[1\]: -1 at span \[0, 3\]; expected"),
        (SPANS, (-1, 0, 1, 2, 3, 2, 5), even(), r"words\[5\]: 2 comes after 3; expected numbers that never decrease"),
        (SPANS, WORDS, changed(1, 2, 3, np.nan), "layer 1 head 2 token 3 is nan; expected finite numbers"),
        (SPANS, WORDS, changed(1, 2, 3, np.inf), "layer 1 head 2 token 3 is inf; expected finite numbers"),
        (
            SPANS,
            WORDS,
            changed(0, 1, 2, 0.2),
            "layer 0 head 1 sums to 1.057; expected 1 within 0.001, or a row of zeros",
        ),
    ],
)
def test_parts_that_do_not_fit_are_refused_with_what_was_expected(
    spans: tuple[Span, ...], words: tuple[int, ...], weights: NDArray[np.float32], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        AttentionRecord(EXAMPLE, spans, words, weights)


def test_a_negative_weight_is_refused_even_where_the_row_sums_to_one() -> None:
    weights = even()
    weights[0, 0, :2] = (2 / 7 + 0.1, -0.1)
    with pytest.raises(UserError, match=r"layer 0 head 0 token 1 is -0\.1.*; expected finite numbers, 0 or more"):
        AttentionRecord(EXAMPLE, SPANS, WORDS, weights)


def test_the_row_of_a_ablated_head_may_be_all_zero() -> None:
    weights = even()
    weights[1, 2] = 0
    assert AttentionRecord(EXAMPLE, SPANS, WORDS, weights).weights[1, 2].sum() == 0


def test_whole_maps_give_the_mean_over_the_pronouns_tokens() -> None:
    maps = np.random.default_rng(0).dirichlet(np.ones(8), size=(2, 3, 8))
    spans = [*SPANS[:5], (17, 19), (19, 20), (21, 25)]
    record = from_arrays(TEXT, spans, maps, SHE, [ANN, EVE], [0], language="en")
    np.testing.assert_allclose(record.weights, (maps[:, :, 5] + maps[:, :, 6]) / 2, rtol=1e-6)
    assert record.weights.dtype == np.float32
    assert record.words == (-1, 0, 1, 2, 3, 4, 4, 5)


def test_rows_are_taken_as_they_are_and_blanks_in_tokens_do_not_matter() -> None:
    spans = [(0, 3), (3, 7), (7, 11), (11, 16), (16, 20), (20, 25), (25, 25)]
    record = from_arrays(
        TEXT, spans, even(), SHE, [[ANN], [EVE]], [1], language="en", minimal_pair="t", factors={"type": "x"}
    )
    assert record.spans == (*SPANS[1:], (0, 0))
    assert record.words == (0, 1, 2, 3, 4, 5, -1)
    assert (record.example.minimal_pair, record.example.factors["type"]) == ("t", "x")


def test_given_word_numbers_are_kept() -> None:
    record = from_arrays(TEXT, SPANS, even(), SHE, [ANN, EVE], [0], language="en", words=(7, 0, 0, 1, 1, 2, 3))
    assert record.words == (-1, 0, 0, 1, 1, 2, 3)


def test_candidates_may_come_in_any_order() -> None:
    record = from_arrays(TEXT, SPANS, even(), SHE, [EVE, ANN], [1], language="en")
    assert record.example.candidates == ((ANN,), (EVE,))
    assert record.example.antecedents == (0,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": np.zeros((2, 3, 7, 6))}, r"weights: .* expected \(layers, heads, 7, 7\)"),
        (
            {"spans": [*SPANS[:5], (0, 0), (21, 25)], "weights": np.full((1, 1, 7, 7), 1 / 7)},
            "pronoun: no token overlaps",
        ),
        ({"spans": [*SPANS[:6], (21, 99)]}, r"spans\[6\]: \[21, 99\] must be"),
        ({"words": [0, 1]}, "words: there are 2; expected 7"),
        ({"antecedents": [2]}, "antecedents: 2 is not a candidate"),
        ({"language": "fr"}, "language: 'fr' must be one of"),
    ],
)
def test_arrays_that_do_not_fit_are_refused_with_what_was_expected(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"spans": SPANS, "weights": even(), "antecedents": [0], "language": "en"} | change
    with pytest.raises(UserError, match=message):
        from_arrays(text=TEXT, pronoun=SHE, candidates=[ANN, EVE], **arguments)

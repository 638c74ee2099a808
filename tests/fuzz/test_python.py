"""Tests that any arguments of the Python interface yield a correct result or a one-line error, never a traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cases import cases, plain_values, result_or_one_line
from hypothesis import example, given
from hypothesis import strategies as draw

import anaphora
from anaphora.analysis.maps.of_torch import encoder_maps, maps_of_layers
from anaphora.analysis.maps.record import AttentionRecord, from_arrays
from anaphora.api import OpenRun
from anaphora.base.language import LANGUAGES

TEXT = "Anna met Berta because she was free."
SPANS = [(0, 0), (0, 4), (5, 8), (9, 14), (15, 22), (23, 26), (27, 30), (31, 35), (35, 36)]
MAPS = np.full((2, 2, 9, 9), 1 / 9, dtype=np.float32)
ARRAYS: tuple[Any, ...] = (
    *(np.array(1.5), np.zeros(0), np.zeros((2, 3)), np.zeros((1, 2, 3, 3)), np.array(["a"]), np.array([None])),
    *(
        np.int64(3),
        np.uint8(0),
        np.float32(2),
        np.bool_(True),
        np.datetime64("2020-01-01"),
        np.array([[0, 4], [9, 14]]),
    ),
    *(np.ma.masked_array([0, 4], [True, False]), MAPS, MAPS[0], MAPS.astype(np.float16), MAPS.astype(complex)),
    *(torch.tensor(1.0), torch.zeros(0), torch.from_numpy(MAPS).to(torch.bfloat16), torch.zeros(2, 9, 9).long()),
    *(torch.full((1, 2, 9, 9), float("nan")), torch.ones(2, 2, 3, 4, requires_grad=True), torch.ones(2, 2).to_sparse()),
    *([torch.from_numpy(MAPS[0])] * 2, [torch.zeros(2), torch.zeros(3)], [MAPS, None], [[0.5], [0.5, 0.5]], range(3)),
    *(b"she", object, object(), 1j, {1, 2}, iter([1]), Path("x"), float, slice(2), Ellipsis),
)
"""Python values that no file can represent."""
anything = draw.one_of(draw.sampled_from(ARRAYS), plain_values())
NAMES = ("text", "spans", "weights", "pronoun", "candidates", "antecedents", "language", "words", "group", "factors")


def record(**changes: Any) -> AttentionRecord | None:
    right = {"text": TEXT, "spans": SPANS, "weights": MAPS, "pronoun": [23, 26], "candidates": [[0, 4], [9, 14]]}
    return result_or_one_line(lambda: from_arrays(**{**right, "antecedents": [0], "language": "en", **changes}))


@cases(share=0.05, quick=300)
@given(draw.sampled_from(NAMES), anything)
@example("weights", None)
@example("words", np.array([-1, 0, 1, 2, 3, 4, 5, 6, 7]))
@example("weights", torch.from_numpy(MAPS).to(torch.bfloat16))
def test_from_arrays_gives_a_record_that_holds_or_one_line(name: str, value: Any) -> None:
    made = record(**{name: value})
    if made is not None:
        assert made.weights.shape[2] == len(made.spans) == len(made.words)
        np.testing.assert_allclose(made.weights.sum(axis=2), 1, atol=0.01)


@pytest.mark.parametrize("kind", [list, tuple, np.array, torch.tensor])
def test_lists_arrays_and_tensors_give_the_same_record(kind: Callable[[Any], Any]) -> None:
    listed = record()
    made = record(
        spans=kind(SPANS), pronoun=kind([23, 26]), candidates=kind([[0, 4], [9, 14]]), antecedents=kind([0]),
        weights=torch.from_numpy(MAPS) if kind is torch.tensor else MAPS.tolist(),
    )  # fmt: skip
    assert listed is not None and made is not None
    assert (made.example, made.spans, made.words) == (listed.example, listed.spans, listed.words)
    np.testing.assert_array_equal(made.weights, listed.weights)


@cases(share=0.05, quick=300)
@given(anything, draw.one_of(draw.integers(-2, 3), anything), draw.one_of(draw.integers(-2, 11), anything))
@example([torch.from_numpy(MAPS)], 5, None)
@example([MAPS, MAPS], 0, 4)
@example(None, 0, None)
@example(torch.zeros(2, 1, 2, 9, 9), 0, None)
def test_maps_of_layers_are_finite_squares_or_one_line(layers: Any, sentence: Any, tokens: Any) -> None:
    for these in (layers, [torch.from_numpy(MAPS), layers], [torch.from_numpy(MAPS)]):
        maps = result_or_one_line(lambda these=these: maps_of_layers(these, sentence, tokens))  # type: ignore[misc]
        if maps is not None:
            assert maps.ndim == 4 and maps.shape[2] == maps.shape[3] and np.isfinite(maps).all()
            assert maps.dtype == np.float32


ENCODER = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)


@cases(share=0.01, quick=60)
@given(anything)
@example(torch.zeros(1, 3, 7))
@example(torch.zeros(1, 3, 8, dtype=torch.bfloat16))
def test_an_encoder_gives_its_maps_or_one_line(value: Any) -> None:
    for encoder, source in ((ENCODER, value), (value, torch.zeros(1, 3, 8))):
        result_or_one_line(lambda encoder=encoder, source=source: encoder_maps(encoder, source))  # type: ignore[misc]


@pytest.fixture(scope="module")
def opened(finished: Path) -> OpenRun:
    return anaphora.load(finished)


@cases(share=0.01, quick=100)
@given(draw.integers(0, 18), anything)
def test_what_is_asked_of_a_run_gives_an_answer_or_one_line(opened: OpenRun, number: int, value: Any) -> None:
    maps = opened.attention(TEXT, "she", ["Anna", "Berta"])
    row = maps.row("she", 0, 0)
    asked: list[Callable[[], Any]] = [
        lambda: anaphora.load(value),
        lambda: anaphora.load("nowhere", device=value),
        lambda: anaphora.attention(value, TEXT),
        lambda: anaphora.attention(opened, value),
        lambda: anaphora.attention(opened, TEXT, value),
        lambda: anaphora.attention(opened, TEXT, "she", value),
        lambda: anaphora.attention(opened, TEXT, "she", ["Anna"], antecedent=value),
        lambda: anaphora.attention(opened, TEXT, by=value),
        lambda: opened.answer(TEXT, "she", value),
        lambda: maps.row(value, 0, 0),
        lambda: maps.row("she", value, 0),
        lambda: maps.map(0, value),
        lambda: maps.rank(value, "Anna"),
        lambda: maps.window("she", value),
        lambda: maps.window(value),
        lambda: row.to(value),
        lambda: row.top(value),
        lambda: maps.page(language=value) if not isinstance(value, str) or value not in LANGUAGES else None,
        lambda: anaphora.score(opened, value, causal_items=0),
    ]
    result_or_one_line(asked[number])

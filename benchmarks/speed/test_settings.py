"""Tests that invalid settings of the benchmark raise errors with the setting's name."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.speed.settings import Benchmark, EncoderSize, parse_size


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"what": "inference"}, "what .'inference'. must be one of training, pretraining, extraction"),
        ({"sizes": ["xl"]}, "sizes .'xl'. must be one of tiny, s, m"),
        ({"sizes": ["64x2x3"]}, "sizes .'64x2x3'.: the width must be an even multiple of the heads"),
        ({"texts": ["pages"]}, "texts .'pages'. must be one of documents, paragraphs"),
        ({"clock": "sun"}, "clock .'sun'. must be one of wall, processor"),
        ({"sizes": []}, "sizes .* must name at least one of tiny, s, m"),
        ({"lengths": ["even"]}, "lengths .'even'. must be one of lognormal, corpus, long"),
        ({"repeats": 0}, "repeats .0. must be at least 1"),
        ({"threads": 0}, "threads .0. must be at least 1"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Benchmark(**wrong)


def test_a_size_may_be_written_out() -> None:
    assert parse_size("256x6x4") == EncoderSize(width=256, heads=4, layers=6, feed_forward=1024)

"""Tests that all layouts have the same sentences and, on average, the same number of real tokens per step."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.speed import layouts
from benchmarks.speed.layouts import BatchLayout
from benchmarks.speed.sentences import draw_lengths

LENGTHS = draw_lengths("lognormal", 1500, np.random.default_rng(0))
LAYOUTS = {
    "arrival": layouts.in_arrival_order(LENGTHS, 64),
    "sorted": layouts.sorted_by_length(LENGTHS, 64),
    "packed": layouts.planned_layout("packed", LENGTHS, 64),
    "buckets": layouts.planned_layout("buckets", LENGTHS, 64),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_every_sentence_stands_in_a_layout_once(layout: BatchLayout) -> None:
    assert sorted(item for batch in layout for row in batch for item in row) == list(range(len(LENGTHS)))


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_a_step_takes_about_as_many_real_tokens_in_every_layout(layout: BatchLayout) -> None:
    assert LENGTHS.sum() / len(layout) == pytest.approx(
        64 * LENGTHS.mean(), rel=0.2
    )  # a window of buckets ends in a mixed batch


def test_sorting_puts_like_lengths_together() -> None:
    longest = [max(LENGTHS[row[0]] for row in batch) for batch in LAYOUTS["sorted"]]
    assert longest == sorted(longest)


def test_the_chosen_batches_are_spread_evenly() -> None:
    assert layouts.evenly_spaced(range(30), 3) == [5, 15, 25]
    assert layouts.evenly_spaced(range(2), 5) == [0, 1]

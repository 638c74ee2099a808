"""Tests of the difference of two runs in correct answers, with an interval over minimal pairs."""

from __future__ import annotations

from experiments.shipped.difference import difference, share

PAIRS = [f"pair {number // 2}" for number in range(40)]


def test_equal_answers_differ_by_nothing() -> None:
    right = [number % 3 == 0 for number in range(40)]
    assert difference(right, right, PAIRS) == "0.0 [0.0, 0.0]"


def test_the_first_run_is_ahead_by_what_it_answers_more() -> None:
    ours, theirs = [True] * 40, [number >= 10 for number in range(40)]
    assert (share(ours), share(theirs)) == (100, 75)
    shown = difference(ours, theirs, PAIRS)
    points, low, high = (float(part.strip("[],")) for part in shown.split())
    assert points == 25
    assert 0 < low < 25 < high < 100

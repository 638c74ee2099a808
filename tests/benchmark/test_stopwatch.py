"""The stopwatch: turns, rates and ratios."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from anaphora.benchmark.stopwatch import (
    OURS,
    PROCESSOR,
    Measured,
    Meter,
    Way,
    held_now,
    meter_of,
    spread_of,
    take_turns,
)


def test_ways_take_turns_after_one_unmeasured_piece_each() -> None:
    done: list[str] = []

    def piece(name: str) -> Callable[[], int]:
        def work() -> int:
            done.append(name)
            return 1

        return work

    ways = [Way(OURS, name, [piece(name + "1"), piece(name + "2")], 0, 1.0) for name in "ab"]
    take_turns(ways, repeats=2)
    assert done == ["a1", "b1", *["a1", "a2", "b1", "b2"] * 2]


def test_a_rate_is_all_units_of_a_repeat_over_its_time() -> None:
    ticks = iter([0.0, 2.0, 5.0, 6.0])
    way = Way(OURS, "way", [lambda: 3, lambda: 5], 0, 1.0)
    (measured,) = take_turns([way], repeats=2, clock=lambda: next(ticks))
    assert measured.rates == (4.0, 8.0)


def test_a_ratio_is_taken_within_each_repeat() -> None:
    way = Way(OURS, "way", [], 0, 1.0)
    # The second repeat ran on a machine half as fast: the ratio does not see it.
    assert Measured(way, (8.0, 4.0)).over(Measured(way, (4.0, 2.0))) == (2.0, 2.0)


def test_the_spread_is_half_the_range_over_the_median() -> None:
    assert spread_of([9.0, 10.0, 13.0]) == pytest.approx(0.2)


def test_the_peak_is_what_was_held_above_what_was_there() -> None:
    if held_now() is None:
        pytest.skip("this system does not tell how much a process holds")

    def work() -> int:
        held = bytearray(50 << 20)
        return len(held)

    (measured,) = take_turns([Way(OURS, "way", [work], 0, 1.0)], repeats=2)
    assert measured.memory is not None
    assert 49 << 20 < measured.memory < 80 << 20


def test_a_device_that_works_on_behind_the_clock_is_waited_for() -> None:
    told: list[str] = []
    held, ticks = iter([100, 100]), iter([0.0, 2.0])

    def clock() -> float:
        told.append("clock")
        return next(ticks)

    def work() -> int:
        told.append("work")
        return 6

    def finish() -> None:
        told.append("wait")

    meter = Meter(held_now=lambda: next(held), held_at_most=lambda: 350, finish=finish)
    (measured,) = take_turns([Way(OURS, "way", [work], 0, 1.0)], repeats=1, clock=clock, meter=meter)
    assert told == ["work", "wait", "clock", "work", "wait", "clock"]  # the first is not measured
    assert (measured.rates, measured.memory) == ((3.0,), 250)


def test_a_gpu_is_waited_for_and_its_own_memory_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert meter_of(torch.device("cpu")) is PROCESSOR
    told: list[str] = []

    def noting(name: str, found: int | None) -> Callable[[object], int | None]:
        def called(_: object) -> int | None:
            told.append(name)
            return found

        return called

    for name, found in (
        ("synchronize", None),
        ("reset_peak_memory_stats", None),
        ("memory_allocated", 3),
        ("max_memory_allocated", 7),
    ):
        monkeypatch.setattr(torch.cuda, name, noting(name, found))
    meter = meter_of(torch.device("cuda"))
    meter.finish()
    assert (meter.held_now(), meter.held_at_most()) == (3, 7)
    assert told == ["synchronize", "reset_peak_memory_stats", "memory_allocated", "max_memory_allocated"]

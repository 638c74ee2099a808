"""Tests of the order of repeats, rates and ratios."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from benchmarks.speed.stopwatch import (
    CPU_METER,
    OURS,
    DeviceMeter,
    Measurement,
    Variant,
    measure_interleaved,
    meter_of,
    relative_half_range,
    reset_peak_memory,
)


def test_ways_take_turns_after_one_unmeasured_piece_each() -> None:
    done: list[str] = []

    def piece(name: str) -> Callable[[], int]:
        def work() -> int:
            done.append(name)
            return 1

        return work

    ways = [Variant(OURS, name, [piece(name + "1"), piece(name + "2")], 0, 1.0) for name in "ab"]
    measure_interleaved(ways, repeats=2)
    assert done == ["a1", "b1", *["a1", "a2", "b1", "b2"] * 2]


def test_a_rate_is_all_units_of_a_repeat_over_its_time() -> None:
    ticks = iter([0.0, 2.0, 5.0, 6.0])
    way = Variant(OURS, "way", [lambda: 3, lambda: 5], 0, 1.0)
    (measured,) = measure_interleaved([way], repeats=2, clock=lambda: next(ticks))
    assert measured.rates == (4.0, 8.0)


def test_a_ratio_is_taken_within_each_repeat() -> None:
    way = Variant(OURS, "way", [], 0, 1.0)
    # The second repeat ran on a machine half as fast: the ratio does not see it.
    assert Measurement(way, (8.0, 4.0)).over(Measurement(way, (4.0, 2.0))) == (2.0, 2.0)


def test_the_spread_is_half_the_range_over_the_median() -> None:
    assert relative_half_range([9.0, 10.0, 13.0]) == pytest.approx(0.2)


def test_the_peak_is_what_was_held_above_what_was_there() -> None:
    if reset_peak_memory() is None:
        pytest.skip("this system does not tell how much a process holds")

    def work() -> int:
        held = bytearray(50 << 20)
        return len(held)

    (measured,) = measure_interleaved([Variant(OURS, "way", [work], 0, 1.0)], repeats=2)
    assert measured.memory is not None
    assert 49 << 20 < measured.memory < 80 << 20


def test_a_device_that_works_on_behind_the_clock_is_waited_for() -> None:
    calls: list[str] = []
    held, ticks = iter([100, 100]), iter([0.0, 2.0])

    def clock() -> float:
        calls.append("clock")
        return next(ticks)

    def work() -> int:
        calls.append("work")
        return 6

    def finish() -> None:
        calls.append("wait")

    meter = DeviceMeter(reset_peak=lambda: next(held), read_peak=lambda: 350, finish=finish)
    (measured,) = measure_interleaved([Variant(OURS, "way", [work], 0, 1.0)], repeats=1, clock=clock, meter=meter)
    assert calls == ["work", "wait", "clock", "work", "wait", "clock"]  # the first is not measured
    assert (measured.rates, measured.memory) == ((3.0,), 250)


def test_a_gpu_is_waited_for_and_its_own_memory_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert meter_of(torch.device("cpu")) is CPU_METER
    calls: list[str] = []

    def noting(name: str, value: int | None) -> Callable[[object], int | None]:
        def called(_: object) -> int | None:
            calls.append(name)
            return value

        return called

    for name, value in (
        ("synchronize", None),
        ("reset_peak_memory_stats", None),
        ("memory_allocated", 3),
        ("max_memory_allocated", 7),
    ):
        monkeypatch.setattr(torch.cuda, name, noting(name, value))
    meter = meter_of(torch.device("cuda"))
    meter.finish()
    assert (meter.reset_peak(), meter.read_peak()) == (3, 7)
    assert calls == ["synchronize", "reset_peak_memory_stats", "memory_allocated", "max_memory_allocated"]

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from anaphora.analysis.capture import Look
from anaphora.analysis.exhibits import exhibits, maps_of_run
from anaphora.analysis.record import AttentionRecord
from anaphora.analysis.scores import Head, score
from anaphora.analysis.settings import Analysis
from anaphora.analysis.study import Measurement, study
from anaphora.checkpoint import load
from anaphora.data.example import Example
from anaphora.workflow import material_of

Item = tuple[str, str, bool, bool]
SPANS = ((0, 0), (0, 1), (2, 3), (4, 5))


def measurement(items: Sequence[Item], stratum: str = "main", answered: bool = True) -> Measurement:
    """Items of (language, type, whether the answer is right, whether the one head is)."""
    records = []
    for number, (language, cue, _, pointed) in enumerate(items):
        example = Example(
            text=f"a b c {number}",
            language=language,
            pronoun=(4, 5),
            candidates=(((0, 1),), ((2, 3),)),
            antecedents=(0,),
            factors={"type": cue, "stratum": stratum},
        )
        row = [0.1, 0.6, 0.2, 0.1] if pointed else [0.1, 0.2, 0.6, 0.1]
        records.append(AttentionRecord(example, SPANS, (-1, 0, 1, 2), np.array([[row]], dtype=np.float32)))
    right = np.array([each[2] for each in items], dtype=np.float64) if answered else np.full(len(items), np.nan)
    answers = np.where(right > 0.5, 0, 1) if answered else np.full(len(items), -2)
    scores = score(records)
    return Measurement(
        split="test",
        head=Head(0, 0),
        development=scores,
        measured=scores,
        seen=Look(records, answers, right),
        baselines={},
        untrained=np.zeros((0, len(items)), dtype=np.float32),
    )


def maps_of(place: int) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    return {"raw": np.full((1, 1, 4, 4), 0.25, dtype=np.float32)}


def numbers(found: Measurement, most: int, among: Sequence[int] | None = None) -> list[int]:
    return [int(one.record.example.text.split()[-1]) for one in exhibits(found, most, maps_of, among)]


def test_the_first_of_every_sort_comes_before_the_second_of_any() -> None:
    sorts: list[Item] = [("en", "gender", True, True)] * 5 + [
        ("en", "gender", False, True),
        ("en", "voice", True, True),
        ("zh", "gender", True, False),
        ("zh", "gender", True, False),
    ]
    assert numbers(measurement(sorts), 4) == [0, 5, 6, 7]
    assert numbers(measurement(sorts), 5) in ([0, 1, 5, 6, 7], [0, 5, 6, 7, 8])
    assert numbers(measurement(sorts), 6) == [0, 1, 5, 6, 7, 8]
    assert numbers(measurement(sorts), 100) == list(range(9))


def test_languages_stand_together_and_items_in_their_order() -> None:
    mixed: list[Item] = [
        ("zh", "x", True, True),
        ("en", "x", True, False),
        ("zh", "x", False, True),
        ("en", "x", True, True),
    ]
    shown = exhibits(measurement(mixed), 9, maps_of)
    assert [one.record.example.language for one in shown] == ["en", "en", "zh", "zh"]
    assert numbers(measurement(mixed), 9) == [1, 3, 0, 2]


def test_only_main_items_are_shown_and_only_those_asked_for() -> None:
    items: list[Item] = [("en", "x", True, True)] * 4
    assert numbers(measurement(items, stratum="novel"), 9) == []
    assert numbers(measurement(items), 9, among=[1, 3]) == [1, 3]


def test_an_exhibit_says_what_was_answered_and_where_the_head_points() -> None:
    shown = exhibits(measurement([("en", "x", True, False), ("en", "x", False, True)]), 9, maps_of)
    assert [(one.answer, one.right, one.head_right) for one in shown] == [(0, True, False), (1, False, True)]
    silent = exhibits(measurement([("en", "x", True, False)], answered=False), 9, maps_of)
    assert [(one.answer, one.right, one.head_right) for one in silent] == [(-2, None, False)]


def test_a_runs_exhibits_carry_every_map_over_the_words_of_both_languages(finished: Path) -> None:
    run = load(finished)
    material = material_of(run, Analysis(run=str(finished)))
    found = study(run, material.training, material.development, material.measured, "test", 0)
    shown = exhibits(found, 4, maps_of_run(found))
    assert {one.record.example.language for one in shown} == {"en", "zh"}
    for one in shown:
        words = len(one.row.words)
        assert {name: maps.shape for name, maps in one.maps.items()} == {
            "raw": (2, 2, words, words),
            "norm": (2, 2, words, words),
            "rollout": (2, 1, words, words),
            "value_zeroing": (2, 1, words, words),
        }
        pronoun = one.row.spans.index(one.record.example.pronoun)
        np.testing.assert_allclose(one.maps["raw"][:, :, pronoun], one.row.weights, atol=1e-5)
        for maps in one.maps.values():
            np.testing.assert_allclose(maps.sum(axis=-1), 1, atol=1e-4)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_no_more_than_asked(most: int) -> None:
    assert len(numbers(measurement([("en", str(n), True, True) for n in range(5)]), most)) == most

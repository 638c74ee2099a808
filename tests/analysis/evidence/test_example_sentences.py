from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from anaphora.analysis.evidence.example_sentences import (
    example_sentences,
    first_quad,
    first_right_and_wrong,
    maps_of_run,
)
from anaphora.analysis.evidence.headline import Measurement, measure_headline
from anaphora.analysis.maps.answers import Answers
from anaphora.analysis.maps.capture import Capture
from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.results.scores import ALL, Head
from anaphora.analysis.scores.heads import score_records
from anaphora.analysis.scores.quads import quads_of
from anaphora.data.example import Example
from anaphora.runs.directory import load
from anaphora.runs.items import evaluation_splits

Item = tuple[str, str, bool, bool]
SPANS = ((0, 0), (0, 1), (2, 3), (4, 5))


def measurement(items: Sequence[Item], stratum: str = "main", answered: bool = True) -> Measurement:
    """Return a measurement of items given as (language, type, whether the answer is correct, whether the head is)."""
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
    right = np.array([each[2] for each in items], dtype=np.float64)
    scores = score_records(records)
    return Measurement(
        split="test",
        head=Head(0, 0),
        development=scores,
        measured=scores,
        capture=Capture(records, Answers(np.where(right > 0.5, 0, 1), right, 0 * right) if answered else None),
        baselines={},
        untrained=np.zeros((0, len(items)), dtype=np.float32),
    )


def maps_of(place: int) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    return {"raw": np.full((1, 1, 4, 4), 0.25, dtype=np.float32)}


def numbers(measurement: Measurement, most: int, among: Sequence[int] | None = None) -> list[int]:
    return [int(one.record.example.text.split()[-1]) for one in example_sentences(measurement, most, maps_of, among)]


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
    exhibits = example_sentences(measurement(mixed), 9, maps_of)
    assert [one.record.example.language for one in exhibits] == ["en", "en", "zh", "zh"]
    assert numbers(measurement(mixed), 9) == [1, 3, 0, 2]


def test_only_main_items_are_shown_and_only_those_asked_for() -> None:
    items: list[Item] = [("en", "x", True, True)] * 4
    assert numbers(measurement(items, stratum="novel"), 9) == []
    assert numbers(measurement(items), 9, among=[1, 3]) == [1, 3]


def test_an_exhibit_says_what_was_answered_and_where_the_head_points() -> None:
    exhibits = example_sentences(measurement([("en", "x", True, False), ("en", "x", False, True)]), 9, maps_of)
    assert [(one.answer, one.model_correct, one.head_correct) for one in exhibits] == [
        (0, True, False),
        (1, False, True),
    ]
    silent = example_sentences(measurement([("en", "x", True, False)], answered=False), 9, maps_of)
    assert [(one.answer, one.model_correct, one.head_correct) for one in silent] == [(None, None, False)]


def test_a_runs_exhibits_carry_every_map_over_the_words_of_both_languages(finished: Path) -> None:
    run = load(finished)
    material = evaluation_splits(run, "test")
    headline = measure_headline(run, material.training, material.development, material.measured, "test", 0)
    exhibits = example_sentences(headline, 4, maps_of_run(headline))
    assert {one.record.example.language for one in exhibits} == {"en", "zh"}
    for one in exhibits:
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


CHOSEN = Head(0, 1)


def record(right: int, order: int = 0, group: str = "g", points: int | None = None, **factors: str) -> AttentionRecord:
    """Return a record with candidates a and b and pronoun c; head 1 gives 0.6 to the candidate `points`."""
    example = Example(
        text="a b c",
        language=factors.pop("language", "en"),
        pronoun=(4, 5),
        candidates=(((0, 1),), ((2, 3),)),
        antecedents=(right,),
        group=group,
        factors={"kind": "role", "type": "x", "cue": f"cue {right ^ order}", "order": str(order), **factors},
    )
    rows = np.full((1, 2, 4), 0.25, dtype=np.float32)
    rows[0, 1] = 0.2, 0.1, 0.1, 0.1
    rows[0, 1, 1 + (right if points is None else points)] = 0.6
    return AttentionRecord(example, SPANS, (-1, 0, 1, 2), rows)


def quad(group: str, **factors: str) -> list[AttentionRecord]:
    return [record(right, order, group, **factors) for order in (1, 0) for right in (1, 0)]  # type: ignore[arg-type]


def unscorable() -> AttentionRecord:
    """Return an item that cannot be scored because it has no antecedent."""
    example = Example(text="a b c", language="en", pronoun=(4, 5), candidates=(((0, 1),),), antecedents=())
    return AttentionRecord(example, SPANS, (-1, 0, 1, 2), np.full((1, 2, 4), 0.25, dtype=np.float32))


def measured(records: list[AttentionRecord]) -> Measurement:
    scores = score_records(records)
    return Measurement(
        split="test",
        head=CHOSEN,
        development=scores,
        measured=scores,
        capture=Capture(records, None),
        baselines={},
        untrained=np.zeros((0, len(scores.examples)), dtype=np.float32),
    )


def test_the_first_right_and_wrong_items_are_taken_and_only_main_ones() -> None:
    records = [record(0, stratum="novel"), record(0, language="zh"), record(0, points=1), record(0)]
    records.append(record(0, points=1))
    assert first_right_and_wrong(measured(records), "en") == {"wrong": records[2], "right": records[3]}
    assert first_right_and_wrong(measured(records), "zh") == {"right": records[1]}


def test_a_quad_is_the_first_whole_one_of_its_language_and_kind() -> None:
    records = [*quad("broken")[:3], *quad("zh", language="zh"), *quad("set", kind="set"), *quad("one"), *quad("two")]
    assert first_quad(measured(records), "en", "role") == records[11:15]
    assert first_quad(measured(records), "en", "set") == records[7:11]
    assert first_quad(measured(records), "zh", "set") == []
    # An item that could not be scored moves the numbers of the others, not the quad that is taken.
    assert first_quad(measured([unscorable(), *records]), "en", "role") == records[11:15]


def test_quads_without_the_label_kind_are_shown_for_their_language_as_a_whole() -> None:
    own = []
    for each in quad("own"):
        factors = {name: value for name, value in each.example.factors.items() if name != "kind"}
        own.append(replace(each, example=replace(each.example, factors=factors)))
    records = [*quad("one"), *own]
    assert first_quad(measured(records), "en", ALL) == records[4:]


def test_an_octad_is_passed_over_since_its_voices_have_no_place_in_a_square() -> None:
    octad = quad("octad", voices="2", voice="agent_first") + quad("octad", voices="2", voice="patient_first")
    records = [*octad, *quad("one")]
    assert set(quads_of([each.example for each in octad])) == {"octad"}
    assert first_quad(measured(records), "en", "role") == records[8:]
    assert first_quad(measured(octad), "en", "role") == []

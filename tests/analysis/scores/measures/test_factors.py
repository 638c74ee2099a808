from __future__ import annotations

import numpy as np
import pytest

from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.results.scores import Head
from anaphora.analysis.results.typed_json import to_json
from anaphora.analysis.scores.heads import score_records
from anaphora.analysis.scores.measures.factors import factors
from anaphora.data.example import Example

HEAD = Head(0, 1)
SPANS = tuple((3 * word, 3 * word + 2) for word in range(5))


def item(right: bool, count: int = 2, language: str = "en", group: str = "", **known: str) -> AttentionRecord:
    """Return an item with `count` candidates; head 1 picks the antecedent, the first, if `right`, and head 0 never."""
    rows = np.full((1, 2, 5), 0.1, dtype=np.float32)
    rows[0, 0, 1] = rows[0, 1, 0 if right else 1] = 0.6
    example = Example(
        text="ab ab ab ab ab",
        language=language,
        pronoun=SPANS[4],
        candidates=tuple((span,) for span in SPANS[:count]),
        antecedents=(0,),
        group=group,
        factors=known,
    )
    return AttentionRecord(example, SPANS, tuple(range(5)), rows)


RECORDS = [
    item(True, type="voice", distance="2", template="en/voice/2", gender="male", group="a"),
    item(False, type="voice", distance="3", template="en/voice/10", gender="male", group="b"),
    item(True, type="voice", distance="3", template="en/voice/10", gender="female", group="c"),
    item(True, 4, type="gender", distance="31", template="en/gender/1", gender="female"),
    item(True, 4, "zh"),
    item(False, type="voice", stratum="cataphora"),
]
SCORES = score_records(RECORDS)
FOUND = to_json(factors(SCORES, HEAD, np.array([1, 0, 0, 1, 1, 0], dtype=float)))


def test_every_factor_has_its_rows_by_language_and_main_items_alone_count() -> None:
    assert list(FOUND) == ["type", "gender", "number", "distance", "candidates", "distractor", "template"]
    assert FOUND["number"] == {}
    assert list(FOUND["type"]) == ["en"]
    assert list(FOUND["candidates"]) == ["en", "zh"]
    assert sum(row["items"] for row in FOUND["candidates"]["en"]) == 4


def test_figures_that_are_no_decimal_digits_are_words() -> None:
    rows = to_json(factors(score_records([item(True, template="①", distance="②")]), HEAD, np.ones(1)))
    assert [row["value"] for row in rows["template"]["en"]] == ["①"] and rows["distance"] == {}


def test_a_row_is_the_mean_over_its_items() -> None:
    gender, voice = FOUND["type"]["en"]
    assert voice == {
        "value": "voice",
        "items": 3,
        "task_accuracy": pytest.approx(1 / 3, abs=1e-6),
        "candidate_accuracy": pytest.approx(2 / 3, abs=1e-6),
        "interval": voice["interval"],
        "antecedent_mass": pytest.approx((0.6 + 0.1 + 0.6) / 3, abs=1e-6),
        "chance": 0.5,
    }
    assert voice["interval"][0] < 2 / 3 < voice["interval"][1]
    assert (gender["value"], gender["chance"], gender["interval"]) == ("gender", 0.25, None)


def test_values_stand_in_their_natural_order() -> None:
    assert [row["value"] for row in FOUND["candidates"]["en"]] == ["2", "4"]
    assert [row["value"] for row in FOUND["distance"]["en"]] == ["0-2", "3-5", "12 or more"]
    assert [row["items"] for row in FOUND["distance"]["en"]] == [1, 2, 1]
    assert [row["value"] for row in FOUND["template"]["en"]] == ["en/gender/1", "en/voice/2", "en/voice/10"]


def test_a_single_template_has_an_interval_over_its_blocks() -> None:
    assert FOUND["template"]["en"][2]["interval"] is not None
    assert FOUND["template"]["en"][1]["interval"] is None


def test_a_model_that_answers_nothing_has_no_task_accuracy() -> None:
    table = to_json(factors(SCORES, HEAD, np.full(6, np.nan)))
    assert table["type"]["en"][0]["task_accuracy"] is None


def test_a_wrong_shape_is_reported() -> None:
    with pytest.raises(ValueError, match=r"task_correct: the shape is \(3,\); expected \(6,\)"):
        factors(SCORES, HEAD, np.ones(3))

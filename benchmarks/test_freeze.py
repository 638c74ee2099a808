"""Tests of what counts as a difference between two commits."""

from pathlib import Path

import pytest

from benchmarks.freeze import Step, compare


def differences(place: Path, name: str, old: str, new: str) -> list[str]:
    """Return the keys that differ between two versions of one file."""
    for side, text in (("old", old), ("new", new)):
        (place / side / "run").mkdir(parents=True)
        (place / side / "run" / name).write_text(text, encoding="utf-8")
    compare(place)
    return [line.split(": ")[0].partition(":")[2] for line in (place / "differences.txt").read_text().splitlines()]


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        ("50.0 [40.0, 60.0] of 12", []),
        ("<b>50.0</b>: from 40.0 to 60.0, <i>12</i> items", []),
        ("50.0 of 12", ["number 40.0, time 1", "number 60.0, time 1", "order of the numbers"]),
        ("50.0 [40.0, 61.0] of 12", ["number 60.0, time 1", "order of the numbers", "number 61.0, time 1"]),
        ("50.0 [60.0, 40.0] of 12", ["order of the numbers"]),
    ],
)
def test_a_page_differs_where_a_number_is_gone_changed_or_moved(tmp_path: Path, new: str, expected: list[str]) -> None:
    assert differences(tmp_path, "page.html", "50.0 [40.0, 60.0] of 12", new) == expected


def test_every_value_of_a_file_counts_but_times_and_the_words_of_sentences(tmp_path: Path) -> None:
    old = '{"a": {"b": [1, 2.5]}, "text": "3 of 4 are right", "train_seconds": 1.0, "gone": null}'
    new = '{"a": {"b": [1, 2.0]}, "text": "right in 3 of 4", "train_seconds": 2.0}'
    assert differences(tmp_path, "metrics.json", old, new) == ["a.b[1]", "gone"]


def test_a_command_has_the_name_that_it_has_in_a_checkout(tmp_path: Path) -> None:
    step = Step("own", ("score_attention", "run=own"), ("score", "run=own"))
    (tmp_path / "scripts").mkdir()
    assert step.arguments_at(tmp_path) == step.arguments
    (tmp_path / "scripts" / "score.py").touch()
    assert step.arguments_at(tmp_path) == step.new

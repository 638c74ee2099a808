from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import pytest

WORDS = ["Anna", "met", "the", "old", "man", ".", "She", "liked", "him", "."]
KEY = {"doc_key": "a", "sentences": [WORDS[:6], WORDS[6:]], "clusters": [[[0, 0], [6, 6]], [[2, 4], [8, 8]]]}
OTHER = {"doc_key": "b", "sentences": [["Tom", "left", "."]], "clusters": [[[0, 0]]]}


def write(path: Path, *rows: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def rows_of(path: Path) -> dict[str, dict[Any, Any]]:
    return {row["measure"]: row for row in pandas.read_csv(path).to_dict("records")}


@pytest.fixture
def key(tmp_path: Path) -> str:
    return write(tmp_path / "key.jsonlines", KEY, OTHER)


def test_a_response_in_another_form_and_order_is_scored_against_the_key(
    key: str, script: Callable[..., Any], tmp_path: Path
) -> None:
    """The response has one of two links: MUC recall 1/2, precision 1; singletons may be left out."""
    response = write(
        tmp_path / "response.jsonlines",
        {"cased_words": ["Tom", "left", "."], "span_clusters": []},
        {"cased_words": WORDS, "span_clusters": [[[0, 1], [6, 7]]]},
    )
    result = script("coreference", f"key={key}", f"response={response}", f"output={tmp_path / 'scores.csv'}")
    assert result.status == 0, result.err
    assert "2 documents" in result.out and "66.7" in result.out
    rows = rows_of(tmp_path / "scores.csv")
    assert [rows[name]["recall"] for name in ("muc", "b_cubed", "lea")] == [0.5, 0.4, 0.4]
    assert [rows[name]["precision"] for name in ("muc", "b_cubed", "lea")] == [1, 1, 1]
    without = script(
        "coreference", f"key={key}", f"response={response}", "singletons=false", f"output={tmp_path / 'scores.csv'}"
    )
    assert without.status == 0, without.err
    assert rows_of(tmp_path / "scores.csv")["b_cubed"]["recall"] == 0.5


@pytest.mark.parametrize(
    ("rows", "more", "message"),
    [
        ((KEY,), (), "key.jsonlines, line 2: the response has no document with the words of 'b'"),
        ((KEY, OTHER, OTHER), (), "response.jsonlines, line 3: the key has no document with the words of 'b'"),
        ((OTHER, {**KEY, "clusters": [[[0, 1], [6, 11]]]}), (), "line 2, clusters[0][1]: [6, 11] must be [start, end]"),
        ((KEY, OTHER), ("response_ends=last",), "response_ends ('last') must be one of inclusive, exclusive"),
        (({**KEY, "clusters": [[[0, 1], [2, 4]]]}, {**OTHER, "clusters": []}), (), "response_ends: the spans of "),
        ((KEY, OTHER), ("output=scores.txt",), "output (scores.txt) must end in one of .csv"),
    ],
)
def test_files_that_do_not_fit_are_named_in_one_line(
    rows: tuple[dict[str, Any], ...], more: tuple[str, ...], message: str, key: str, script: Callable[..., Any],
    tmp_path: Path,
) -> None:  # fmt: skip
    response = write(tmp_path / "response.jsonlines", *rows)
    result = script("coreference", f"key={key}", f"response={response}", *more)
    assert result.status == 2
    assert message in result.err and result.err.count("\n") == 1

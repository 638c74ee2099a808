"""Tests that any user data file, and any question about a sentence, yields valid examples or a one-line error."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from cases import cases, plain_values, result_or_one_line
from hypothesis import example, given
from hypothesis import strategies as draw
from pyarrow import parquet

from anaphora.commands.corpus import corpus_table
from anaphora.data.corpora import labelled_text, plain_text, tables
from anaphora.data.corpora.coreference import extents_of
from anaphora.data.example import Example, from_record, to_record
from anaphora.data.own_sentence import example_from_query, find_span
from anaphora.settings.data import LabelledText, OwnExamples, PlainText

ROWS: list[dict[str, Any]] = [
    {
        "text": "Anna met Berta because she was free.",
        "language": "en",
        "pronoun": [23, 26],
        "candidates": [[0, 4], [9, 14]],
        "antecedents": [0],
        "group": "a",
        "minimal_pair": "b",
        "factors": {"focal": "0,1", "type": "gender"},
        "split": "train",
    },
    {
        "text": "王芳碰到李强以后,她去了商店。",
        "language": "zh",
        "pronoun": [9, 10],
        "candidates": [[[0, 2]], [[4, 6]]],
        "antecedents": [0],
        "group": "",
        "minimal_pair": "",
        "factors": {},
        "split": "test",
    },
]
Rows = list[dict[str, Any]]


def as_jsonl(path: Path, rows: Rows) -> None:
    path.write_text("\n".join(json.dumps(row, allow_nan=True) for row in rows), encoding="utf-8")


def as_csv(path: Path, rows: Rows) -> None:
    written = io.StringIO(newline="")
    columns = list(dict.fromkeys(name for row in rows for name in row))
    table = csv.writer(written)
    table.writerow(columns)
    for row in rows:
        cells = [row.get(name) for name in columns]
        table.writerow("" if one is None else one if isinstance(one, str) else json.dumps(one) for one in cells)
    path.write_bytes(written.getvalue().encode("utf-8", "replace"))


def as_parquet(path: Path, rows: Rows) -> None:
    try:
        table = pyarrow.Table.from_pylist(rows)
        parquet.write_table(table, path)
    except (pyarrow.ArrowException, TypeError, ValueError, OverflowError, UnicodeEncodeError):  # no column holds this
        parquet.write_table(pyarrow.Table.from_pylist([{"text": json.dumps(row)} for row in rows]), path)


WRITERS: dict[str, Callable[[Path, Rows], None]] = {"jsonl": as_jsonl, "csv": as_csv, "parquet": as_parquet}
places = draw.integers(-3, 40)
spans = draw.one_of(draw.tuples(places, places).map(list), draw.lists(places, max_size=3))
FIELDS: dict[str, draw.SearchStrategy[Any]] = {
    "pronoun": spans,
    "candidates": draw.lists(draw.one_of(spans, draw.lists(spans, max_size=3)), max_size=4),
    "antecedents": draw.lists(draw.integers(-2, 3), max_size=3),
    "factors": draw.dictionaries(
        draw.sampled_from(["focal", "subject", "type", "distance", "extent", "extents", "event_names"]),
        draw.text("0123,:;- x", max_size=9),
    ),
    "text": draw.text(max_size=30),
}


@draw.composite
def wrong_rows(draws: draw.DrawFn) -> Rows:
    """Draw two valid rows with some fields changed to any value, removed or added."""
    rows: Rows = [dict(row) for row in ROWS]
    for _ in range(draws(draw.integers(1, 3))):
        row = draws(draw.sampled_from(rows))
        field = draws(draw.sampled_from([*ROWS[0], *ROWS[0], "twin", "more"]))
        if draws(draw.integers(0, 5)):
            row[field] = draws(draw.one_of(FIELDS.get(field, draw.text(max_size=5)), plain_values()))
        else:
            row.pop(field, None)
    return rows


def holds(one: Example) -> None:
    """Check the invariants of an accepted example."""
    assert from_record(to_record(one)) == one
    for start, end in [one.pronoun, *(span for mentions in one.candidates for span in mentions)]:
        assert one.text[start:end].strip()
    assert set(one.focal) <= set(range(len(one.candidates)))
    own, entities = extents_of(one)
    assert one.text[slice(*own)] and [*map(len, entities)] == [*map(len, one.candidates)]
    assert corpus_table({"test": [one]})[0]["items"] == 1
    one.text.encode("utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@pytest.mark.parametrize("suffix", WRITERS)
@cases(share=0.05, quick=60)
@given(rows=wrong_rows())
@example(rows=[{**ROWS[0], "factors": {"focal": "-1"}}])
@example(rows=[{**ROWS[0], "factors": {"distance": "far"}}])
@example(rows=[{**ROWS[0], "factors": {"extent": "short"}}])
@example(rows=[{**ROWS[0], "text": "\ud800"}])
def test_a_table_with_a_wrong_field_gives_examples_that_hold_or_one_line(suffix: str, folder: Path, rows: Rows) -> None:
    path = folder / f"rows.{suffix}"
    WRITERS[suffix](path, rows)
    read = result_or_one_line(lambda: tables.read(OwnExamples(path=str(path))))
    for one in [one for split in read[0].values() for one in split] if read else ():
        holds(one)


@draw.composite
def damaged(draws: draw.DrawFn, content: bytes) -> bytes:
    """Draw a variant of some bytes with parts removed, changed or inserted."""
    changed = bytearray(content)
    for _ in range(draws(draw.integers(1, 4))):
        place = draws(draw.integers(0, max(0, len(changed) - 1)))
        match draws(draw.sampled_from(["cut", "change", "insert"])):
            case "cut":
                del changed[place : place + draws(draw.integers(1, 40))]
            case "change" if changed:
                changed[place] = draws(draw.integers(0, 255))
            case _:
                changed[place:place] = draws(
                    draw.one_of(draw.binary(max_size=5), draw.sampled_from([b'"', b"\r", b"\n"]))
                )
    return bytes(changed)


@pytest.mark.parametrize("suffix", WRITERS)
@cases(share=0.03, quick=40)
@given(data=draw.data())
def test_a_damaged_table_gives_examples_that_hold_or_one_line(suffix: str, folder: Path, data: draw.DataObject) -> None:
    path = folder / f"damaged.{suffix}"
    WRITERS[suffix](path, ROWS)
    path.write_bytes(data.draw(damaged(path.read_bytes())))
    read = result_or_one_line(lambda: tables.read(OwnExamples(path=str(path))))
    for one in [one for split in read[0].values() for one in split] if read else ():
        holds(one)


TEXT_FILES = {
    "a.tsv": "text\tlabel\na good film\tgood\na bad one\tbad\n",
    "a.csv": 'text,label\n"good, I say",good\nbad,bad\n',
    "a.jsonl": '{"text": "good", "label": "good"}\n{"text": "bad", "label": "bad", "title": "x"}\n',
    "a.txt": "One paragraph.\n\nAnother one,\nof two lines.\n",
    "a.tokens": " = Title = \n\n A <unk> @-@ b \n",
}


@cases(share=0.05, quick=60)
@given(data=draw.data())
def test_a_damaged_text_gives_texts_or_one_line(folder: Path, data: draw.DataObject) -> None:
    name = data.draw(draw.sampled_from(sorted(TEXT_FILES)))
    path = folder / name
    path.write_bytes(data.draw(damaged(TEXT_FILES[name].encode())))
    if name in ("a.txt", "a.tokens", "a.jsonl"):
        result_or_one_line(lambda: plain_text.read(PlainText(path=str(path))))
    if name not in ("a.txt", "a.tokens"):
        result_or_one_line(lambda: labelled_text.read(LabelledText(path=str(path))))


SENTENCE = "Anna met 李强 because  she\nwas free"
words = draw.one_of(
    draw.sampled_from(["Anna", "she", "anna", "李强", "nobody", "", " ", "0:4", "4:0", "0:99", "-1:2", "free", "\n"]),
    draw.tuples(places, places).map(lambda both: f"{both[0]}:{both[1]}"),
    draw.text(max_size=6),
)


@cases(share=0.05, quick=150)
@given(draw.one_of(draw.just(SENTENCE), draw.text(max_size=30)), words, draw.lists(words, max_size=3))
@example(SENTENCE, "", [])
@example(SENTENCE, "she", ["9" * 5000 + ":1"])
def test_any_sentence_and_any_span_give_an_example_that_holds_or_one_line(
    text: str, pronoun: str, candidates: list[str]
) -> None:
    for name in (pronoun, *candidates):
        span = result_or_one_line(lambda name=name: find_span(text, name, "pronoun"))  # type: ignore[misc]
        assert span is None or 0 <= span[0] < span[1] <= len(text)
    right = candidates[0] if candidates else None
    one = result_or_one_line(lambda: example_from_query(text, pronoun, candidates, right))
    if one is not None:
        assert one.text == text
        assert one.antecedents == () or one.words(one.antecedents[0])


@cases(share=0.01, quick=60)
@given(plain_values(3))
def test_any_record_gives_an_example_that_holds_or_one_line(value: Any) -> None:
    for name in ROWS[0]:
        one = result_or_one_line(lambda name=name: from_record({**ROWS[0], name: value}))  # type: ignore[misc]
        if one is not None:
            holds(one)

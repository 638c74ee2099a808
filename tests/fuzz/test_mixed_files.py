"""Tests that tables and documents with mixed scripts yield the marked words."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from cases import cases, result_or_one_line
from hypothesis import assume, given
from hypothesis import strategies as draw
from pyarrow import parquet
from test_mixed_scripts import WITHOUT_BLANKS, Piece, mixed_texts

from anaphora.base.language import language_of
from anaphora.data.corpora import corefud
from anaphora.data.example import Example
from anaphora.settings.data import CorefUd, OwnExamples

SHARES: dict[str, Any] = {"dev_share": 0.0, "test_share": 0.0}
Row = dict[str, Any]


def _jsonl(path: Path, rows: list[Row]) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def _csv(path: Path, rows: list[Row]) -> None:
    written = io.StringIO(newline="")
    table = csv.writer(written)
    table.writerow(rows[0])
    table.writerows([cell if isinstance(cell, str) else json.dumps(cell) for cell in row.values()] for row in rows)
    path.write_bytes(written.getvalue().encode("utf-8-sig"))  # as spreadsheets write it


def _parquet(path: Path, rows: list[Row]) -> None:
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)


WRITERS: dict[str, Callable[[Path, list[Row]], None]] = {"jsonl": _jsonl, "csv": _csv, "parquet": _parquet}
UNITS: dict[str, Callable[[str], int]] = {
    "characters": len,
    "UTF-8": lambda before: len(before.encode()),
    "UTF-16": lambda before: len(before.encode("utf-16-le")) // 2,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mixed")


@cases(share=0.03, quick=80)
@given(mixed_texts(), draw.sampled_from(sorted(WRITERS)), draw.sampled_from(sorted(UNITS)))
def test_spans_of_a_table_mark_the_words_that_were_meant_or_the_row_is_named(
    folder: Path, made: tuple[str, list[Piece]], suffix: str, unit: str
) -> None:
    text, pieces = made
    assume(len(pieces) > 1)
    spans = [[UNITS[unit](text[: one.start]), UNITS[unit](text[: one.end])] for one in pieces]
    pronoun, *candidates = spans
    row = {"text": text, "language": language_of(text), "pronoun": pronoun, "candidates": candidates}
    path = folder / f"a.{suffix}"
    WRITERS[suffix](path, [{**row, "antecedents": [0]}])
    read = result_or_one_line(lambda: OwnExamples(path=str(path), **SHARES).build())
    if unit == "characters":
        assert read is not None
    if read is None:
        return
    (one,) = read[0]["train"]
    assert isinstance(one, Example)
    marked = [one.text[slice(*one.pronoun)], *(one.words(number) for number in range(len(candidates)))]
    meant = [text[piece.start : piece.end] for piece in pieces]
    has_ends = all(
        piece.script not in WITHOUT_BLANKS for piece in pieces
    )  # no word of the others can be seen to be cut
    assert marked == meant or not has_ends, (text, unit)


@cases(share=0.03, quick=80)
@given(
    mixed_texts(),
    draw.sampled_from(["as written", "without SpaceAfter", "another letter", "a word less", "no line of text"]),
    draw.booleans(),
)
def test_a_document_reads_as_the_line_above_it_or_the_line_is_named(
    folder: Path, made: tuple[str, list[Piece]], damage: str, has_parts: bool
) -> None:
    _, pieces = made
    glued = [before.script != after.script for before, after in pairwise(pieces)] + [False]
    text = "".join(piece.word + " " * (not glue) for piece, glue in zip(pieces, glued, strict=True)).rstrip()
    lines, number = [], 0
    for piece, glue in zip(pieces, glued, strict=True):
        misc = "SpaceAfter=No" if glue and damage != "without SpaceAfter" else "_"
        if has_parts and len(piece.word) > 2:
            lines.append(_line(f"{number + 1}-{number + 2}", piece.word, misc))
            lines += [_line(str(number + 1), piece.word[:1]), _line(str(number + 2), piece.word[1:])]
            number += 2
        else:
            lines.append(_line(str(number + 1), piece.word, misc))
            number += 1
    above = {"another letter": f"x{text}", "a word less": f"{text} more", "no line of text": ""}.get(damage, text)
    path = folder / "a.conllu"
    path.write_text("\n".join(["# newdoc id = d", *([f"# text = {above}"] if above else []), *lines, "", ""]), "utf-8")
    settings = CorefUd(path=str(path), language=language_of("".join(piece.word for piece in pieces)), **SHARES)
    read = result_or_one_line(lambda: corefud.read(settings))
    is_damaged = above not in ("", text) or (damage == "without SpaceAfter" and any(glued))
    assert (read is None) == is_damaged, (above, text)


def _line(identity: str, word: str, misc: str = "_") -> str:
    return "\t".join((identity, word, "_", "NOUN", "_", "_", "_", "_", "_", misc))

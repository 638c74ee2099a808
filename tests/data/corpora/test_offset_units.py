"""Offsets of Chinese texts in other units than characters, which cut no word and are told by the pronoun."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from anaphora.base.errors import UserError
from anaphora.data.corpora import tables
from anaphora.data.example import Span
from anaphora.settings.data import OwnExamples

TEXT = "小红感谢美玲，因为她帮了忙，所以她们成了朋友，后来美玲也常常到小红家里来做客。"
EMOJI = "😀小红感谢美玲，因为她帮了忙。"
MARKED = {TEXT: [(9, 10), (0, 2), (4, 6)], EMOJI: [(10, 11), (1, 3), (5, 7)]}
PLURAL = "美玲来了，因为他们帮了忙。"
MARKED[PLURAL] = [(7, 9), (0, 2)]

Unit = Callable[[str, Span], Span]


def characters(text: str, span: Span) -> Span:
    return span


def encoded(encoding: str, size: int) -> Unit:
    def convert(text: str, span: Span) -> Span:
        start, end = (len(text[:place].encode(encoding)) // size for place in span)
        return start, end

    return convert


BYTES, UTF_16 = encoded("utf-8", 1), encoded("utf-16-le", 2)


def from_one(text: str, span: Span) -> Span:
    return span[0] + 1, span[1] + 1


def inclusive(text: str, span: Span) -> Span:
    return span[0], span[1] - 1


def read(folder: Path, *rows: tuple[str, Unit]) -> int:
    """Write rows of a text and the unit of its offsets; return the number of items that are read."""
    lines = []
    for text, unit in rows:
        pronoun, *candidates = (unit(text, span) for span in MARKED[text])
        row = {"text": text, "language": "zh", "pronoun": pronoun, "candidates": candidates, "antecedents": [0]}
        lines.append(json.dumps(row, ensure_ascii=False))
    path = folder / "items.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return sum(map(len, tables.read(OwnExamples(path=str(path)))[0].values()))


@pytest.mark.parametrize(
    ("text", "unit", "said"),
    [
        (TEXT, BYTES, "UTF-8 bytes, in which the pronoun is '她'"),
        (TEXT, from_one, "characters counted from 1, in which the pronoun is '她'"),
        (EMOJI, UTF_16, "UTF-16 code units, in which the pronoun is '她'"),
        (PLURAL, inclusive, "places of the first and the last character, in which the pronoun is '他们'"),
    ],
)
def test_the_unit_in_which_the_pronouns_of_a_file_are_pronouns_is_named(
    text: str, unit: Unit, said: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=re.escape(said)) as error:
        read(tmp_path, (text, unit))
    assert "items.jsonl, line 1, pronoun: [" in str(error.value)


def test_rows_that_two_units_read_alike_do_not_count(tmp_path: Path) -> None:
    assert read(tmp_path, (TEXT, UTF_16), (TEXT, characters), (EMOJI, characters)) == 3
    with pytest.raises(UserError, match=r"line 2, pronoun: \[11, 12\] covers '帮'.* these fit as UTF-16 code units"):
        read(tmp_path, (TEXT, UTF_16), (EMOJI, UTF_16))


def test_a_row_whose_pronoun_is_right_in_characters_refutes_other_units(tmp_path: Path) -> None:
    """Pronouns may be any words, so a single row that fits another unit is no proof."""
    assert read(tmp_path, (TEXT, from_one), (PLURAL, characters)) == 2
    assert read(tmp_path, (EMOJI, UTF_16), (EMOJI, characters)) == 2

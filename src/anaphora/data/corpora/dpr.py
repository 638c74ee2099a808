"""Definite Pronoun Resolution (Rahman and Ng 2012): four-line blocks -> Examples.

Blocks 2k and 2k + 1 of a file are twins with opposite answers. No offsets are given: the authors' rule is the pronoun's
first occurrence as a word.
"""

from __future__ import annotations

from pathlib import Path

from anaphora.data.corpora.blocks import blocks
from anaphora.data.corpora.division import Origin, ReadingReport, existing, occurrences
from anaphora.data.corpora.reading import Reading, Row, example_of, find_all, parted
from anaphora.data.example import Example
from anaphora.data.settings import Dpr
from anaphora.errors import UserError

TRAIN, TEST = "train.c.txt", "test.c.txt"
ORIGIN = Origin(files=f"{TRAIN}, or a folder with {TRAIN} and {TEST}", licence="none")


def read(settings: Dpr) -> tuple[dict[str, list[Example]], ReadingReport]:
    """The examples by split and the report; twins share `group` and `twin`, so that they share a split.

    Raises:
        UserError: a file is missing or is not made of such blocks; file, line and value are named.
    """
    path = existing(settings.path, ORIGIN.files)
    reading = Reading()
    train, test = (path / TRAIN, path / TEST) if path.is_dir() else (path, None)
    if not train.exists():
        raise UserError(f"data.path ({settings.path}): the folder has no {TRAIN}; name the file of four-line blocks")
    first = _file(train, reading)
    second = _file(test, reading) if test and test.exists() else None
    return parted(first, second, settings), reading.report()


def _file(path: Path, reading: Reading) -> list[Example]:
    return [example for _, example in reading.each(blocks(path), lambda row: _example(row, path.stem))]


def _example(row: Row, part: str) -> Example:
    text, names = row["text"], row["names"]
    found = occurrences(row["pronoun"], text)
    if not found:
        raise UserError(f"pronoun: {row['pronoun']!r} is not a word of {text!r}")
    if len(names) != 2:
        raise UserError(f"candidates: {names} must be two")
    twin = f"dpr/{part}/{row['number'] // 2}"
    mentions = find_all(names, text, found[0])
    return example_of("dpr", text, found[0], mentions, (names.index(row["answer"]),), group=twin, twin=twin)

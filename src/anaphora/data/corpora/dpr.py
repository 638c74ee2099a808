"""Definite Pronoun Resolution (Rahman and Ng 2012): four-line blocks -> Examples.

Blocks 2k and 2k + 1 of a file, counted from 0, are a minimal pair. The files have no offsets; by the authors' rule, the
first occurrence of the pronoun as a word is meant.
"""

from __future__ import annotations

from pathlib import Path

from anaphora.base.errors import UserError
from anaphora.base.locale.translation import N_
from anaphora.data.corpora.blocks import four_line_items
from anaphora.data.corpora.division import Origin, ReadingReport, existing_path, occurrences
from anaphora.data.corpora.reading import Row, RowReader, example_of, find_mentions, split_examples
from anaphora.data.example import Example
from anaphora.settings.data import Dpr

TRAIN, TEST = "train.c.txt", "test.c.txt"
ORIGIN = Origin(files=f"{TRAIN}, or a folder with {TRAIN} and {TEST}", licence=N_("none"))


def read(settings: Dpr) -> tuple[dict[str, list[Example]], ReadingReport]:
    """Return the examples by split and the report; a minimal pair shares a group.

    In a folder, test.c.txt, if present, is the test split; otherwise the shares divide the training file.

    Raises:
        UserError: train.c.txt is missing, or a file does not consist of such blocks; the message names file, line and
            value.
    """
    path = existing_path(settings.path, ORIGIN.files)
    reading = RowReader()
    train, test = (path / TRAIN, path / TEST) if path.is_dir() else (path, None)
    if not train.exists():
        raise UserError(f"data.path ({settings.path}): the folder has no {TRAIN}; name the file of four-line blocks")
    first = _file(train, reading)
    second = _file(test, reading) if test and test.exists() else None
    return split_examples(first, second, settings), reading.report()


def _file(path: Path, reading: RowReader) -> list[Example]:
    items = list(four_line_items(path))
    for (_, one), (where, other) in zip(items[::2], items[1::2], strict=False):
        first, second = ({name.lower() for name in row["names"]} for row in (one, other))
        if first != second:
            raise UserError(
                f"{where}, candidates: {other['names']} are not those of the block before, {one['names']}; blocks "
                f"{other['number']} and {other['number'] + 1} of a file are a pair, so a block is missing or too many"
            )
    return [example for _, example in reading.convert(items, lambda row: _example(row, path.stem))]


def _example(row: Row, part: str) -> Example:
    text, names = row["text"], row["names"]
    places = occurrences(row["pronoun"], text)
    if not places:
        raise UserError(f"pronoun: {row['pronoun']!r} is not a word of {text!r}")
    if len(names) != 2:
        raise UserError(f"candidates: {names} must be two")
    pair = f"dpr/{part}/{row['number'] // 2}"
    mentions = find_mentions(names, text, places[0])
    return example_of("dpr", text, places[0], mentions, (names.index(row["answer"]),), group=pair, minimal_pair=pair)

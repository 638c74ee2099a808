"""Reader of Definite Pronoun Resolution (Rahman and Ng 2012), in four-line blocks.

Blocks are separated by blank lines. The lines of a block are the sentence, the pronoun, the candidates, separated by
commas, and the correct candidate. PDP-60 and a common copy of WSC273 have the same format (`wsc273`).

Blocks 2k and 2k + 1 of a file, counted from 0, are a minimal pair. The files have no offsets; by the authors' rule, the
first whole-word occurrence of the pronoun is the query.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from anaphora.base.errors import UserError, counted
from anaphora.base.translation import N_
from anaphora.data.corpora.division import Origin, ReadingReport, existing_path, occurrences, read_lines
from anaphora.data.corpora.reading import BLANK, Row, example_of, find_mentions, read_examples
from anaphora.data.example import Example
from anaphora.settings.data import Dpr

TRAIN, TEST = "train.c.txt", "test.c.txt"
ORIGIN = Origin(files=f"{TRAIN}, or a folder with {TRAIN} and {TEST}", licence=N_("none"), names=(TRAIN, TEST))
_MASK = "[MASK]"


def read(settings: Dpr) -> tuple[dict[str, list[Example]], ReadingReport]:
    """Return the examples by split and a report on dropped rows; the two items of a minimal pair share a group.

    If `data.path` is a folder with the file test.c.txt, this file is the test split; other splits are drawn at random.
    """
    path = existing_path(settings.path, ORIGIN.files)
    train, test = (path / TRAIN, path / TEST) if path.is_dir() else (path, None)
    if not train.exists():
        raise UserError(f"data.path ({settings.path}): the folder has no {TRAIN}; name the file of four-line blocks")
    return read_examples(settings, _example, _items(train), _items(test) if test and test.exists() else None)


def _items(path: Path) -> Iterator[tuple[str, Row]]:
    """Yield (location, item) for every block; check that both items of a minimal pair have the same candidates."""
    items = list(four_line_items(path))
    for (_, one), (where, other) in zip(items[::2], items[1::2], strict=False):
        first, second = ({name.lower() for name in row["names"]} for row in (one, other))
        if first != second:
            raise UserError(
                f"{where}, candidates: {other['names']} are not those of the block before, {one['names']}; blocks "
                f"{other['number']} and {other['number'] + 1} of a file are a pair, so a block is missing or added"
            )
    for where, row in items:
        yield where, {"part": path.stem, **row}


def _example(row: Row) -> Example:
    text, names = row["text"], row["names"]
    places = occurrences(row["pronoun"], text)
    if not places:
        raise UserError(f"pronoun: {row['pronoun']!r} is not a word of {text!r}")
    if len(names) != 2:
        raise UserError(f"candidates: {names} must be two")
    pair = f"dpr/{row['part']}/{row['number'] // 2}"
    mentions = find_mentions(names, text, places[0])
    return example_of("dpr", text, places[0], mentions, (names.index(row["answer"]),), group=pair, minimal_pair=pair)


def four_line_items(path: Path) -> Iterator[tuple[str, Row]]:
    """Yield (location, item) for every block of four lines; the location is its first line, such as "file, line 6".

    An item is a dictionary with `number` (index in the file, from 0), `text`, `pronoun`, `names` (a list) and `answer`.

    Raises:
        UserError: the file does not consist of four-line blocks, a block has fewer than two candidates, or an answer is
            not a candidate; the message names file, line and value.
    """
    number = -1
    for number, (line, block) in enumerate(_line_groups(read_lines(path))):
        where = f"{path}, line {line}"
        if len(block) != 4:
            raise UserError(
                f"{where}: a block of {counted(len(block), 'line')}; it needs four: sentence, pronoun, candidates, "
                "answer"
            )
        text, pronoun, listed, answer = block
        names = [name.strip() for name in listed.split(",")]
        if len(names) < 2 or not all(names):
            raise UserError(f"{path}, line {line + 2}: candidates {listed!r} must be two or more, separated by commas")
        if answer not in names:
            raise UserError(f"{path}, line {line + 3}: answer {answer!r} must be one of {names}")
        yield where, {"number": number, "text": text, "pronoun": pronoun, "names": names, "answer": answer}
    if number < 0:
        raise UserError(f"{path}: it has no block of four lines")


def masked_example(row: Row, corpus: str) -> Example:
    """Build an example from an item of `four_line_items` whose sentence has [MASK] in place of the pronoun.

    In the text of the example, "_" replaces [MASK].
    """
    if row["text"].count(_MASK) != 1:
        raise UserError(f"sentence: {row['text'][:60]!r} must hold {_MASK} once")
    text = " ".join(row["text"].replace(_MASK, BLANK).split())
    start = len(" ".join(row["text"].partition(_MASK)[0].split()))
    start = text.index(BLANK, start)
    pronoun = (start, start + len(BLANK))
    return example_of(
        corpus, text, pronoun, find_mentions(row["names"], text, pronoun), (row["names"].index(row["answer"]),)
    )


def _line_groups(written: list[str]) -> list[tuple[int, list[str]]]:
    """Split lines into groups at blank lines; return the number of each group's first line, from 1, and its lines."""
    runs = groupby(enumerate(map(str.strip, written), start=1), key=lambda line: bool(line[1]))
    groups = [list(run) for has_words, run in runs if has_words]
    return [(group[0][0], [line for _, line in group]) for group in groups]

"""Blocks of four lines separated by blank lines: the format of DPR, PDP-60 and a common copy of WSC273.

The lines of a block are the sentence, the pronoun, the candidates, separated by commas, and the correct candidate.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from anaphora.base.errors import UserError
from anaphora.data.corpora.division import read_lines
from anaphora.data.corpora.reading import BLANK, Row, example_of, find_mentions
from anaphora.data.example import Example

_MASK = "[MASK]"


def four_line_items(path: Path) -> Iterator[tuple[str, Row]]:
    """Yield ("file, line 6", block) for every block, with its first line.

    A block is a dictionary with `number` (index in the file, from 0), `text`, `pronoun`, `names` (a list) and `answer`.

    Raises:
        UserError: the file does not consist of such blocks, or an answer is not a candidate; the message names file,
            line and value.
    """
    number = -1
    for number, (line, block) in enumerate(_line_groups(read_lines(path))):
        where = f"{path}, line {line}"
        if len(block) != 4:
            raise UserError(
                f"{where}: a block of {len(block)} lines; it needs four: sentence, pronoun, candidates, answer"
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
    """Build the example of a block whose sentence has [MASK] for the pronoun, which `BLANK` replaces.

    Raises:
        UserError: the sentence does not have exactly one [MASK].
        DroppedRowError: a candidate is not in the sentence, two are the same, or the text has placeholders for its
            words.
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
    """Return each run of consecutive lines that are not blank, with the number of its first line, from 1."""
    runs: list[tuple[int, list[str]]] = []
    inside = False
    for number, line in enumerate(written, start=1):
        content = line.strip()
        if content and not inside:
            runs.append((number, []))
        if content:
            runs[-1][1].append(content)
        inside = bool(content)
    return runs

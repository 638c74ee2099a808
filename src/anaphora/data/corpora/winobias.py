"""Reader of WinoBias (Zhao et al. 2018): sentences about two occupations, pro- and anti-stereotypical.

A line is "27 [The developer] visited the hairdresser because [he] needed to cut [his] hair.": brackets mark the
antecedent and the pronouns that refer to it. The first pronoun is queried. The other occupation is found with the two
lists of occupations. Lines 2k - 1 and 2k are about the same two people; in type 1 they have different endings and
antecedents. Type 1 requires world knowledge, type 2 only syntax.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

from anaphora.base.errors import UserError
from anaphora.base.translation import N_
from anaphora.data.corpora import reading
from anaphora.data.corpora.division import Origin, ReadingReport, existing_path, read_lines, whole_number
from anaphora.data.corpora.reading import DroppedRowError, Row
from anaphora.data.example import Example
from anaphora.settings.data import Winobias

EXAMPLE = "pro_stereotyped_type1.txt.dev"
OCCUPATIONS = ("female_occupations.txt", "male_occupations.txt")
ORIGIN = Origin(
    files=f"a folder with {', '.join(OCCUPATIONS)} and files such as {EXAMPLE}",
    licence="MIT",
    names=(*OCCUPATIONS, "*_stereotyped_type?.txt.*"),
)


def read(settings: Winobias) -> tuple[dict[str, list[Example]], ReadingReport]:
    """Return the examples by split and a report on dropped rows.

    If the folder has examples in both .dev and .test files, these files are the dev split and the test split, and train
    is empty. Otherwise all examples are split at random.

    Each type has a pro-stereotypical and an anti-stereotypical file. The lines 2k - 1 and 2k of both files share a
    group. In type 1, two lines of a group whose pronouns have the same gender are a minimal pair: they come from
    different files and differ only in the ending. Lines with unpaired brackets, or without exactly one other occupation
    before the pronoun, are dropped.
    """
    folder = existing_path(settings.path, ORIGIN.files)
    if not folder.is_dir():
        raise UserError(f"data.path ({settings.path}) must be a folder: the lists of occupations belong to the corpus")
    pattern = _occupations(folder)
    reader = reading.RowReader()
    parts: dict[str, list[Example]] = {}
    for part in ("dev", "test"):
        rows = _rows(folder, part)
        parts[part] = [example for _, example in reader.convert(rows, lambda row: _example(row, pattern))]
    if not reader.rows:
        raise UserError(f"data.path ({settings.path}): the folder has no file such as {EXAMPLE}")
    if parts["dev"] and parts["test"]:
        return {"train": [], **parts}, reader.report()
    examples = parts["dev"] + parts["test"]
    return reading.split_examples(examples, None, settings), reader.report()


def _occupations(folder: Path) -> re.Pattern[str]:
    words: list[str] = []
    for name in OCCUPATIONS:
        if not (folder / name).exists():
            raise UserError(f"data.path ({folder}): the folder has no {name}")
        words += [line.strip() for line in read_lines(folder / name) if line.strip()]
    longest_first = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    return re.compile(rf"(?<!\w)(?:(?:the|a|an) )?(?:{longest_first})(?!\w)", re.IGNORECASE)


def _rows(folder: Path, part: str) -> Iterator[tuple[str, Row]]:
    for type_, stereotype in product(("1", "2"), ("pro", "anti")):
        path = folder / f"{stereotype}_stereotyped_type{type_}.txt.{part}"
        for place, line in enumerate(read_lines(path) if path.exists() else (), start=1):
            if line.strip():
                yield f"{path}, line {place}", {"line": line, "part": part, "type": type_, "stereotype": stereotype}


def _example(row: Row, occupations: re.Pattern[str]) -> Example:
    number, _, sentence = row["line"].strip().partition(" ")
    place = whole_number(number)
    if place is None:
        raise UserError(f"{row['line'][:40]!r} must begin with its number")
    reading.check_words(sentence)
    text, marked = reading.without_brackets(sentence)
    if "[" in text or "]" in text:
        raise DroppedRowError(N_("its brackets do not pair"))
    if len(marked) < 2:
        raise UserError(f"{sentence!r} must hold an occupation and its pronoun in [ ]")
    antecedent, pronoun = marked[:2]
    others = [
        match.span()
        for match in occupations.finditer(text[: pronoun[0]])
        if match.end() <= antecedent[0] or antecedent[1] <= match.start()
    ]
    if len(others) != 1:
        raise DroppedRowError(N_("not exactly one other occupation before the pronoun"))
    group = f"winobias/{row['part']}/{row['type']}/{(place + 1) // 2}"
    example = reading.example_of(
        "winobias",
        text,
        pronoun,
        ((antecedent,), (others[0],)),
        (0,),
        group=group,
        type=f"type {row['type']}",
        stereotype=row["stereotype"],
    )
    minimal_pair = f"{group}/{example.factors.get('gender', '')}" if row["type"] == "1" else ""
    return replace(example, minimal_pair=minimal_pair)

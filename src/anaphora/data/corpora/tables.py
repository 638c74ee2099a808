"""Reader of a user's own examples in a table, .jsonl, .csv or .parquet.

The columns are text, language, pronoun [start, end], candidates (a list of [start, end], or of lists of these for
entities with several mentions) and antecedents (indices of candidates, from 0); group, minimal_pair, factors and split
are optional. Lists and factors are JSON in CSV cells, and may be JSON in Parquet cells. In .csv and .parquet, columns
without a name and the index that pandas writes are ignored.
"""

from __future__ import annotations

import csv
import io
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from anaphora.base.errors import UserError
from anaphora.base.files import parse_json
from anaphora.base.language import is_contradicted
from anaphora.data.corpora.division import (
    Origin,
    ReadingReport,
    check_one_split,
    existing_path,
    read_text,
    unknown_format,
)
from anaphora.data.corpora.reading import csv_errors, json_lines, parquet_rows, rows_below_header, split_examples
from anaphora.data.corpora.word_classes import WITHOUT_WORDS, lacks_words
from anaphora.data.example import Example, from_record
from anaphora.settings.data import SPLITS, OwnExamples

ORIGIN = Origin(files="a file .jsonl, .csv or .parquet")

_SUFFIXES = (".jsonl", ".csv", ".parquet")
_INDEX = re.compile(r"|Unnamed: \d+|__index_level_\d+__")
"""Pattern of the names of ignored columns: the index of a pandas table, and empty columns of a spreadsheet."""
_JSON_CELLS = ("pronoun", "candidates", "antecedents", "factors")


def read(settings: OwnExamples) -> tuple[dict[str, list[Example]], ReadingReport]:
    """Return the examples by split and the report.

    The splits are those of a column `split`; without it, groups are split at random. Rows whose text has placeholders
    for its words are dropped.

    Raises:
        UserError: a row is invalid (the message names file, line or row, field, value and what is allowed), only some
            rows have a split, a group or minimal pair is in two splits, a minimal pair is in two groups although splits
            or folds are drawn by group, or there is no row.
    """
    path = existing_path(settings.path, ORIGIN.files)
    examples: defaultdict[str | None, list[Example]] = defaultdict(list)  # by split
    first_of: dict[tuple[str, str], tuple[str, str | None]] = {}
    group_of: dict[str, tuple[str, str]] = {}
    dropped: list[tuple[str, str]] = []
    for where, row in rows(path):
        split = row.pop("split", None)
        if split is not None and split not in SPLITS:
            raise UserError(f"{where}, split: {split!r} must be one of {', '.join(SPLITS)}")
        if examples and (split is None) != (None in examples):
            raise UserError(f"{where}, split: some rows have a split and some have none; all or none must have one")
        try:
            example = from_record(row)
            if is_contradicted(example.language, example.text):
                letters = "no Chinese character" if example.language == "zh" else "Chinese characters alone"
                raise UserError(
                    f"language: {example.language!r} does not fit {example.text[:40]!r}, which has {letters}"
                )
        except UserError as error:
            raise UserError(f"{where}, {error}") from None
        if lacks_words(example.text):
            dropped.append((where, WITHOUT_WORDS))
            continue
        examples[split].append(example)
        pair, group = example.minimal_pair, example.group
        check_one_split(first_of, where, "group", group, split)
        check_one_split(first_of, where, "minimal_pair", pair, split)
        earlier, its_group = group_of.setdefault(pair, (where, group))
        if pair and group != its_group and (split is None or settings.folds):  # examples are divided by group
            raise UserError(
                f"{where}, minimal_pair: {pair[:60]!r} is in group {group[:60]!r} here and in group {its_group[:60]!r} "
                f"at {earlier}; the rows of a minimal pair must have one group"
            )
    if not examples and not dropped:
        raise without_rows(path, "text, language, pronoun, candidates and antecedents")
    report = ReadingReport(sum(map(len, examples.values())) + len(dropped), tuple(dropped))
    if None in examples:
        return split_examples(examples[None], None, settings), report
    return {name: examples[name] for name in SPLITS}, report


def without_rows(path: Path, columns: str) -> UserError:
    """Return the error for a table without rows; for a .csv file, it says that the first line must name `columns`."""
    header = f" below its first line, which must name the columns {columns}" if path.suffix.lower() == ".csv" else ""
    return UserError(f"{path}: it has no rows{header}")


def rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield ("file, line 3", values by column) for each row of a table, without empty cells.

    Raises:
        UserError: the suffix is not .jsonl, .csv or .parquet, or the file does not have the format of its suffix.
    """
    match path.suffix.lower():
        case ".jsonl":
            for where, row in json_lines(path):
                yield where, {name: value for name, value in row.items() if value is not None}
        case ".csv":
            yield from _csv(path)
        case ".parquet":
            for where, row in parquet_rows(path):
                yield where, {name: _cell(where, name, value) for name, value in row.items() if not _is_index(name)}
        case _:
            raise unknown_format(path, _SUFFIXES)


def _csv(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield ("file, line 3", values by column) for each non-empty row of a .csv file.

    Spreadsheets write empty rows above the header and at the end.
    """
    text = read_text(path)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=_delimiter(text), strict=True)
    with csv_errors(path, reader):
        while reader.fieldnames is not None and not any(map(str.strip, reader.fieldnames)):
            reader.fieldnames = next(reader.reader, None)
    for where, row in rows_below_header(path, reader):
        if any(row.values()):
            named = {name: value for name, value in row.items() if value and not _is_index(name)}
            yield where, {name: _cell(where, name, value) for name, value in named.items()}


def _delimiter(text: str) -> str:
    """Return the delimiter in the header of a .csv file: comma, else semicolon (used with decimal commas), else tab."""
    lines = (line.group() for line in re.finditer("[^\r\n]+", text))  # lazily, since the file may be long
    header = next((line for line in lines if line.strip(" ,;\t")), "")
    return next((each for each in (",", ";", "\t") if each in header), ",")


def _is_index(name: str) -> bool:
    return _INDEX.fullmatch(name) is not None


def _cell(where: str, name: str, value: Any) -> Any:
    """Return the value of a cell; a string in a column of lists or factors is parsed as JSON."""
    if name not in _JSON_CELLS or not isinstance(value, str):
        return value
    try:
        return parse_json(value, where)
    except UserError:
        raise UserError(f"{where}: {name} ({value[:80]!r}) must be JSON, e.g. [0, 3]") from None

"""Reader of a user's own examples in a .jsonl, .csv or .parquet file.

The columns are text, language, pronoun [start, end], candidates (a list of [start, end], or of lists of these for
entities with several mentions) and antecedents (indices of candidates, from 0); group, minimal_pair, factors and split
are optional. Lists and factors are JSON in CSV cells, and may be JSON in Parquet cells. In .csv and .parquet, columns
without a name and the index that pandas writes are ignored.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from anaphora.base.checks import one_among
from anaphora.base.errors import UserError
from anaphora.base.files import parse_json
from anaphora.base.language import is_contradicted
from anaphora.data.corpora.division import (
    Origin,
    ReadingReport,
    check_one_split,
    existing_path,
    lines_with_ends,
    read_text,
    unknown_format,
)
from anaphora.data.corpora.reading import csv_errors, json_lines, parquet_rows, rows_below_header, split_examples
from anaphora.data.corpora.word_classes import WITHOUT_WORDS, is_chinese_pronoun, lacks_words
from anaphora.data.example import Example, from_record
from anaphora.data.offsets import covers_words, other_units
from anaphora.settings.data import SPLITS, OwnExamples

ORIGIN = Origin(files="a file .jsonl, .csv or .parquet")

_SUFFIXES = (".jsonl", ".csv", ".parquet")
_INDEX = re.compile(r"|Unnamed: \d+|__index_level_\d+__")
"""Pattern of the names of ignored columns: the index of a pandas table, and empty columns of a spreadsheet."""
_UTF16 = "UTF-16 code units"
_UNITS = {unit for unit, _ in other_units("")}
_JSON_CELLS = ("pronoun", "candidates", "antecedents", "factors")


def read(settings: OwnExamples) -> tuple[dict[str, list[Example]], ReadingReport]:
    """Return the examples by split and a report on dropped rows.

    The splits are those of a column `split`; without it, groups are split at random. Rows whose text has placeholders
    for its words are dropped.

    Raises:
        UserError: a row is invalid, the offsets of Chinese texts count bytes or other units, only some rows have a
            split, a group or minimal pair is in two splits, a minimal pair is in two groups although whole groups are
            assigned to splits or folds at random, or there is no row.
    """
    path = existing_path(settings.path, ORIGIN.files)
    examples: defaultdict[str | None, list[Example]] = defaultdict(list)  # by split
    first_of: dict[tuple[str, str], tuple[str, str | None]] = {}
    group_of: dict[str, tuple[str, str]] = {}
    dropped: list[tuple[str, str]] = []
    units = _OtherUnits()
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
            _check_labels(example)
        except UserError as error:
            raise UserError(f"{where}, {error}") from None
        units.add(where, example)
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
    units.check()
    if not examples and not dropped:
        raise without_rows(path, "text, language, pronoun, candidates and antecedents")
    report = ReadingReport(sum(map(len, examples.values())) + len(dropped), tuple(dropped))
    if None in examples:
        return split_examples(examples[None], None, settings), report
    return {name: examples[name] for name in SPLITS}, report


def _check_labels(example: Example) -> None:
    """Check two factors (attributes): `focal` must include an antecedent, and `distance` must be a number of words."""
    focal, antecedents = example.factors.get("focal"), example.antecedents
    if antecedents and not set(antecedents) & set(example.focal):
        of = one_among([str(number) for number in antecedents])
        raise UserError(
            f"factors.focal: {focal!r} holds no antecedent; it must include {of} (candidates in text order)"
        )
    distance = example.factors.get("distance", "")
    if distance and example.distance is None:
        raise UserError(
            f"factors.distance: {distance[:80]!r} must be a whole number of words; give a label of your own another "
            "name"
        )


class _OtherUnits:
    """Test for offsets of Chinese texts that are not in characters but in another unit, such as bytes.

    In Chinese, wrong offsets are hard to detect, since nearly every span covers whole words. The test therefore uses
    the pronouns in those rows whose spans differ between characters and the other unit. If, in all these rows, the span
    of the pronoun covers a pronoun in the other unit but not in characters, the file uses the other unit.
    """

    def __init__(self) -> None:
        self._first: dict[str, str] = {}  # message about the first row whose offsets fit, by unit
        self._refuted: set[str] = set()

    def add(self, where: str, example: Example) -> None:
        """Record in which units of offsets the span of a row's pronoun covers a Chinese pronoun."""
        text, spans = example.text, example.spans
        if example.language != "zh":
            return
        is_right = is_chinese_pronoun(text, example.pronoun)
        if is_right and max(text) <= "\uffff":
            self._refuted |= _UNITS - {_UTF16}
            return
        for unit, convert in other_units(text):
            converted = [convert(span) for span in spans]
            if converted == spans:
                continue
            if is_right or not covers_words(text, converted) or not is_chinese_pronoun(text, converted[0]):
                self._refuted.add(unit)
            else:
                start, end = converted[0]
                self._first.setdefault(
                    unit,
                    f"{where}, pronoun: {list(example.pronoun)} covers {text[slice(*example.pronoun)]!r}; offsets are "
                    f"characters (code points) from 0, end exclusive; these fit as {unit}, in which the pronoun is "
                    f"{text[start:end]!r}",
                )

    def check(self) -> None:
        """Check that the offsets of the rows do not fit a unit such as bytes better than characters.

        Raises:
            UserError: another unit fits all rows; the message shows the first row whose spans differ in this unit.
        """
        for unit, message in self._first.items():
            if unit not in self._refuted:
                raise UserError(message)


def without_rows(path: Path, columns: str) -> UserError:
    """Return the error for a table without rows; for .csv, it also says that the first line names the columns."""
    header = f" below its first line, which must name the columns {columns}" if path.suffix.lower() == ".csv" else ""
    return UserError(f"{path}: it has no rows{header}")


def rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield ("file, line 3", values by column) for each row of a table, without empty cells.

    Raises:
        UserError: the suffix is not .jsonl, .csv or .parquet, or the file does not have its format.
    """
    match path.suffix.lower():
        case ".jsonl":
            for where, row in json_lines(path):
                yield where, {name: value for name, value in row.items() if value is not None}
        case ".csv":
            for where, row in csv_rows(path):
                yield where, {name: _cell(where, name, value) for name, value in row.items() if value}
        case ".parquet":
            for where, row in parquet_rows(path):
                yield where, {name: _cell(where, name, value) for name, value in row.items() if not _is_index(name)}
        case _:
            raise unknown_format(path, _SUFFIXES)


def csv_rows(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield ("file, line 3", cells by column) for each row below the header of a .csv file.

    Rows without text, which spreadsheets write above the header and at the end, are skipped, and so is a line "sep=;".

    Raises:
        UserError: the file is not UTF-8, or `rows_below_header` raises an error about the header, a row or a quote.
    """
    text = read_text(path)
    reader = csv.DictReader(lines_with_ends(text), delimiter=_delimiter(text), strict=True)
    with csv_errors(path, reader):
        while reader.fieldnames is not None and {name.strip() for name in reader.fieldnames} <= {"", "sep="}:
            reader.fieldnames = next(reader.reader, None)
    for where, row in rows_below_header(path, reader):
        if any(row.values()):
            yield where, {name: value for name, value in row.items() if not _is_index(name)}


def _delimiter(text: str) -> str:
    """Return the delimiter of a .csv file: the first of comma, semicolon and tab that its header contains."""
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
        shown = '{"kind": "role"}' if name == "factors" else "[0, 3]"
        raise UserError(f"{where}: {name} ({value[:80]!r}) must be JSON, e.g. {shown}") from None

"""Rows of files and of the hub, kept or dropped: shared by all readers of public corpora.

A row that makes no item is dropped with a reason; a row that breaks the format of its file is an error.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar
from xml.etree import ElementTree

from anaphora.base.errors import UserError, one_line
from anaphora.base.files import parse_json
from anaphora.base.language import cuts_word
from anaphora.base.locale.translation import N_
from anaphora.data.corpora.division import ReadingReport, non_overlapping, occurrences, read_lines, split_by_group
from anaphora.data.corpora.word_classes import WITHOUT_WORDS, lacks_words
from anaphora.data.example import Example, Span, in_text_order
from anaphora.settings.data import ExternalCorpus

BLANK = "_"
"""The pronoun's substitute where a corpus leaves a gap, as WinoGrande writes it."""

_QUOTE_ERRORS = ("',' expected after '\"'", "unexpected end of data")
"""What Python says where a quote is missing, or stands alone inside a cell."""

Row = Mapping[str, Any]
Converted = TypeVar("Converted")

_GENDERS = {
    "female": ("she", "her", "hers", "herself", "她"),
    "male": ("he", "him", "his", "himself", "他"),
    "neuter": ("it", "its", "itself", "它", "它们"),
}
_GENDER_OF = {form: gender for gender, forms in _GENDERS.items() for form in forms}


class DroppedRowError(Exception):
    """An error for a row that makes no item; its text is the reason, without details of the row."""


class RowReader:
    """A reader that counts rows and records those that are dropped."""

    def __init__(self) -> None:
        self.rows = 0
        self.dropped: list[tuple[str, str]] = []

    def convert(
        self, rows: Iterable[tuple[str, Row]], make: Callable[[Row], Converted]
    ) -> Iterator[tuple[str, Converted]]:
        """Yield (where, converted row), without the rows for which `make` raises `DroppedRowError`.

        Raises:
            UserError: what `make` raises, with file and line before it.
        """
        for where, row in rows:
            self.rows += 1
            try:
                converted = make(row)
            except DroppedRowError as reason:
                self.dropped.append((where, str(reason)))
            except UserError as error:
                raise UserError(f"{where}, {error}") from None
            else:
                yield where, converted

    def report(self) -> ReadingReport:
        """Return the number of rows, and the dropped ones with reasons."""
        return ReadingReport(self.rows, tuple(self.dropped))


def json_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield ("file, line 3", object) for every line that is not empty.

    Raises:
        UserError: a line is no JSON object.
    """
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        row = parse_json(line, where)
        if not isinstance(row, dict):
            raise UserError(f'{where}: {line.strip()[:40]!r} must be an object, e.g. {{"text": ...}}')
        yield where, row


def parquet_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of a Parquet file with their positions, without empty cells.

    Raises:
        UserError: it is none.
    """
    import pyarrow
    from pyarrow import parquet

    try:
        table_rows = parquet.read_table(path).to_pylist()
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise UserError(f"{path}: not a Parquet file, or a damaged one: {one_line(error)[:200]}") from None
    for number, row in enumerate(table_rows, start=1):
        yield (
            f"{path}, row {number}",
            {name: _plain_dictionaries(value) for name, value in row.items() if value is not None},
        )


def xml_root(path: Path) -> ElementTree.Element:
    """Return the root of an XML file, in the encoding that it declares.

    Raises:
        UserError: it is none, or in an encoding that the library cannot read, such as GB2312.
    """
    content = path.read_bytes()
    try:
        return ElementTree.fromstring(content)
    except ElementTree.ParseError as error:
        raise UserError(f"{path}: not XML ({error})") from None
    except (ValueError, LookupError):
        declaration = content.partition(b">")[0].decode("utf-8", "replace")
        raise UserError(
            f"{path}, line 1: {declaration[:80]!r} names an encoding that cannot be read; save the file as UTF-8, and "
            'write encoding="UTF-8" there'
        ) from None


def _plain_dictionaries(value: Any) -> Any:
    """Convert Parquet maps (pairs) and structs (None for absent keys) to plain dictionaries."""
    if isinstance(value, list) and value and all(isinstance(each, tuple) for each in value):
        value = dict(value)
    if isinstance(value, Mapping):
        return {name: each for name, each in value.items() if each is not None}
    return value


@contextmanager
def csv_errors(path: Path, rows: csv.DictReader[str]) -> Iterator[None]:
    """Report a table row that cannot be read by its first line.

    Raises:
        UserError: a quote is not where the format wants it, or a cell has more characters than the reader takes.
    """
    try:
        yield
    except csv.Error as error:
        where = f"{path}, line {rows.line_num + 1}"
        if str(error) in _QUOTE_ERRORS:
            raise UserError(
                f"{where}: a cell that begins with a quote must end with one, right before "
                f"{rows.reader.dialect.delimiter!r} or the end of the line; a quote inside it is written twice "
                '("")'
            ) from None
        raise UserError(f"{where}: {error}") from None


def rows_below_header(
    path: Path, rows: csv.DictReader[str], columns: Sequence[str] = ()
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield ("file, line 3", cells by column) of a table.

    Args:
        path: of the file, for errors.
        rows: of the table.
        columns: those that must be there.

    Raises:
        UserError: a column is missing or there twice, or a row has other cells than the header.
    """
    with csv_errors(path, rows):
        header = rows.fieldnames or ()
        top = f"{path}, line {max(rows.reader.line_num, 1)}"
        missing = [column for column in columns if column not in header]
        if missing:
            raise UserError(f"{top}: columns {', '.join(missing)} are missing")
        named = [column for column in header if column]
        if len(set(named)) < len(named):
            raise UserError(f"{top}: two columns have the same name ({', '.join(header)})")
        for row in rows:
            where = f"{path}, line {rows.line_num}"
            if None in row or None in row.values():
                raise UserError(f"{where}: the number of cells differs from the header's {len(header)}")
            if len(header) > 1 and list(row.values()) == list(header):
                raise UserError(f"{where}: the header stands here again; leave it out")
            yield where, row


def tab_separated(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield ("file, line 3", cells by column) of a file with a header; quotes are ordinary characters.

    Raises:
        UserError: a column is missing, a row has other cells than the header, or there is no row.
    """
    rows = csv.DictReader(read_lines(path), delimiter="\t", quoting=csv.QUOTE_NONE)
    where = ""
    for where, row in rows_below_header(path, rows, columns):
        yield where, row
    if not where:
        raise UserError(f"{path}: it has no row below the header")


def text_of(row: Row, field: str) -> str:
    """Return a field that must be text.

    Raises:
        UserError: it is missing or holds something else.
    """
    value = row.get(field)
    if not isinstance(value, str) or not value.strip():
        raise UserError(f"{field}: {value!r} must be text")
    return value


def check_words(text: str) -> None:
    """Check that a text has its words.

    Raises:
        DroppedRowError: [WORD] or _ stands in their place.
    """
    if lacks_words(text):
        raise DroppedRowError(WITHOUT_WORDS)


def check_written(field: str, text: str, span: Span, words: str) -> None:
    """Check that a text has some words at an offset, which may wrongly count bytes or UTF-16 units.

    Raises:
        UserError: other characters stand there, or a part of a longer word.
    """
    start, end = span
    if text[start:end] != words:
        raise UserError(f"{field}: the text at {start} is {text[start:end]!r}, not {words!r}")
    if cuts_word(text, span):
        raise UserError(
            f"{field}: {words!r} at {start} is a part of a word, in {text[max(0, start - 10) : end + 10]!r}"
        )


def find_mentions(names: Sequence[str], text: str, pronoun: Span) -> tuple[tuple[Span, ...], ...]:
    """Find the mentions of several entities in a text: whole words, never inside a longer entity's name.

    They are looked for as the name is written, else in other case, else with an s behind them: plurals, and possessives
    that lack the apostrophe.

    Raises:
        DroppedRowError: two names are the same, or one is not in the text.
    """
    if len({name.lower() for name in names}) < len(names):
        raise DroppedRowError(N_("two candidates are the same"))
    taken = [pronoun]
    mentions: dict[int, list[Span]] = {}
    for index in sorted(range(len(names)), key=lambda index: -len(names[index])):
        ways = (_as_written, _in_other_case, _with_an_s)
        mentions[index] = next(filter(None, (non_overlapping(way(names[index], text), taken) for way in ways)), [])
        if not mentions[index]:
            raise DroppedRowError(N_("a candidate is not in the sentence"))
        taken += mentions[index]
    return tuple(tuple(mentions[index]) for index in range(len(names)))


def _as_written(name: str, text: str) -> list[Span]:
    return occurrences(name, text)


def _in_other_case(name: str, text: str) -> list[Span]:
    return occurrences(name.lower(), text.lower()) if len(text.lower()) == len(text) else []


def _with_an_s(name: str, text: str) -> list[Span]:
    return [*_in_other_case(f"{name}s", text), *_in_other_case(f"{name}es", text)]


def example_of(
    corpus: str,
    text: str,
    pronoun: Span,
    mentions: Sequence[tuple[Span, ...]],
    right: tuple[int, ...],
    language: str = "en",
    group: str = "",
    minimal_pair: str = "",
    **factors: str,
) -> Example:
    """Build an example with the factors of all corpora: corpus, form, and gender if the form decides it.

    Args:
        corpus, text, pronoun, language, group, minimal_pair: its own.
        mentions: of each candidate, in any order.
        right: the numbers of the antecedents among them.
        factors: further ones; a gender among them counts instead of the form's.

    Raises:
        DroppedRowError: the text has placeholders for its words.
    """
    check_words(text)
    candidates, antecedents, _ = in_text_order(tuple(mentions), right)
    form = text[slice(*pronoun)].lower()
    known = {"gender": _GENDER_OF[form]} if form in _GENDER_OF else {}
    return Example(
        text=text,
        language=language,
        pronoun=pronoun,
        candidates=candidates,
        antecedents=antecedents,
        group=group,
        minimal_pair=minimal_pair,
        factors={"corpus": corpus, "form": form, **known, **factors},
    )


def adjacent_groups(corpus: str, questions: Sequence[tuple[Hashable, Hashable]]) -> list[tuple[str, str]]:
    """Return group and minimal pair of adjacent items in a file that names neither.

    Args:
        corpus: the name with which both begin.
        questions: the candidates of each item, and the right one.

    Returns:
        Items in a row with the same candidates share a group; each two of them with different answers are a minimal
        pair.
    """
    names = []
    for number, (_, run) in enumerate(groupby(questions, key=lambda question: question[0])):
        answers = [answer for _, answer in run]
        for place in range(len(answers)):
            pair = answers[place // 2 * 2 : place // 2 * 2 + 2]
            minimal_pair = f"{corpus}/{number}/{place // 2}" if len(set(pair)) == 2 else ""
            names.append((f"{corpus}/{number}", minimal_pair))
    return names


def in_adjacent_groups(
    corpus: str, examples: Sequence[Example], questions: Sequence[tuple[Hashable, Hashable]]
) -> list[Example]:
    """Return the examples of a file with `group` and `minimal_pair` set by `adjacent_groups`."""
    names = adjacent_groups(corpus, questions)
    return [
        replace(example, group=group, minimal_pair=minimal_pair)
        for example, (group, minimal_pair) in zip(examples, names, strict=True)
    ]


def split_examples(
    train: Sequence[Example], test: Sequence[Example] | None, settings: ExternalCorpus
) -> dict[str, list[Example]]:
    """Split examples: a public test part stays whole and dev is taken from the rest; else by the shares."""
    if test is None:
        return split_by_group(train, settings.dev_share, settings.test_share, settings.seed)
    splits = split_by_group(train, settings.dev_share, 0.0, settings.seed)
    splits["test"] = list(test)
    return splits

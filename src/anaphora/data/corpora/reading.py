"""Functions shared by the corpus readers: reading of rows, and their conversion to Examples.

A row that cannot become an example is dropped with a reason. A missing file, or a row that violates the format of its
file, raises a `UserError` that names file, line, field, value and what is allowed.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar
from xml.etree import ElementTree

from anaphora.base.errors import UserError, one_line
from anaphora.base.files import parse_json
from anaphora.base.language import cuts_word
from anaphora.base.translation import N_
from anaphora.data.corpora.division import ReadingReport, non_overlapping, occurrences, read_lines, split_by_group
from anaphora.data.corpora.word_classes import WITHOUT_WORDS, lacks_words
from anaphora.data.example import Example, Span, in_text_order
from anaphora.settings.data import ExternalCorpus

BLANK = "_"  # symbol in place of the pronoun in corpora with a blank or mask, such as WinoGrande

_ROWS_AT_ONCE = 8192  # rows of a Parquet file converted to Python objects at a time, to limit memory
_BRACKETED = re.compile(r"\[\s*(.+?)\s*\]")
_QUOTE_ERRORS = ("',' expected after '\"'", "unexpected end of data")
"""Messages of Python's csv module for a missing closing quote or an unpaired quote inside a quoted cell."""

_LONG_CELL_ERROR = "field larger than field limit"

Row = Mapping[str, Any]
Converted = TypeVar("Converted")

_GENDERS = {
    "female": ("she", "her", "hers", "herself", "她"),
    "male": ("he", "him", "his", "himself", "他"),
    "neuter": ("it", "its", "itself", "它", "它们"),
}
_GENDER_OF = {form: gender for gender, forms in _GENDERS.items() for form in forms}


class DroppedRowError(Exception):
    """Error for a row that cannot become an example; its text is the reason, without details of the row."""


class RowReader:
    """Converter of the rows of a corpus to examples.

    `rows` is the number of rows so far, and `dropped` lists (file and line, reason) for each dropped row.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.dropped: list[tuple[str, str]] = []

    def convert(
        self, rows: Iterable[tuple[str, Row]], make: Callable[[Row], Converted]
    ) -> Iterator[tuple[str, Converted]]:
        """Yield (file and line, converted row) for each row; a row is dropped if `make` raises `DroppedRowError`.

        File and line are added to any `UserError`.
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
        """Return the number of rows so far, and the dropped rows with reasons."""
        return ReadingReport(self.rows, tuple(self.dropped))


def json_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield ("file, line 3", object) for every non-blank line of a JSON lines file.

    Raises:
        UserError: a line is not a JSON object, an object has a field twice, or `read_lines` cannot read the file.
    """
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        if line.strip() in ("[", "{"):  # a JSON array, or an object over several lines
            raise UserError(
                f'{where}: {line.strip()!r} is no whole JSON object; write each row as {{"text": ...}} on one line'
            )
        row = parse_json(line, where, members=partial(_object_of_distinct, where))
        if not isinstance(row, dict):
            raise UserError(f'{where}: {line.strip()[:40]!r} must be an object, e.g. {{"text": ...}}, one on each line')
        yield where, row


def _object_of_distinct(where: str, members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object with the given (name, value) pairs; raise UserError if a name occurs twice."""
    content = dict(members)
    if len(content) < len(members):
        names = [name for name, _ in members]
        twice = next(name for name in names if names.count(name) > 1)
        raise UserError(f"{where}, {twice[:40]}: the field is written twice in one object")
    return content


def parquet_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield ("file, row 3", values by column) for every row of a Parquet file, counted from 1, without null values.

    Raises:
        UserError: the file is not a Parquet file, or is damaged.
    """
    import pyarrow
    from pyarrow import parquet

    def table_rows() -> Iterator[dict[str, Any]]:
        try:
            for part in parquet.read_table(path).to_batches(max_chunksize=_ROWS_AT_ONCE):
                yield from part.to_pylist()
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            raise UserError(f"{path}: not a Parquet file, or a damaged one: {one_line(error)[:200]}") from None

    for number, row in enumerate(table_rows(), start=1):
        named = {name: _plain_dictionaries(value) for name, value in row.items() if value is not None}
        yield f"{path}, row {number}", named


def xml_root(path: Path) -> ElementTree.Element:
    """Return the root of an XML file, decoded with the encoding that the file declares.

    Raises:
        UserError: the file is not XML, or the parser does not support its encoding, such as GB2312.
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
    """Convert a Parquet map (a list of pairs) or struct to a dictionary without None values; keep any other value."""
    if isinstance(value, list) and value and all(isinstance(each, tuple) for each in value):
        value = dict(value)
    if isinstance(value, Mapping):
        return {name: each for name, each in value.items() if each is not None}
    return value


@contextmanager
def csv_errors(path: Path, rows: csv.DictReader[str]) -> Iterator[None]:
    """Convert errors of the csv module, such as misplaced quotes, to a `UserError` that names file and line."""
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
        if str(error).startswith(_LONG_CELL_ERROR):
            raise UserError(
                f"{where}: a cell has more than {csv.field_size_limit():,} characters, the most that a table may have; "
                "its closing quote may be missing; write texts that are longer as .jsonl or .parquet"
            ) from None
        raise UserError(f"{where}: {error}") from None


def rows_below_header(
    path: Path, rows: csv.DictReader[str], columns: Sequence[str] = ()
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield ("file, line 3", cells by column) for every row below the header of a table; empty lines are skipped.

    The line number of a row that extends over several lines is that of its last line.

    Raises:
        UserError: one of `columns` is missing, two columns have the same name, a row has more or fewer cells than the
            header or repeats the header, or a quote is misplaced.
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
                raise UserError(f"{where}: the header is repeated here; leave it out")
            yield where, row


def tab_separated(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield ("file, line 3", cells by column) for every row of a file with a header; quotes are ordinary characters.

    Raises:
        UserError: the errors of `rows_below_header`, or the file has no row below the header.
    """
    rows = csv.DictReader(read_lines(path), delimiter="\t", quoting=csv.QUOTE_NONE)
    where = ""
    for where, row in rows_below_header(path, rows, columns):
        yield where, row
    if not where:
        raise UserError(f"{path}: it has no row below the header")


def text_of(row: Row, field: str) -> str:
    """Return the text of a field, unchanged; raise UserError if it is missing, blank or not a string."""
    value = row.get(field)
    if not isinstance(value, str) or not value.strip():
        raise UserError(f"{field}: {value!r} must be text")
    return value


def check_words(text: str) -> None:
    """Raise DroppedRowError if words of a text are replaced by placeholders such as [WORD] (`lacks_words`)."""
    if lacks_words(text):
        raise DroppedRowError(WITHOUT_WORDS)


def check_written(field: str, text: str, span: Span, words: str) -> None:
    """Check that a text has the given words at a span, since offsets may wrongly count bytes or UTF-16 units.

    Raises:
        UserError: the span covers other characters, or starts or ends inside a word; the message names `field`.
    """
    start, end = span
    if text[start:end] != words:
        raise UserError(f"{field}: the text at {start} is {text[start:end]!r}, not {words!r}")
    if cuts_word(text, span):
        raise UserError(
            f"{field}: {words!r} at {start} is a part of a word, in {text[max(0, start - 10) : end + 10]!r}"
        )


def without_brackets(sentence: str) -> tuple[str, list[Span]]:
    """Remove brackets and the spaces on their inner side; return the sentence and the spans of the bracketed words."""
    text, at, spans = "", 0, []
    for match in _BRACKETED.finditer(sentence):
        text += sentence[at : match.start()]
        spans.append((len(text), len(text) + len(match[1])))
        text += match[1]
        at = match.end()
    return text + sentence[at:], spans


def find_mentions(names: Sequence[str], text: str, pronoun: Span) -> tuple[tuple[Span, ...], ...]:
    """Return the spans of the mentions of each name: whole words outside the pronoun and outside longer names.

    A name is searched for as written. If it does not occur, capitalisation is ignored. If it still does not occur, -s
    or -es is added to it, as in plurals and in possessives without an apostrophe.

    Raises:
        DroppedRowError: two names are equal apart from case, or a name is not in the text.
    """
    if len({name.lower() for name in names}) < len(names):
        raise DroppedRowError(N_("two candidates are the same"))
    taken = [pronoun]
    mentions: dict[int, list[Span]] = {}
    for index in sorted(range(len(names)), key=lambda index: -len(names[index])):
        searches = (non_overlapping(spans, taken) for spans in _searches(names[index], text))
        mentions[index] = next(filter(None, searches), [])
        if not mentions[index]:
            raise DroppedRowError(N_("a candidate is not in the sentence"))
        taken += mentions[index]
    return tuple(tuple(mentions[index]) for index in range(len(names)))


def _searches(name: str, text: str) -> Iterator[list[Span]]:
    """Yield the occurrences of a name as it is, then in any capitalisation, then in any with -s or -es added."""
    yield occurrences(name, text)
    lower = text.lower()
    if len(lower) == len(text):  # otherwise its offsets are not those of the text
        yield occurrences(name.lower(), lower)
        yield [*occurrences(f"{name}s".lower(), lower), *occurrences(f"{name}es".lower(), lower)]


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
    """Build an example with the factors (attributes) `corpus`, `form` (lower-case pronoun) and, if known, `gender`.

    `mentions` are the spans of each candidate's mentions, in any order, and `right` the indices of the antecedents. The
    gender is that of the form unless `factors` has a `gender`.

    Raises:
        DroppedRowError: the text has placeholders for its words.
        UserError: a field does not fit the text.
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


def in_adjacent_groups(
    corpus: str, examples: Sequence[Example], questions: Sequence[tuple[Hashable, Hashable]]
) -> list[Example]:
    """Return copies of a file's examples with `group` and `minimal_pair` set, for files that do not name groups.

    Adjacent examples with the same key form a group. The first and the second example of a group are a minimal pair if
    their correct answers differ, likewise the third and the fourth, and so on.

    Args:
        corpus: beginning of the names of all groups and minimal pairs.
        examples: examples in the order of the file.
        questions: (key, correct answer) of each example; the key is usually the set of the candidates.
    """
    grouped: list[Example] = []
    runs = groupby(zip(examples, questions, strict=True), key=lambda item: item[1][0])
    for number, (_, run) in enumerate(runs):
        items = list(run)
        for place, (example, _) in enumerate(items):
            answers = {answer for _, (_, answer) in items[place // 2 * 2 : place // 2 * 2 + 2]}
            pair = f"{corpus}/{number}/{place // 2}" if len(answers) == 2 else ""
            grouped.append(replace(example, group=f"{corpus}/{number}", minimal_pair=pair))
    return grouped


def read_examples(
    settings: ExternalCorpus,
    make: Callable[[Row], Example],
    train: Iterable[tuple[str, Row]],
    test: Iterable[tuple[str, Row]] | None = None,
) -> tuple[dict[str, list[Example]], ReadingReport]:
    """Convert rows with `make`; return the examples, divided by `split_examples`, and a report on dropped rows."""
    reading = RowReader()
    first = [example for _, example in reading.convert(train, make)]
    second = None if test is None else [example for _, example in reading.convert(test, make)]
    return split_examples(first, second, settings), reading.report()


def split_examples(
    train: Sequence[Example], test: Sequence[Example] | None, settings: ExternalCorpus
) -> dict[str, list[Example]]:
    """Divide examples into train, dev and test, keeping groups together.

    If `test` is given, it is the test split, and `train` is divided into train and dev. Items are divided at random, by
    the shares in the settings.
    """
    if test is None:
        return split_by_group(train, settings.dev_share, settings.test_share, settings.seed)
    return {**split_by_group(train, settings.dev_share, 0.0, settings.seed), "test": list(test)}

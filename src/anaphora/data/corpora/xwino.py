"""Reader of XWINO (Tikhonov and Ryabinin 2021), English and Chinese: sentences with token spans.

A file has no header and seven columns, separated by tabs: language, source, English reference, sentence, tokens (JSON),
pronoun [text, [start, end), tokens] and two candidates [text, [start, end), tokens, is correct]. Spans count tokens
from 0. The reader locates the tokens in the sentence from left to right.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from anaphora.base.errors import UserError
from anaphora.base.files import parse_json
from anaphora.base.language import LANGUAGES
from anaphora.base.translation import N_
from anaphora.data.corpora import reading
from anaphora.data.corpora.division import Origin, ReadingReport, existing_path, read_lines
from anaphora.data.corpora.reading import DroppedRowError, Row
from anaphora.data.example import Example, Span
from anaphora.settings.data import Xwino

ORIGIN = Origin(files="a .tsv file of its rows, or a folder of them", licence="Apache 2.0", names=("*.tsv",))

_COLUMNS = ("language", "source", "reference", "sentence", "tokens", "pronoun", "candidates")
_QUOTES = ("``", "''")  # English tokens for a straight double quote


def read(settings: Xwino) -> tuple[dict[str, list[Example]], ReadingReport]:
    """Return the examples by split and a report on dropped rows; `in_adjacent_groups` sets groups and minimal pairs.

    In a folder, all .tsv files are read, in order of their names. Rows in languages other than English and Chinese are
    dropped, as are rows that mark the end of 因为 as the pronoun.
    """
    path = existing_path(settings.path, ORIGIN.files)
    files = sorted(path.glob("*.tsv")) if path.is_dir() else [path]
    if not files:
        raise UserError(f"data.path ({settings.path}): the folder has no file that ends in .tsv")
    reader = reading.RowReader()
    examples: list[Example] = []
    for file in files:
        converted = [example for _, example in reader.convert(_rows(file), _example)]
        questions = [
            (frozenset(one.words(index).lower() for index in range(2)), one.words(one.antecedents[0]).lower())
            for one in converted
        ]
        examples += reading.in_adjacent_groups(f"xwino/{file.stem}", converted, questions)
    return reading.split_examples(examples, None, settings), reader.report()


def _rows(path: Path) -> Iterator[tuple[str, Row]]:
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        cells: list[Any] = line.split("\t")
        if len(cells) != len(_COLUMNS):
            raise UserError(f"{where}: {len(cells)} cells; {', '.join(_COLUMNS)} are needed, separated by tabs")
        for place in range(4, 7):
            try:
                cells[place] = parse_json(cells[place], where)
            except UserError:
                raise UserError(f"{where}, {_COLUMNS[place]}: {cells[place][:80]!r} must be JSON") from None
        yield where, dict(zip(_COLUMNS, cells, strict=True))


def _example(row: Row) -> Example:
    if row["language"] not in LANGUAGES:
        raise DroppedRowError(N_("its language is none of en, zh"))
    text = row["sentence"].rstrip()
    tokens, token_spans = row["tokens"], _token_spans(row["tokens"], text)
    pronoun = _character_span("pronoun", row["pronoun"], tokens, token_spans)
    form = text[slice(*pronoun)]
    if form == "为":
        raise DroppedRowError(N_("为 is marked, the end of 因为, in place of a pronoun"))
    listed = row["candidates"]
    if not isinstance(listed, list) or len(listed) != 2 or not all(isinstance(each, list) for each in listed):
        raise UserError(f"candidates: {listed!r} must be two")
    right = [index for index, each in enumerate(listed) if each and each[-1] is True]
    if len(right) != 1:
        raise UserError(f"candidates: {len(right)} of {listed!r} are right; one must be")
    spans = tuple((_character_span("candidates", each, tokens, token_spans),) for each in listed)
    return reading.example_of("xwino", text, pronoun, spans, tuple(right), language=row["language"])


def _token_spans(tokens: Any, text: str) -> list[Span]:
    """Return the character span of each token in the text, without spaces at the token's ends."""
    spans: list[Span] = []
    at = 0
    for token in tokens if isinstance(tokens, list) else [None]:
        if not isinstance(token, str):
            raise UserError(f"tokens: {tokens!r} must be a list of texts")
        words = token.strip()
        start = text.find(words, at)
        if words in _QUOTES and (start < 0 or '"' in text[at:start]):
            words, start = '"', text.find('"', at)
        if start < 0:
            raise UserError(f"tokens: {token!r} does not follow in {text!r}")
        at = start + len(words)
        spans.append((start, at))
    return spans


def _character_span(field: str, marked: Any, tokens: list[str], spans: list[Span]) -> Span:
    """Return the character span of a pronoun or candidate, marked as [text, [start, end), tokens, ...]."""
    try:
        (start, end), listed = marked[1:3]
    except (TypeError, ValueError, KeyError):
        raise UserError(f"{field}: {marked!r} must be [text, [start, end], tokens]") from None
    if not (type(start) is int and type(end) is int and 0 <= start < end <= len(spans)):
        raise UserError(f"{field}: {[start, end]} must be tokens from 0 to {len(spans)}, the end after the last")
    if tokens[start:end] != listed:
        raise UserError(f"{field}: tokens {start} to {end - 1} are {tokens[start:end]}, not {listed!r}")
    return (spans[start][0], spans[end - 1][1])

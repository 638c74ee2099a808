"""Reader of LitBank (Bamman et al. 2020): coreference in English novels, <id>_<title>_brat.txt and .ann.

The .txt file has one sentence per line, with spaces between words. The .ann file has tab-separated rows: MENTION, id,
first sentence, first word, last sentence, last word (counted from 0, inclusive), words, entity type, and PRON, PROP or
NOM; COREF, mention id, entity; and COP or APPOS with two mention ids, for mentions that describe each other. Head words
are not annotated; `head_word` finds them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from anaphora.base.errors import UserError, counted
from anaphora.base.files import parse_json
from anaphora.base.translation import N_
from anaphora.data.corpora.coreference import NO_LAYER, Document, Mention, Unusable, read_documents
from anaphora.data.corpora.division import Origin, ReadingReport, existing_path, files_at_path, read_lines
from anaphora.data.corpora.word_classes import head_word, placeholders
from anaphora.data.example import Example
from anaphora.settings.data import LitBank

ORIGIN = Origin(files="a folder of <id>_<title>_brat.txt and .ann", licence="CC BY 4.0", names=("*.ann", "*.txt"))

BOOK_LIST_FORMATS = "a list of books, .jsonl, .jsonl.gz or .txt"
NO_CHAIN = N_("in no chain: it describes another mention (copula or apposition)")
NO_COREF = N_("in no chain: no COREF row names its entity")
_FORMS = {"PRON": "pronoun", "PROP": "proper", "NOM": "nominal"}


def read(settings: LitBank) -> tuple[dict[str, list[Example]], ReadingReport]:
    """Return the examples by split and a report on dropped mentions; a book stays in one split.

    Books are split at random. Mentions without an entity, and books without mentions, are dropped. If `seen_in` is set,
    the factor (attribute) `seen` is "yes" for the listed books and "no" for others.
    """
    seen = None
    if settings.seen_in is not None:
        seen = _titles(existing_path(settings.seen_in, BOOK_LIST_FORMATS, "data.seen_in"))
    return read_documents(settings, _annotations(settings), {}, lambda path: iter([_document(path, seen)]))


def files(settings: LitBank) -> dict[str, Path]:
    """Return the files at `data.path`, keyed by name, and the file `data.seen_in`, if set, with the key "seen_in"."""
    books = files_at_path(settings)
    if settings.seen_in is None:
        return books
    return {**books, "seen_in": existing_path(settings.seen_in, BOOK_LIST_FORMATS, "data.seen_in")}


def _annotations(settings: LitBank) -> list[Path]:
    folder = existing_path(settings.path, ORIGIN.files)
    annotations = sorted(folder.glob("*.ann"))
    if not annotations:
        raise UserError(
            f"data.path ({settings.path}) must be a folder with <book>.ann and <book>.txt; no .ann is there"
        )
    for path in annotations:
        if not path.with_suffix(".txt").exists():
            raise UserError(f"{path}: its text {path.with_suffix('.txt').name} is missing")
    return annotations


def _document(path: Path, seen: frozenset[str] | None) -> tuple[Document, Unusable]:
    sentences = [line.split() for line in read_lines(path.with_suffix(".txt"))]
    starts = [0, *accumulate(map(len, sentences[:-1]))]
    mentions: dict[str, tuple[int, int, str]] = {}
    entities: dict[str, str] = {}
    described: set[str] = set()
    words = [word for sentence in sentences for word in sentence]
    for number, line in enumerate(read_lines(path), start=1):
        cells = line.split("\t")
        where = f"{path}, line {number}"
        match cells:
            case ["MENTION", name, _, _, _, _, written, _, category]:
                first, end = _word_range(where, cells[2:6], sentences, starts)
                if words[first:end] != written.split():
                    raise UserError(f"{where}, words: {written!r} is not what the text has there: {words[first:end]}")
                if category not in _FORMS:
                    raise UserError(f"{where}, category: {category!r} must be one of {', '.join(_FORMS)}")
                if name in mentions:
                    raise UserError(
                        f"{where}, id: {name!r} names a mention above too; every mention must have an id of its own"
                    )
                mentions[name] = (first, end, _FORMS[category])
            case ["COREF", name, entity]:
                if entities.setdefault(name, entity) != entity:
                    raise UserError(
                        f"{where}, id: {name!r} is in entity {entity} here and in entity {entities[name]} above; a "
                        "mention must have one entity"
                    )
            case ["COP" | "APPOS", name, other]:
                described |= {name, other}
            case [""]:
                pass
            case _:
                raise UserError(
                    f"{where}: {line[:60]!r} must be a MENTION row (9 cells) or a COREF, COP or APPOS row (3 cells)"
                )
    unknown = entities.keys() - mentions.keys()
    if unknown:
        raise UserError(f"{path}: COREF names mentions that have no MENTION row: {', '.join(sorted(unknown)[:3])}")
    book = path.stem.removesuffix("_brat")
    loose = [name for name in mentions if name not in entities]
    lost = [(f"{path}, {name}", NO_CHAIN if name in described else NO_COREF) for name in loose]
    factors = {"corpus": "litbank", "genre": "novel"}
    if seen is not None:
        identity, _, title = book.partition("_")
        factors["seen"] = "yes" if seen & {identity, _normalised_title(title)} else "no"
    document = Document(
        name=f"litbank/{book}",
        words=words,
        blank=[True] * len(words),
        sentences=[start for start, sentence in zip(starts, sentences, strict=True) if sentence],
        mentions=[
            Mention(first, end, first + head_word(words[first:end]), form, entities[name])
            for name, (first, end, form) in mentions.items()
            if name in entities
        ],
        factors=factors,
        placeholders=placeholders(words, [()] * len(words)),
    )
    return document, lost if mentions else [(document.name, NO_LAYER)]


def _word_range(
    where: str, cells: Sequence[str], sentences: Sequence[Sequence[str]], starts: Sequence[int]
) -> tuple[int, int]:
    """Return the span of a mention: word indices in the book, from 0, end exclusive."""
    if not all(cell.isascii() and cell.isdecimal() and len(cell) < 10 for cell in cells):
        raise UserError(f"{where}, place: {list(cells)} must be four whole numbers")
    sentence, first, last_sentence, last = map(int, cells)
    if sentence != last_sentence or sentence >= len(sentences) or not first <= last < len(sentences[sentence]):
        length = len(sentences[sentence]) if sentence < len(sentences) else 0
        raise UserError(
            f"{where}, place: words {first} to {last} of sentences {sentence} to {last_sentence} must lie in one "
            f"sentence; sentence {sentence} has {counted(length, 'word')}"
        )
    return starts[sentence] + first, starts[sentence] + last + 1


def _titles(path: Path) -> frozenset[str]:
    """Return the Gutenberg numbers and normalised titles of a list of books.

    In a .txt file each line is a number or a title; any other file has JSON lines with "id", "title" or both.
    """
    if path.suffix == ".txt":
        return frozenset(each for line in read_lines(path) for each in (line.strip(), _normalised_title(line)) if each)
    titles: set[str] = set()
    for number, line in enumerate(filter(str.strip, read_lines(path)), start=1):
        row = parse_json(line, f"{path}, row {number}")
        book = row if isinstance(row, dict) else {}
        known = [str(book["id"])] if book.get("id") else []
        known += [_normalised_title(str(book["title"]))] if book.get("title") else []
        if not known:
            raise UserError(f"{path}, row {number}: a book needs an id or a title")
        titles.update(known)
    return frozenset(titles)


def _normalised_title(title: str) -> str:
    return re.sub(r"[\W_]", "", title).lower()

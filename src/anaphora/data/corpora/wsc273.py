"""Reader of two corpora: the first 273 schemas of the Winograd Schema Challenge (Levesque et al. 2012), and PDP-60.

The Winograd Schema Challenge is read in one of two formats. The authors' WSCollection.xml has for each schema the text
(txt1, pron, txt2), answers and correctAnswer (A, B, ...); of its 285 schemas, published results use the first 273. The
widely used copy of Kocijan et al. 2019 consists of four-line blocks, with [MASK] in place of the pronoun and the
correct answer first; the reader sorts candidates in text order, so that their order is no cue.

PDP-60 are the Pronoun Disambiguation Problems (Morgenstern, Davis and Ortiz 2016), in the file PDP.txt of the same
copy, also with [MASK]. Adjacent items with the same first four words are about one passage and share a group.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from pathlib import Path
from xml.etree import ElementTree

from anaphora.base.errors import UserError
from anaphora.base.translation import N_
from anaphora.data.corpora import reading
from anaphora.data.corpora.division import Origin, ReadingReport, existing_path
from anaphora.data.corpora.dpr import four_line_items, masked_example
from anaphora.data.corpora.reading import DroppedRowError, Row
from anaphora.data.example import Example
from anaphora.settings.data import Pdp60, Wsc273

SCHEMAS = 273
ORIGINS = {
    "wsc273": Origin(
        files="WSCollection.xml, or the copy in four-line blocks with [MASK]", licence=N_("CC BY 4.0 (collection)")
    ),
    "pdp60": Origin(files="PDP.txt, the copy in four-line blocks with [MASK]", licence=N_("CC BY 4.0 (collection)")),
}
"""Files and licence of each `data.kind`."""
_LETTERS = "ABCDEFGH"
_CLOSING = ".,;:!?'’\")"


def read(settings: Wsc273 | Pdp60) -> tuple[dict[str, list[Example]], ReadingReport]:
    """Return the examples by split and a report on dropped rows; `in_adjacent_groups` sets groups and minimal pairs.

    A file that ends in .xml is read as WSCollection.xml, any other as blocks of four lines. PDP-60 exists only as
    blocks. It has no minimal pairs, since two items about one passage differ in more than the deciding words.
    """
    is_pdp = isinstance(settings, Pdp60)
    corpus, make = ("pdp60", lambda row: masked_example(row, "pdp60")) if is_pdp else ("wsc273", _example)
    path = existing_path(settings.path, ORIGINS[corpus].files)
    rows = _schemas(path) if path.suffix.lower() == ".xml" and not is_pdp else four_line_items(path)
    reader = reading.RowReader()
    converted = [each for _, each in reader.convert(rows, lambda row: (row, make(row)))]
    questions: list[tuple[Hashable, Hashable]] = [
        (tuple(row["text"].split()[:4]), None)  # no minimal pairs
        if is_pdp
        else (frozenset(map(str.lower, row["names"])), row["answer"].lower())
        for row, _ in converted
    ]
    examples = reading.in_adjacent_groups(corpus, [example for _, example in converted], questions)
    return reading.split_examples(examples, None, settings), reader.report()


def _schemas(path: Path) -> Iterator[tuple[str, Row]]:
    schemas = reading.xml_root(path).findall("schema")
    if not schemas:
        raise UserError(f"{path}: it has no <schema>")
    for number, schema in enumerate(schemas):

        def words(field: str, schema: ElementTree.Element = schema) -> str:
            return " ".join((schema.findtext(field) or "").split())

        row = {name: words(f"text/{name}") for name in ("txt1", "pron", "txt2")}
        names = [" ".join("".join(one.itertext()).split()) for one in schema.findall("answers/answer")]
        where = f"{path}, schema {number + 1}"
        letter = words("correctAnswer").strip(" .").upper()
        if len(letter) != 1 or letter not in _LETTERS[: len(names)]:
            raise UserError(f"{where}, correctAnswer: {letter!r} must be one of {', '.join(_LETTERS[: len(names)])}")
        yield where, {"number": number, "names": names, "answer": names[_LETTERS.index(letter)], **row}


def _example(row: Row) -> Example:
    if row["number"] >= SCHEMAS:
        raise DroppedRowError(N_("not among the first 273 schemas"))
    if "pron" not in row:
        return masked_example(row, "wsc273")
    before, form, after = row["txt1"], reading.text_of(row, "pron"), reading.text_of(row, "txt2")
    start = len(before) + 1 if before else 0
    between = "" if after[0] in _CLOSING else " "
    text = f"{before} {form}{between}{after}" if before else f"{form}{between}{after}"
    pronoun = (start, start + len(form))
    return reading.example_of(
        "wsc273",
        text,
        pronoun,
        reading.find_mentions(row["names"], text, pronoun),
        (row["names"].index(row["answer"]),),
    )

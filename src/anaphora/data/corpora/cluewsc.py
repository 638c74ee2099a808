"""Reader of CLUEWSC2020 (Xu et al. 2020): Chinese rows of (pronoun, candidate, true or false).

All rows about the same pronoun of a text become one example. Candidates with the same words and the same label are
mentions of one entity. An example without a "true" row has no antecedent. An example may have a single candidate, since
"none of the candidates" is a possible answer. Indices in the files count code points from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from anaphora.base.errors import UserError
from anaphora.base.translation import N_
from anaphora.data.corpora import reading
from anaphora.data.corpora.division import Origin, ReadingReport, non_overlapping
from anaphora.data.corpora.parts import train_and_test_rows
from anaphora.data.corpora.reading import DroppedRowError, Row
from anaphora.data.example import Example, Span
from anaphora.settings.data import Cluewsc

TRAIN, DEVELOPMENT = "train.json", "dev.json"
ORIGIN = Origin(
    files=f"a folder with {TRAIN} and {DEVELOPMENT}, or one such file",
    licence=N_("none for the data"),
    names=(TRAIN, DEVELOPMENT),
)
_LABELS = {"true": True, "false": False, True: True, False: False}


@dataclass(frozen=True)
class _LabelledPair:
    """Pronoun and candidate from one row of a file, with a label that says whether the candidate is the antecedent."""

    text: str
    pronoun: Span
    candidate: Span
    is_right: bool


def read(settings: Cluewsc) -> tuple[dict[str, list[Example]], ReadingReport]:
    """Return the examples by split and a report on dropped rows; examples of one text share a group.

    The development file of a folder, or the split "validation" on the Hugging Face Hub, is the test split. If there
    is neither, as for a single file, the rows are split at random. Repeated rows, rows without a label or with
    placeholders for words, and candidates that overlap the pronoun or another candidate are dropped.
    """
    reader = reading.RowReader()
    train, test = train_and_test_rows(
        settings.path, ORIGIN.files, lambda folder: folder / TRAIN, DEVELOPMENT, reading.json_lines
    )
    first = _examples(train, reader)
    second = None if test is None else _examples(test, reader)
    return reading.split_examples(first, second, settings), reader.report()


def _examples(rows: Iterable[tuple[str, Row]], reader: reading.RowReader) -> list[Example]:
    known: set[_LabelledPair] = set()

    def claim(row: Row) -> _LabelledPair:
        pair = _labelled_pair(row)
        if pair in known:
            raise DroppedRowError(N_("the same row appears twice"))
        known.add(pair)
        return pair

    claims_by_pronoun: dict[tuple[str, Span], list[tuple[str, _LabelledPair]]] = {}
    for where, pair in reader.convert(rows, claim):
        claims_by_pronoun.setdefault((pair.text, pair.pronoun), []).append((where, pair))
    return [_example(text, pronoun, claims, reader) for (text, pronoun), claims in claims_by_pronoun.items()]


def _labelled_pair(row: Row) -> _LabelledPair:
    text = reading.text_of(row, "text")
    reading.check_words(text)
    if row.get("label") is None:
        raise DroppedRowError(N_("it has no label"))
    if not isinstance(row["label"], str | bool) or row["label"] not in _LABELS:
        raise UserError(f"label: {row['label']!r} must be true or false")
    target = row.get("target")
    if not isinstance(target, Mapping):
        raise UserError(f"target: {target!r} must hold span1_index, span1_text, span2_index and span2_text")
    pronoun, candidate = _span(target, "span2", text), _span(target, "span1", text)
    if not non_overlapping([candidate], [pronoun]):
        raise DroppedRowError(N_("the candidate overlaps the pronoun"))
    return _LabelledPair(text, pronoun, candidate, _LABELS[row["label"]])


def _span(target: Mapping[str, Any], name: str, text: str) -> Span:
    start, words = target.get(f"{name}_index"), target.get(f"{name}_text")
    if isinstance(start, bool) or not isinstance(start, int) or start < 0 or not isinstance(words, str) or not words:
        raise UserError(f"target: {name}_index {start!r} must be a whole number and {name}_text {words!r} text")
    span = (start, start + len(words))
    reading.check_written(f"target: {name}_index", text, span, words)
    return span


def _example(text: str, pronoun: Span, claims: list[tuple[str, _LabelledPair]], reader: reading.RowReader) -> Example:
    """Build the example of one pronoun from the rows that label its candidates (`claims`).

    Of overlapping candidates, the one labelled "true", or else the first in the text, is used; the row of the other
    candidate is dropped. A candidate that is labelled both "true" and "false" counts as "true".
    """
    entities: dict[tuple[str, bool], list[Span]] = {}
    taken: list[Span] = []
    for where, claim in sorted(claims, key=lambda each: (not each[1].is_right, each[1].candidate)):
        if not non_overlapping([claim.candidate], taken):
            other = N_("another row labels the same candidate true")
            overlaps = N_("the candidate overlaps another one of its pronoun")
            reader.dropped.append((where, other if claim.candidate in taken else overlaps))
            continue
        taken.append(claim.candidate)
        entities.setdefault((text[slice(*claim.candidate)], claim.is_right), []).append(claim.candidate)
    right = tuple(number for number, (_, is_right) in enumerate(entities) if is_right)
    mentions = tuple(map(tuple, entities.values()))
    return reading.example_of("cluewsc", text, pronoun, mentions, right, language="zh", group=f"cluewsc/{text}")

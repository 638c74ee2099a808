"""CLUEWSC2020 (Xu et al. 2020): Chinese rows of (pronoun, candidate, true or false) -> one Example a pronoun.

Rows about one pronoun of one text become one Example with all their candidates. Candidates with the same words and the
same label are mentions of one entity. A pronoun whose rows are all "false" has no antecedent (`none_of_them`), whether
it has one candidate or several; one whose only row is "true" is kept too, since "none of them" is the other answer.
Indices count code points from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from anaphora.data.corpora.division import Origin, ReadingReport, apart, existing, is_hub
from anaphora.data.corpora.reading import (
    DroppedRowError,
    Reading,
    Row,
    example_of,
    hub,
    json_lines,
    parted,
    text_of,
)
from anaphora.data.example import Example, Span
from anaphora.data.settings import Cluewsc
from anaphora.errors import UserError

TRAIN, DEVELOPMENT, UNLABELLED = "train.json", "dev.json", "test.json"
ORIGIN = Origin(files=f"a folder with {TRAIN} and {DEVELOPMENT}, or one such file", licence="none for the data")
_LABELS = {"true": True, "false": False, True: True, False: False}


@dataclass(frozen=True)
class _Claim:
    """A row: whether a pronoun means a candidate."""

    text: str
    pronoun: Span
    candidate: Span
    is_right: bool


def read(settings: Cluewsc) -> tuple[dict[str, list[Example]], ReadingReport]:
    """The examples by split and the report, which counts rows; Examples of one text share a group.

    Raises:
        UserError: a file is missing, or a row is wrong; file, line, field, value and what is allowed are named.
    """
    reading = Reading()
    test: list[Example] | None = None
    if is_hub(settings.path):
        parts = hub(settings.path, ORIGIN.files, needed="train")
        train = _examples(parts["train"], reading)
        if "validation" in parts:
            test = _examples(parts["validation"], reading)
    else:
        path = existing(settings.path, ORIGIN.files)
        file = path / TRAIN if path.is_dir() else path
        if not file.exists():
            raise UserError(f"data.path ({settings.path}): the folder has no {TRAIN}")
        train = _examples(json_lines(file), reading)
        if path.is_dir() and (path / DEVELOPMENT).exists():
            test = _examples(json_lines(path / DEVELOPMENT), reading)
    return parted(train, test, settings), reading.report()


def _examples(rows: Iterable[tuple[str, Row]], reading: Reading) -> list[Example]:
    seen: set[_Claim] = set()

    def claim(row: Row) -> _Claim:
        made = _claim(row)
        if made in seen:
            raise DroppedRowError("the same row stands there twice")
        seen.add(made)
        return made

    asked: dict[tuple[str, Span], list[tuple[str, _Claim]]] = {}
    for where, made in reading.each(rows, claim):
        asked.setdefault((made.text, made.pronoun), []).append((where, made))
    return [_example(text, pronoun, claims, reading) for (text, pronoun), claims in asked.items()]


def _claim(row: Row) -> _Claim:
    text = text_of(row, "text")
    if row.get("label") is None:
        raise DroppedRowError("it has no label")
    if not isinstance(row["label"], str | bool) or row["label"] not in _LABELS:
        raise UserError(f"label: {row['label']!r} must be true or false")
    target = row.get("target")
    if not isinstance(target, Mapping):
        raise UserError(f"target: {target!r} must hold span1_index, span1_text, span2_index and span2_text")
    pronoun, candidate = _span(target, "span2", text), _span(target, "span1", text)
    if not apart([candidate], [pronoun]):
        raise DroppedRowError("the candidate overlaps the pronoun")
    return _Claim(text, pronoun, candidate, _LABELS[row["label"]])


def _span(target: Mapping[str, Any], name: str, text: str) -> Span:
    start, words = target.get(f"{name}_index"), target.get(f"{name}_text")
    if not isinstance(start, int) or start < 0 or not isinstance(words, str) or not words:
        raise UserError(f"target: {name}_index {start!r} must be a whole number and {name}_text {words!r} text")
    found = text[start : start + len(words)]
    if found != words:
        raise UserError(f"target: {name}_index: at {start} stands {found!r}, not {words!r}")
    return (start, start + len(words))


def _example(text: str, pronoun: Span, claims: list[tuple[str, _Claim]], reading: Reading) -> Example:
    """One pronoun's candidates; of two that overlap the right one is kept, else the one that stands first."""
    entities: dict[tuple[str, bool], list[Span]] = {}
    taken: list[Span] = []
    for where, claim in sorted(claims, key=lambda each: (not each[1].is_right, each[1].candidate)):
        if not apart([claim.candidate], taken):
            reading.dropped.append((where, "the candidate overlaps another one of its pronoun"))
            continue
        taken.append(claim.candidate)
        entities.setdefault((text[slice(*claim.candidate)], claim.is_right), []).append(claim.candidate)
    right = tuple(number for number, (_, is_right) in enumerate(entities) if is_right)
    mentions = tuple(map(tuple, entities.values()))
    return example_of("cluewsc", text, pronoun, mentions, right, language="zh", group=f"cluewsc/{text}")

"""Reader of KnowRef (Emami et al. 2019): sentences with a bracketed pronoun and two names of one gender.

The answer is `correct_candidate`. `correct_candidate_idx` is ignored: the authors call it a guess, and it often names
the other candidate.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from anaphora.base.errors import UserError
from anaphora.base.files import parse_json
from anaphora.base.translation import N_
from anaphora.data.corpora import reading
from anaphora.data.corpora.division import Origin, ReadingReport, existing_path, read_lines
from anaphora.data.corpora.reading import DroppedRowError, Row
from anaphora.data.example import Example
from anaphora.settings.data import Knowref

ORIGIN = Origin(files="knowref_test.json", licence="CC BY-SA 3.0")


def read(settings: Knowref) -> tuple[dict[str, list[Example]], ReadingReport]:
    """Return the examples by split and a report on dropped rows; items made from one original sentence share a group.

    The factor (attribute) `names` is "original" or, if the sentence differs from the original one, "exchanged".
    """
    return reading.read_examples(settings, _example, _items(existing_path(settings.path, ORIGIN.files)))


def _items(path: Path) -> Iterator[tuple[str, Row]]:
    items = parse_json("\n".join(read_lines(path)), str(path), of_file=True)
    if not isinstance(items, list) or not items:
        raise UserError(f"{path}: it must hold one JSON list of items")
    for number, item in enumerate(items, start=1):
        if not isinstance(item, dict):
            raise UserError(f"{path}, item {number}: {item!r} must be an object")
        yield f"{path}, item {number}", item


def _example(row: Row) -> Example:
    sentence = reading.text_of(row, "sentence_with_pronoun")
    reading.check_words(sentence)
    names = [_single_value(row, "candidate0"), _single_value(row, "candidate1")]
    right = _single_value(row, "correct_candidate")
    text, marked = reading.without_brackets(sentence)
    if not marked:
        raise UserError(f"sentence_with_pronoun: {sentence!r} must hold the pronoun in [ ]")
    if len(marked) > 1:
        raise DroppedRowError(N_("two pronouns are marked"))
    pronoun = marked[0]
    if "[" in text[slice(*pronoun)] or sentence.count("[") != sentence.count("]"):
        raise DroppedRowError(N_("its brackets do not pair"))
    if right not in names:
        raise UserError(f"correct_candidate: {right!r} must be one of {names}")
    original = _single_value(row, "original_sentence")
    return reading.example_of(
        "knowref",
        text,
        pronoun,
        reading.find_mentions(names, text, pronoun),
        (names.index(right),),
        group=f"knowref/{original}",
        names="original" if original == text else "exchanged",
    )


def _single_value(row: Row, field: str) -> str:
    """Return the only element, a non-empty string, of the list in a field."""
    value = row.get(field)
    if not (isinstance(value, list) and len(value) == 1 and isinstance(value[0], str) and value[0]):
        raise UserError(f"{field}: {value!r} must be a list of one text")
    return str(value[0])

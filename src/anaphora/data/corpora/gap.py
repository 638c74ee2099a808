"""Reader of GAP (Webster et al. 2018): a pronoun and two names, of which one, or neither, is the antecedent.

The column URL is ignored, since a name in the page's URL gives the answer away.
"""

from __future__ import annotations

from anaphora.base.errors import UserError
from anaphora.base.translation import N_
from anaphora.data.corpora import reading
from anaphora.data.corpora.division import Origin, ReadingReport, non_overlapping, occurrences, whole_number
from anaphora.data.corpora.parts import train_and_test_rows
from anaphora.data.corpora.reading import DroppedRowError, Row
from anaphora.data.example import Example, Span
from anaphora.settings.data import Gap

DEVELOPMENT, VALIDATION = "gap-development.tsv", "gap-validation.tsv"
ORIGIN = Origin(
    files=f"a folder with {DEVELOPMENT} and {VALIDATION}, or one such file",
    licence="Apache 2.0",
    names=(DEVELOPMENT, VALIDATION),
)
_COLUMNS = ("ID", "Text", "Pronoun", "Pronoun-offset", "A", "A-offset", "A-coref", "B", "B-offset", "B-coref")


def read(settings: Gap) -> tuple[dict[str, list[Example]], ReadingReport]:
    """Return the examples by split and a report on dropped rows; rows with the same text share a group.

    In a folder, gap-development.tsv is divided into train and dev at random, and gap-validation.tsv, if present, is the
    test split. On the Hugging Face Hub, the splits "train" and "validation" take the place of these files. If there is
    only one file or split, its rows are divided into train, dev and test at random.
    """
    development, validation = train_and_test_rows(
        *(settings.path, ORIGIN.files, lambda folder: folder / DEVELOPMENT, VALIDATION),
        lambda file: reading.tab_separated(file, _COLUMNS),
    )
    return reading.read_examples(settings, _example, development, validation)


def _example(row: Row) -> Example:
    text = reading.text_of(row, "Text")
    pronoun = _offset_span(row, "Pronoun")
    names = [_offset_span(row, "A"), _offset_span(row, "B")]
    if non_overlapping(names, [pronoun]) != names or non_overlapping(names[:1], names[1:]) != names[:1]:
        raise DroppedRowError(N_("pronoun and names overlap"))
    right = tuple(number for number, name in enumerate(("A", "B")) if _is_true(row, f"{name}-coref"))
    mentions = _mentions(row["A"], row["B"], text, pronoun, names)
    return reading.example_of("gap", text, pronoun, mentions, right, group=f"gap/{text}")


def _offset_span(row: Row, field: str) -> Span:
    """Return the character span of the words in a field; the column "<field>-offset" gives the start of the span."""
    words, offset = reading.text_of(row, field), str(row[f"{field}-offset"])
    start = whole_number(offset)
    if start is None:
        raise UserError(f"{field}-offset: {offset[:40]!r} must be a whole number of characters")
    span = (start, start + len(words))
    reading.check_written(f"{field}-offset", row["Text"], span, words)
    return span


def _is_true(row: Row, field: str) -> bool:
    value = str(row[field])
    if value.upper() not in ("TRUE", "FALSE"):
        raise UserError(f"{field}: {value!r} must be TRUE or FALSE")
    return value.upper() == "TRUE"


def _mentions(first: str, second: str, text: str, pronoun: Span, marked: list[Span]) -> tuple[tuple[Span, ...], ...]:
    """Return the mentions of both names: the marked spans and, if the names differ, all other occurrences of each name.

    Occurrences inside the pronoun or inside another mention are left out; the longer name is searched first.
    """
    mentions = [[marked[0]], [marked[1]]]
    if first != second:
        for number, name in sorted(((0, first), (1, second)), key=lambda each: -len(each[1])):
            taken = [pronoun, *mentions[0], *mentions[1]]
            mentions[number] += non_overlapping(occurrences(name, text), taken)
    return tuple(map(tuple, mentions))

"""GAP (Webster et al. 2018): rows with a pronoun and two names, either, or neither, of them right -> Examples.

The column URL is never read: a name in the page's address gives the answer away.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from anaphora.data.corpora.division import ReadingReport, apart, divide, existing, lines, occurrences
from anaphora.data.example import Example, Span, in_text_order
from anaphora.data.settings import Gap
from anaphora.errors import UserError

DEVELOPMENT, VALIDATION = "gap-development.tsv", "gap-validation.tsv"
_COLUMNS = ("ID", "Text", "Pronoun", "Pronoun-offset", "A", "A-offset", "A-coref", "B", "B-offset", "B-coref")
_FEMININE = ("she", "her", "hers", "herself")


def read(settings: Gap) -> tuple[dict[str, list[Example]], ReadingReport]:
    """The examples by split and the report.

    Of a folder, gap-validation.tsv is the test split and the dev split is taken from gap-development.tsv; a single file
    is divided by the shares. Rows with the same text stay together.

    Raises:
        UserError: a file or column is missing, or a value does not fit; file, line, field and value are named.
    """
    path = existing(settings.path)
    dropped: list[tuple[str, str]] = []
    if not path.is_dir():
        examples, rows = _file(path, dropped)
        splits = divide(examples, settings.dev_share, settings.test_share, settings.seed)
        return splits, ReadingReport(rows, tuple(dropped))
    if not (path / DEVELOPMENT).exists():
        raise UserError(f"data.path ({settings.path}): the folder has no {DEVELOPMENT}")
    examples, rows = _file(path / DEVELOPMENT, dropped)
    if not (path / VALIDATION).exists():
        splits = divide(examples, settings.dev_share, settings.test_share, settings.seed)
        return splits, ReadingReport(rows, tuple(dropped))
    splits = divide(examples, settings.dev_share, 0.0, settings.seed)
    splits["test"], more = _file(path / VALIDATION, dropped)
    return splits, ReadingReport(rows + more, tuple(dropped))


def _file(path: Path, dropped: list[tuple[str, str]]) -> tuple[list[Example], int]:
    rows = csv.DictReader(lines(path), delimiter="\t", quoting=csv.QUOTE_NONE)
    missing = [column for column in _COLUMNS if column not in (rows.fieldnames or ())]
    if missing:
        raise UserError(f"{path}, line 1: columns {', '.join(missing)} are missing")
    examples = []
    count = 0
    for row in rows:
        count += 1
        where = f"{path}, line {rows.line_num}"
        text = row["Text"]
        pronoun = _at(where, row, "Pronoun")
        names = [_at(where, row, "A"), _at(where, row, "B")]
        if apart(names, [pronoun]) != names or apart(names[:1], names[1:]) != names[:1]:
            dropped.append((where, "pronoun and names overlap"))
            continue
        right = tuple(number for number, name in enumerate(("A", "B")) if _is_true(where, row, f"{name}-coref"))
        candidates, antecedents, _ = in_text_order(_mentions(row["A"], row["B"], text, pronoun, names), right)
        examples.append(
            Example(
                text=text,
                language="en",
                pronoun=pronoun,
                candidates=candidates,
                antecedents=antecedents,
                group=f"gap/{text}",
                factors={
                    "corpus": "gap",
                    "form": row["Pronoun"].lower(),
                    "gender": "female" if row["Pronoun"].lower() in _FEMININE else "male",
                },
            )
        )
    if not count:
        raise UserError(f"{path}: there is no row below the header")
    return examples, count


def _at(where: str, row: Mapping[str, str | None], field: str) -> Span:
    """Where a mention stands, from its offset, checked against the text."""
    words, offset, text = row[field] or "", row[f"{field}-offset"] or "", row["Text"] or ""
    if not offset.isdecimal():
        raise UserError(f"{where}, {field}-offset: {offset!r} must be a whole number of characters")
    start = int(offset)
    found = text[start : start + len(words)]
    if not words or found != words:
        raise UserError(f"{where}, {field}-offset: at {start} stands {found!r}, not {words!r}")
    return (start, start + len(words))


def _is_true(where: str, row: Mapping[str, str | None], field: str) -> bool:
    value = row[field] or ""
    if value.upper() not in ("TRUE", "FALSE"):
        raise UserError(f"{where}, {field}: {value!r} must be TRUE or FALSE")
    return value.upper() == "TRUE"


def _mentions(first: str, second: str, text: str, pronoun: Span, marked: list[Span]) -> tuple[tuple[Span, ...], ...]:
    """All mentions of both names: the marked ones, and other occurrences that do not lie in what is taken already."""
    mentions = [[marked[0]], [marked[1]]]
    if first != second:
        # The longer name first: within it the shorter one is not a mention of its own.
        for number, name in sorted(((0, first), (1, second)), key=lambda each: -len(each[1])):
            taken = [pronoun, *mentions[0], *mentions[1]]
            mentions[number] += apart(occurrences(name, text), taken)
    return tuple(map(tuple, mentions))

"""Reader of texts with labels: SST-2, rotten tomatoes, AG News, ChnSentiCorp, a user's file, or the Hugging Face Hub.

The reader drops rows without a label or text, texts with placeholders for words, repeated training texts, dev texts
that also occur in test, and training texts that also occur in dev or test. In ChnSentiCorp, a quarter of the dev texts
also occur in train.
"""

from __future__ import annotations

import csv
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from anaphora.base.checks import one_among
from anaphora.base.errors import UserError
from anaphora.base.language import language_of
from anaphora.base.translation import N_
from anaphora.data.corpora import division, tables
from anaphora.data.corpora.division import Origin, ReadingReport
from anaphora.data.corpora.parts import hub_data
from anaphora.data.corpora.reading import rows_below_header
from anaphora.data.corpora.word_classes import WITHOUT_WORDS, lacks_words
from anaphora.data.text import Text
from anaphora.settings.data import LabelledText

_POLARITY = ("negative", "positive")
LABELS = {
    "sst2": _POLARITY,
    "rotten_tomatoes": _POLARITY,
    "ag_news": ("World", "Sports", "Business", "Sci/Tech"),
    "chnsenticorp": _POLARITY,
}
"""Labels of each known corpus; a file may have a label's index instead, counted from 0."""

_SPLIT_NAMES = {"train": ("train",), "dev": ("dev", "validation", "valid", "val"), "test": ("test",)}
_SUFFIXES = (".tsv", ".csv", ".jsonl", ".parquet")
_POLARITY_FILES = {"rt-polarity.neg": "negative", "rt-polarity.pos": "positive"}
_NAMES = tuple(f"{name}{suffix}" for names in _SPLIT_NAMES.values() for name in names for suffix in _SUFFIXES)
ORIGINS = {
    "labelled_text": Origin(
        f"a {', '.join(_SUFFIXES)} file, or a folder of such train, dev and test files", "", _NAMES
    ),
    "sst2": Origin("a folder with train.tsv, dev.tsv, test.tsv", N_("none for the data"), _NAMES),
    "rotten_tomatoes": Origin(
        f"a folder with {', '.join(_POLARITY_FILES)}", N_("none (published for research)"), tuple(_POLARITY_FILES)
    ),
    "ag_news": Origin("a folder with train.tsv, test.tsv", N_("non-commercial research"), _NAMES),
    "chnsenticorp": Origin("a folder with train.tsv, dev.tsv, test.tsv", N_("none clear"), _NAMES),
}
"""Files and licence of each `data.kind`; any other kind has those of "labelled_text"."""

_TEXT, _LABEL, _SPLIT, _GROUP = ("text", "sentence", "text_a", "review"), "label", "split", "group"
_QUOTED = re.compile('"(?:[^"]|"")*"')
_DECIMAL = re.compile(r"(-?[0-9]+)\.([0-9]+)")
_WHOLE = re.compile(r"\.0+\Z")
_HEADER = {*_TEXT, _LABEL, "qid", "index", "idx", _SPLIT, _GROUP}


@dataclass(frozen=True)
class _Row:
    where: str
    text: str
    label: str | None
    split: str | None = None
    group: str = ""


def read(settings: LabelledText) -> tuple[dict[str, list[Text]], ReadingReport]:
    """Return the texts by split and a report on dropped rows.

    The splits are those of the file names, of the Hugging Face Hub, or of a column `split`. On the Hub and in the
    column, "dev", "validation", "valid" and "val" all mean dev. If train has no labelled text, dev becomes train;
    otherwise, if test has none, dev becomes test. A missing dev or test split is drawn from train at random.

    Raises:
        UserError: a file or column is missing, a value is not allowed (the message names file, line, field and value),
            a group (texts that must stay in one split) is in two splits, or no text has a label.
    """
    rows_by_split = _with_unified_numbers(_rows_by_split(settings))
    first_of: dict[tuple[str, str], tuple[str, str | None]] = {}
    for split, rows in rows_by_split.items():
        for row in rows:
            division.check_one_split(first_of, row.where, "group", row.group, split)
    dropped: list[tuple[str, str]] = []
    texts = {split: _texts(rows, dropped) for split, rows in rows_by_split.items()}
    if not any(texts.values()):
        raise UserError(
            f"data.path ({settings.path}): it has no text with a label; the column of labels must be called label"
        )
    if not texts.get("train"):
        texts["train"] = texts.pop("dev", [])
    if not texts.get("test"):
        texts["test"] = texts.pop("dev", [])
    if texts.get("dev"):
        tested = {one.text for _, one in texts["test"]}
        dropped += [(where, N_("a dev text is in test too")) for where, one in texts["dev"] if one.text in tested]
        texts["dev"] = [(where, one) for where, one in texts["dev"] if one.text not in tested]
    held_out = {one.text for split in ("dev", "test") for _, one in texts.get(split, [])}
    training = _deduplicated(texts["train"], held_out, dropped)
    parts = division.split_by_group(
        training,
        0.0 if texts.get("dev") else settings.dev_share,
        0.0 if texts["test"] else settings.test_share,
        settings.seed,
    )
    splits = {
        "train": parts["train"],
        "dev": [one for _, one in texts.get("dev", [])] or parts["dev"],
        "test": [one for _, one in texts["test"]] or parts["test"],
    }
    return splits, ReadingReport(sum(map(len, rows_by_split.values())), tuple(dropped))


def _sources(settings: LabelledText) -> list[tuple[Path, str, str | None]]:
    """Return (path, split, label) of each file; the label is None unless the file's name gives it for all rows.

    A single file, and both files of rotten_tomatoes, have the split "train". In other folders, one file is used for
    each split: the first that exists, in a fixed order of names and suffixes.
    """
    path = division.existing_path(settings.path, _origin(settings).files)
    if not path.is_dir():
        return [(path, "train", _POLARITY_FILES.get(path.name))]
    if settings.kind == "rotten_tomatoes":
        missing = [name for name in _POLARITY_FILES if not (path / name).exists()]
        if missing:
            raise UserError(f"data.path ({settings.path}): the folder has no {' and no '.join(missing)}")
        return [(path / name, "train", label) for name, label in _POLARITY_FILES.items()]
    sources: list[tuple[Path, str, str | None]] = []
    for split, names in _SPLIT_NAMES.items():
        there = [path / f"{name}{suffix}" for name in names for suffix in _SUFFIXES]
        sources += [(one, split, None) for one in there if one.exists()][:1]
    if not sources:
        raise UserError(
            f"data.path ({settings.path}): the folder has no train, dev or test file of {', '.join(_SUFFIXES)}"
        )
    return sources


def _origin(settings: LabelledText) -> Origin:
    return ORIGINS.get(settings.kind, ORIGINS["labelled_text"])


def _rows_by_split(settings: LabelledText) -> dict[str, list[_Row]]:
    """Return all rows by split, with and without labels, from files or the Hugging Face Hub."""
    names = LABELS.get(settings.kind, ())
    rows_by_split: defaultdict[str, list[_Row]] = defaultdict(list)
    if division.is_hub(settings.path):
        there = hub_data(settings.path, _origin(settings).files)
        for split, split_names in _SPLIT_NAMES.items():
            for name in split_names:
                if name in there:
                    rows_by_split[split] += _hub_rows(f"{settings.path}, {name}", there[name], names)
        return rows_by_split
    for path, split, label in _sources(settings):
        if label is not None:
            rows = [
                _Row(f"{path}, line {at}", text, label)
                for at, text in enumerate(division.read_lines(path), 1)
                if text.strip()
            ]
        else:
            # In the files of known corpora, quotes are ordinary characters.
            rows = [_row(where, cells, names) for where, cells in _cells(path, str if names else _unquoted)]
        if not rows:
            raise tables.without_rows(path, "text and label")
        for name, of_split in _divided(rows, split, is_named=Path(settings.path).expanduser().is_dir()).items():
            rows_by_split[name] += of_split
    return rows_by_split


def _with_unified_numbers(rows_by_split: Mapping[str, Sequence[_Row]]) -> dict[str, list[_Row]]:
    """Return all rows, with one spelling for labels that are the same whole number, such as "1", "1.0" and "1.00".

    The spelling is "1" if a row has the label "1" or if no label has a fraction such as "1.5". Otherwise, it is
    "1.0". Labels with a fraction are not changed: "1.5" and "1.50" may be two numbered sections. Labels such as "1.0"
    occur because pandas writes whole numbers in this form if some rows have no label.
    """
    labels = {row.label or "" for rows in rows_by_split.values() for row in rows}
    decimals = {label: match.groups() for label in labels if (match := _DECIMAL.fullmatch(label))}
    has_fractions = any(fraction.strip("0") for _, fraction in decimals.values())
    written = {
        label: whole if whole in labels or not has_fractions else f"{whole}.0"
        for label, (whole, fraction) in decimals.items()
        if not fraction.strip("0")
    }
    return {
        split: [replace(row, label=written[row.label]) if row.label in written else row for row in rows]
        for split, rows in rows_by_split.items()
    }


def _divided(rows: Sequence[_Row], split: str, *, is_named: bool) -> dict[str, list[_Row]]:
    """Return the rows of a file by split.

    If the rows have a column `split`, this column gives the split of each row. Otherwise all rows have the split
    `split` of the file. If the name of the file gives its split (`is_named`), the column must not contradict it.
    """
    if all(row.split is None for row in rows):
        return {split: list(rows)}
    divided: defaultdict[str, list[_Row]] = defaultdict(list)
    for row in rows:
        name = next((name for name, known in _SPLIT_NAMES.items() if row.split in known), None)
        if row.split is None:
            raise UserError(f"{row.where}, split: some rows have a split and some have none; all or none must have one")
        if name is None:
            allowed = ", ".join(each for known in _SPLIT_NAMES.values() for each in known)
            raise UserError(f"{row.where}, split: {row.split!r} must be one of {allowed}")
        if is_named and name != split:
            raise UserError(f"{row.where}, split: {row.split!r} is not that of the file, {split}")
        divided[name].append(row)
    return divided


def _hub_rows(where: str, split: Any, names: tuple[str, ...]) -> Iterator[_Row]:
    numbered = getattr(split.features.get(_LABEL), "names", None) or names
    for at, cells in enumerate(split, start=1):
        label = cells.get(_LABEL)
        known = {**cells, _LABEL: None if label in (None, -1) else label}
        yield _row(f"{where}, row {at}", known, names or tuple(numbered))


def _cells(path: Path, cell_text: Callable[[str], str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield ("file, line 3", values by column) for each row of a file; `cell_text` converts cells of a .tsv file."""
    match path.suffix.lower():
        case ".tsv":
            yield from _tab_separated(path, cell_text)
        case ".csv":
            yield from tables.csv_rows(path)
        case suffix if suffix in _SUFFIXES:
            yield from tables.rows(path)
        case _:
            raise division.unknown_format(path, _SUFFIXES)


def _tab_separated(path: Path, cell_text: Callable[[str], str]) -> Iterator[tuple[str, dict[str, Any]]]:
    lines = [
        (f"{path}, line {number}", line.rstrip("\r").split("\t"))
        for number, line in enumerate(division.read_lines(path), start=1)
        if line.strip()
    ]
    if not lines:
        return
    first, cells = lines[0]
    if all(_QUOTED.fullmatch(cell) for cell in cells) and {cell[1:-1] for cell in cells} & _HEADER:
        quoted = csv.DictReader(division.lines_with_ends(division.read_text(path)), delimiter="\t", strict=True)
        yield from rows_below_header(path, quoted)
        return
    header = ["text", _LABEL]
    if _is_header(cells):
        header = cells
        del lines[0]
    else:
        _check_first_row(first, [cells for _, cells in lines])
    for where, cells in lines:
        if len(cells) != len(header):
            if any(cell.startswith('"') for cell in cells):
                raise UserError(
                    f"{where}: {len(cells)} cells, not {len(header)}; a quoted cell of a .tsv file cannot hold a tab "
                    "or a line break, so save it as .csv or .jsonl"
                )
            raise UserError(f"{where}: {len(cells)} cells; {len(header)} are needed: {', '.join(header)}")
        if cells == header:
            raise UserError(f"{where}: the header is repeated here; leave it out")
        yield where, dict(zip(header, map(cell_text, cells), strict=True))


def _is_header(cells: Sequence[str]) -> bool:
    """Return whether the cells of a line are the header of a table.

    A header has no cell twice. Either all cells are known column names, or the cells include the name of a text column
    and the name of the label column.
    """
    has_both = _LABEL in cells and not set(_TEXT).isdisjoint(cells)
    return (has_both or set(cells) <= _HEADER) and len(set(cells)) == len(cells)


def _check_first_row(where: str, rows: Sequence[Sequence[str]]) -> None:
    """Check that the first line of a .tsv file without a known header is a row and not another header."""
    if {cell.strip().lower() for cell in rows[0]} & _HEADER:
        known = ", ".join(sorted(_HEADER))
        raise UserError(f"{where}: columns {', '.join(rows[0])} must be some of {known}, in lower case and each once")
    labels = [cells[-1] for cells in rows[1:]]
    if rows[0][-1] not in labels and len(set(labels)) < len(labels):
        raise UserError(
            f"{where}: a header must name its columns text and label, not {', '.join(rows[0])[:80]!r}; if this is no "
            "header, write one above it"
        )


def _unquoted(cell: str) -> str:
    """Remove the quotes that pandas writes around a cell that contains quotes, and unescape doubled quotes in it."""
    return cell[1:-1].replace('""', '"') if '""' in cell[1:-1] and _QUOTED.fullmatch(cell) else cell


def _row(where: str, cells: dict[str, Any], names: tuple[str, ...]) -> _Row:
    text = next((cells[name] for name in _TEXT if name in cells), None)
    if not isinstance(text, str):
        raise UserError(
            f"{where}, text: it is missing; one column must be called {', '.join(_TEXT[:-1])} or {_TEXT[-1]} "
            f"(here: {', '.join(map(str, cells))[:60]})"
        )
    group = "" if cells.get(_GROUP) is None else str(cells[_GROUP])
    label = cells.get(_LABEL)
    if isinstance(label, list | dict):
        raise UserError(f"{where}, label: {repr(label)[:80]} must be text or a number")
    label = "" if label is None or (isinstance(label, float) and math.isnan(label)) else str(label).strip()
    number = division.whole_number(_WHOLE.sub("", label))
    if number is not None and number < len(names):
        label = names[number]
    if label and names and label not in names:
        raise UserError(f"{where}, label: {label!r} must be {one_among(names)}, or its number from 0")
    return _Row(where, text, label or None, cells.get(_SPLIT) or None, group)


def _texts(rows: Iterable[_Row], dropped: list[tuple[str, str]]) -> list[tuple[str, Text]]:
    texts = []
    for row in rows:
        text = " ".join(row.text.split())
        if not text or row.label is None:
            dropped.append((row.where, N_("the row has no label") if text else N_("the text is empty")))
        elif lacks_words(text):
            dropped.append((row.where, WITHOUT_WORDS))
        else:
            texts.append((row.where, Text(text=text, language=language_of(text), label=row.label, group=row.group)))
    return texts


def _deduplicated(texts: list[tuple[str, Text]], held_out: set[str], dropped: list[tuple[str, str]]) -> list[Text]:
    kept: dict[str, Text] = {}
    for where, one in texts:
        if one.text in held_out:
            dropped.append((where, N_("a training text is in dev or test too")))
        elif one.text in kept:
            repeats = one.label == kept[one.text].label
            other = N_("a training text appears again with another label (the first is kept)")
            dropped.append((where, N_("a training text appears twice") if repeats else other))
        else:
            kept[one.text] = one
    return list(kept.values())

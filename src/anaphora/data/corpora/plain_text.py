"""Reader of plain text: .txt, .jsonl and wikitext, plain or gzipped, or from the Hugging Face Hub.

In a .txt file, each block of lines between blank lines is a document of one paragraph; in other formats, each line of a
document is a paragraph. In .jsonl and on the Hub, each row is a document, with `text` and an optional `title`. In
wikitext (Merity et al. 2017), each article is a document: titles are written as " = Title = " between empty lines,
headings with more equals signs, and hyphens and number punctuation as " @-@ ", " @,@ ", " @.@ "; <unk> becomes
`UNKNOWN_WORD`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from anaphora.base.errors import UserError
from anaphora.base.language import language_of
from anaphora.data import contamination
from anaphora.data.corpora import division
from anaphora.data.corpora.division import Origin, ReadingReport
from anaphora.data.corpora.parts import hub_data
from anaphora.data.corpora.reading import json_lines
from anaphora.data.corpora.word_classes import WITHOUT_WORDS, blanks_after, lacks_words
from anaphora.data.text import UNKNOWN_WORD, Text
from anaphora.settings.data import SPLITS, PlainText, SilverStandard

ORIGIN = Origin(files="a file or folder of text (docs/own_data.md)")
DECONTAMINATES = True  # paragraph by paragraph

_OFFICIAL_SPLITS = {"wiki.train.tokens": "train", "wiki.valid.tokens": "dev", "wiki.test.tokens": "test"}
_HUB_SPLITS = {"train": "train", "validation": "dev", "valid": "dev", "dev": "dev", "test": "test"}
_FORMATS = (".txt", ".jsonl", ".tokens")
_HEADING = re.compile(r"((?:= )+)(.*?)((?: =)+)")
_WIKITEXT_MARK = re.compile(r" @([-,.])@ ")


def read(settings: PlainText | SilverStandard) -> tuple[dict[str, list[Text]], ReadingReport]:
    """Return the texts by split and a report on dropped paragraphs.

    Paragraphs with placeholders for words, or that share eight consecutive words with the evaluation data in
    `data.without`, are dropped. Documents without an official split are assigned to splits at random.

    Raises:
        UserError: a file cannot be read, or no text is left.
    """
    splits: dict[str, list[Text]] = {split: [] for split in SPLITS}
    free: list[Text] = []
    without = contamination.EvaluationNgrams(settings.without)
    rows, dropped = 0, []
    for where, official, documents in _text_sources(settings):
        kept, left_out = _decontaminated(where, documents, without)
        rows += sum(document.text.count("\n") + 1 for document in documents)
        dropped += left_out
        (splits[official] if official else free).extend(kept)
    for split, texts in division.split_by_group(free, settings.dev_share, settings.test_share, settings.seed).items():
        splits[split] += texts
    report = ReadingReport(rows, tuple(dropped))
    if not any(splits.values()):
        reasons = "".join(f"; dropped: {number} ({reason})" for reason, number in report.reasons.items())
        raise UserError(f"data.path ({settings.path}): no text is left{reasons}")
    return splits, report


def files(settings: PlainText | SilverStandard) -> dict[str, Path]:
    """Return the local files at `data.path` and `data.also`, keyed by path, in this order.

    Raises:
        UserError: a path does not exist, or has no file of a known format.
    """
    local = [(setting, name) for setting, name in _sources(settings) if not division.is_hub(name)]
    return {str(path): path for setting, name in local for path in _files_of(setting, name).values()}


def _sources(settings: PlainText | SilverStandard) -> list[tuple[str, str]]:
    """Return (setting, path) for `data.path` and each path in `data.also`."""
    return [("data.path", settings.path), *(("data.also", name) for name in settings.also)]


def _files_of(setting: str, name: str) -> dict[str, Path]:
    """Return the files of known formats in a folder and its subfolders, keyed by relative path, without hidden files.

    If the path `name` is a file, only this file is returned, keyed by its name. Error messages begin with `setting`.
    """
    there = division.files_below(division.existing_path(name, ORIGIN.files, setting))
    inside = {place: path for place, path in there.items() if _format(path) in _FORMATS}
    if not inside:
        raise UserError(f"{setting} ({name}): it has no file of {', '.join(_FORMATS)}, as it is or as .gz")
    return inside


def _text_sources(settings: PlainText | SilverStandard) -> Iterator[tuple[str, str | None, list[Text]]]:
    """Yield (path, official split or None, documents) for each file, or each split of a hub data set.

    The names of wikitext's files give official splits only if at least two splits are present.
    """
    official = {path: split for path in files(settings).values() if (split := _official_split(path))}
    if len(set(official.values())) < 2:
        official = {}
    for setting, name in _sources(settings):
        if division.is_hub(name):
            yield from _hub(setting, name)
        else:
            for place, path in _files_of(setting, name).items():
                yield str(path), official.get(path), list(_documents(path, place))


def _hub(setting: str, name: str) -> Iterator[tuple[str, str | None, list[Text]]]:
    """Yield (name, official split, documents) for each split of a data set on the Hugging Face Hub.

    The official split is None if the data set has no dev split, or if the split is not train, dev or test.
    """
    there = hub_data(name, ORIGIN.files, setting)
    divided = "dev" in {_HUB_SPLITS.get(split) for split in there}
    for split, rows in there.items():
        texts = [
            text
            for number, row in enumerate(rows, start=1)
            for text in _document(f"{name}, {split} row {number}", row, f"{name}/{split}/{number}")
        ]
        yield f"{name}, {split}", _HUB_SPLITS.get(split) if divided else None, texts


def _official_split(path: Path) -> str | None:
    return _OFFICIAL_SPLITS.get(path.name.removesuffix(".gz"))


def _format(path: Path) -> str:
    return Path(path.name.removesuffix(".gz")).suffix.lower()


def _documents(path: Path, place: str) -> Iterator[Text]:
    """Yield the documents of a file, each as a group of its own.

    A group is named by `place`, the path of the file in the data folder, and the number of the document.
    """
    match _format(path):
        case ".jsonl":
            for number, (where, row) in enumerate(json_lines(path), start=1):
                yield from _document(where, row, f"{place}/{number}")
        case ".tokens":
            yield from _wikitext(path, place)
        case _:
            for number, written in enumerate(re.split(r"\n\s*\n", "\n".join(division.read_lines(path)))):
                text = _one_line(written)
                if text:
                    yield Text(text=text, language=language_of(text), group=f"{place}/{number}")


def _document(where: str, row: Mapping[str, Any], group: str) -> Iterator[Text]:
    """Yield the document in a row; yield nothing if the text in the row is empty."""
    if not isinstance(row.get("text"), str):
        raise UserError(f'{where}, text: it is missing; a document is written {{"text": "..."}}')
    title = row.get("title") or ""
    if not isinstance(title, str):
        raise UserError(f"{where}, title: {title!r} must be text")
    text = _one_paragraph_a_line(row["text"].split("\n"))
    if text:
        yield Text(text=text, language=language_of(text), group=group, title=title)


def _wikitext(path: Path, place: str) -> Iterator[Text]:
    title, count = "", 0
    written: list[str] = []
    lines = [*division.read_lines(path), ""]  # an empty line before the final heading, which ends the last document
    for before, line, after in zip(["", *lines], [*lines, " = end = "], [*lines[1:], "", ""], strict=True):
        heading = _HEADING.fullmatch(line.strip())
        # The lines of a legend such as "W = Won" look like headings, but have no empty lines around them.
        alone = not before.strip() and not after.strip()
        if heading and heading[1] == "= " and heading[3] == " =" and alone:
            text = _one_paragraph_a_line(written)
            if text:
                count += 1
                yield Text(text=text, language=language_of(text), group=f"{place}/{count}", title=title)
            title, written = _plain(heading[2]), []
        else:
            written.append(_plain(heading[2] if heading else line))


def _plain(line: str) -> str:
    return _WIKITEXT_MARK.sub(r"\1", line).replace("<unk>", UNKNOWN_WORD).strip()


def _one_line(written: str) -> str:
    """Join the lines of a paragraph with spaces, except next to Chinese characters or full-width punctuation."""
    lines = [*filter(None, (" ".join(line.split()) for line in written.split("\n")))]
    return "".join(line + " " * blank for line, blank in zip(lines, blanks_after(lines), strict=True)).strip()


def _one_paragraph_a_line(written: list[str]) -> str:
    return "\n".join(filter(None, (" ".join(line.split()) for line in written)))


def _decontaminated(
    where: str, texts: list[Text], without: contamination.EvaluationNgrams
) -> tuple[list[Text], list[tuple[str, str]]]:
    """Remove paragraphs that have placeholders for words or share eight consecutive words with evaluation data.

    Return the remaining texts, and (location, reason) of each removed paragraph.
    """
    paragraphs = [(number, line) for number, one in enumerate(texts) for line in one.text.split("\n")]
    kept: defaultdict[int, list[str]] = defaultdict(list)
    dropped = []
    shared = without.shared_with([line for _, line in paragraphs])
    for (number, line), name in zip(paragraphs, shared, strict=True):
        place = f"{where}, {texts[number].title or texts[number].group}"
        if lacks_words(line):
            dropped.append((place, WITHOUT_WORDS))
        elif name is None:
            kept[number].append(line)
        else:
            reason = f"a paragraph shares {contamination.NGRAM_LENGTH} words in a row with {name}"
            dropped.append((place, reason))
    return [replace(texts[number], text="\n".join(left)) for number, left in kept.items()], dropped

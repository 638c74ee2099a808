"""Reader of CoNLL-2012 (Pradhan et al. 2012): coreference of OntoNotes in columns separated by spaces or tabs.

Each part of a document is enclosed by `#begin document (name); part 000` and `#end document`, and has its own entity
numbers. The columns are document, part, word number, word, part of speech, parse and more; the last has the brackets of
mentions, separated by `|`: `(12` opens a mention before the word, `12)` closes one after it, `(3)` does both. A cell
between tabs may be empty, as in LitBank's files. A trace such as *pro* is not part of the text. Head words are not
annotated; `unparsed_head` finds them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from anaphora.base.errors import UserError, counted
from anaphora.base.translation import N_
from anaphora.data.corpora.coreference import (
    EMPTY_NODE,
    UNBALANCED,
    Document,
    DocumentBuilder,
    Unusable,
    read_documents,
    unparsed_mention,
)
from anaphora.data.corpora.division import Origin, ReadingReport, existing_path, files_below, read_lines
from anaphora.data.corpora.entity_brackets import Bracket, pair_brackets
from anaphora.data.corpora.word_classes import REMOVED_WORD, blanks_after, is_tag, is_trace
from anaphora.data.example import Example
from anaphora.settings.data import Conll2012

ORIGIN = Origin(
    files="a file .v4_gold_conll, any _conll or .conll, also .gz, or a folder of them",
    licence=N_("varies by corpus: OntoNotes 5.0 LDC2013T19, LitBank CC BY 4.0"),
)

_SUFFIXES = ("_conll", ".conll", "_conll.gz", ".conll.gz")
_BEGIN = re.compile(r"#begin document \((.*)\); part (\d+)\s*")
_BRACKET = re.compile(r"(\()?([0-9]+)(\))?")
_NO_BRACKET = ("-", "_", "")
_GOLD = re.compile(r"gold[._]conll(?:\.gz)?$", re.IGNORECASE)
_PARSE = re.compile(r"[(*)]")
_FEWEST_COLUMNS = 12
_LANGUAGE_NAMES = {"en": "english", "zh": "chinese", "ar": "arabic"}
_DEV_NAMES = ("development", "dev", "validation", "valid", "val")
_OFFICIAL_NAMES = {"train": "train", **dict.fromkeys(_DEV_NAMES, "dev"), "test": "test"}
_BRACKET_WORDS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}


def read(settings: Conll2012) -> tuple[dict[str, list[Example]], ReadingReport]:
    """Return the examples by split and a report on dropped mentions; parts of a document stay in one split.

    In a folder, the path of a file may name its split (see `official_split`). If only some paths do, the mentions of
    the other files are dropped. A single file, or a folder whose paths name no splits, is split at random. Documents
    must be in `data.language`.
    """
    named = files(settings)
    is_folder = existing_path(settings.path).is_dir()
    official = {path: split for name, path in named.items() if is_folder and (split := official_split(name))}
    return read_documents(settings, list(named.values()), official, lambda path: _documents(path, settings.language))


def files(settings: Conll2012) -> dict[str, Path]:
    """Return the files to read, keyed by path relative to `data.path`.

    A single file may have any name. In a folder, these are the files that end in _conll or .conll, optionally followed
    by .gz, without those whose path names another language (english, chinese, arabic). If any of them are gold files
    (gold_conll or gold.conll), only these are returned.

    Raises:
        UserError: the path does not exist, or the folder has no _conll or .conll file in this language.
    """
    there = existing_path(settings.path, ORIGIN.files)
    if not there.is_dir():
        return {there.name: there}
    others = {name for language, name in _LANGUAGE_NAMES.items() if language != settings.language}
    named = {
        name: path
        for name, path in files_below(there).items()
        if name.endswith(_SUFFIXES) and not others & _path_pieces(name)
    }
    if not named:
        raise UserError(
            f"data.path ({there}): this folder has no _conll or .conll file in {_LANGUAGE_NAMES[settings.language]}"
        )
    return {name: path for name, path in named.items() if _GOLD.search(name)} or named


def sentences_of(path: Path) -> Iterator[str]:
    """Yield the text of each sentence of a file, with spaces between words and without traces.

    Raises:
        UserError: a line has fewer than 12 columns, an empty word, or [WORD] in place of a word.
    """
    words: list[str] = []
    for number, line in enumerate([*read_lines(path), ""], start=1):
        cells = _cells_of(line)
        if cells and not _is_comment(line):
            where = f"{path}, line {number}"
            written = _written_word(where, cells)
            if written == REMOVED_WORD:
                raise UserError(
                    f"{where}, word: {REMOVED_WORD} takes the place of a word; put in the words of OntoNotes"
                )
            if not is_trace(written, cells[4:5]):
                words.append(written)
        elif words:
            yield " ".join(words)
            words = []


def _path_pieces(name: str) -> set[str]:
    """Return the folder names of a path, and the file name split at dots, all in lower case."""
    return set(re.split(r"[./]", name.lower()))


def official_split(name: str) -> str | None:
    """Return the official split that the path of a file names; None if the path names no split.

    A folder or a part of the file name between dots that is called train, test or one of `_DEV_NAMES` decides. Without
    one, the first or last word of such a part does, between hyphens and underscores; words in the middle may belong to
    a title: a file in test/data/english/annotations/nw/dev_09_c2e is in test. The file name takes precedence over its
    folder, and this over the folder above it.
    """
    parts = [part.split(".") for part in reversed(name.lower().split("/"))]
    pieces = list(chain.from_iterable(parts))
    ends = (re.split("[-_]", piece)[place] for piece in pieces for place in (0, -1))
    return next((_OFFICIAL_NAMES[each] for each in chain(pieces, ends) if each in _OFFICIAL_NAMES), None)


def _documents(path: Path, language: str) -> Iterator[tuple[Document, Unusable]]:
    current: _PartBuilder | None = None
    for number, line in enumerate(read_lines(path), start=1):
        where = f"{path}, line {number}"
        if line.startswith("#begin document"):
            begin = _BEGIN.fullmatch(line)
            if begin is None:
                raise UserError(f"{where}: {line[:60]!r} must be '#begin document (name); part 000'")
            if current is not None:
                raise UserError(f"{where}: a document begins before '#end document' of {current.name}")
            current = _PartBuilder(where, begin[1], begin[2], language)
        elif line.startswith("#end document"):
            if current is None:
                raise UserError(f"{where}: '#end document' without its '#begin document'")
            yield current.document()
            current = None
        elif _is_comment(line):
            continue
        elif line.strip():
            if current is None:
                raise UserError(f"{where}: a word comes before '#begin document (name); part 000'")
            current.word(where, _cells_of(line))
        elif current is not None:
            current.end_sentence()
    if current is not None:
        raise UserError(f"{path}: '#end document' of {current.name} is missing; the file is not whole")


def _is_comment(line: str) -> bool:
    """Return whether a line begins with # and has too few cells for the row of a word."""
    return line.startswith("#") and len(_cells_of(line)) < _FEWEST_COLUMNS


def _cells_of(line: str) -> list[str]:
    """Split a line into cells at tabs if this gives at least 12 cells; otherwise split it at spaces."""
    cells = line.split("\t")
    if len(cells) >= _FEWEST_COLUMNS:
        return [cell.strip(" ") for cell in cells]
    return re.findall("[^ \t]+", line)  # a word may hold a space of another kind, such as U+3000


def _written_word(where: str, cells: list[str]) -> str:
    if len(cells) < _FEWEST_COLUMNS:
        raise UserError(f"{where}: {counted(len(cells), 'column')}; CoNLL-2012 has {_FEWEST_COLUMNS} or more")
    if not cells[3]:
        raise UserError(f"{where}, word: it is empty")
    return _as_written(cells[3])


class _PartBuilder(DocumentBuilder):
    """Builder of one part of a document from its lines; OntoNotes divides long documents into numbered parts."""

    def __init__(self, where: str, document: str, part: str, language: str) -> None:
        self.group = f"conll2012/{document}"
        super().__init__(where, f"{self.group}/{part}", language)
        genre, is_path, _ = document.partition("/")
        self.factors = {"corpus": "conll2012", **({"genre": genre} if is_path else {})}
        self.rows = self.columns = 0  # of the current sentence; each of its predicates adds a column

    def word(self, where: str, cells: list[str]) -> None:
        written, tag = _written_word(where, cells), cells[4]
        if self.rows and len(cells) != self.columns:
            raise UserError(f"{where}: {counted(len(cells), 'column')}; the sentence began with {self.columns}")
        self.columns = len(cells)
        if cells[2] != str(self.rows):
            raise UserError(f"{where}, word number: {cells[2]!r} must be {self.rows}")
        if _PARSE.search(tag) and tag != "*":
            raise UserError(
                f"{where}, part of speech: {tag[:40]!r} is a part of a parse; a column before it is missing"
            )
        self.rows += 1
        row = len(self.words_before) - 1
        if not is_trace(written, [tag]):
            self.words.append(written)
            self.tags.append((tag,))
        self.words_before.append(len(self.words))
        if cells[-1] in _NO_BRACKET:
            return
        for one in cells[-1].split("|"):
            bracket = _BRACKET.fullmatch(one)
            if bracket is None or not (bracket[1] or bracket[3]):
                raise UserError(
                    f"{where}, coreference: {cells[-1]!r} must be -, or made of (12, 12) and (12) separated by |"
                )
            self.brackets.append(Bracket(where, row, (bracket[2],), bool(bracket[1]), bool(bracket[3])))

    def end_sentence(self) -> None:
        super().end_sentence()
        self.rows = 0

    def document(self) -> tuple[Document, Unusable]:
        self.end_sentence()
        self._check_columns()
        pairs, unbalanced, _ = pair_brackets(self.brackets)
        spans = [(*self.extent(opening, closing), entity) for opening, closing, entity in pairs]
        written = [span for span in spans if span[0] < span[1]]
        reasons = [*[UNBALANCED] * unbalanced, *[EMPTY_NODE] * (len(spans) - len(written))]
        mentions = [unparsed_mention(self.words, self.tags, *span, self.language) for span in written]
        return self.built(self.name, mentions, reasons, blanks_after(self.words), self.factors, self.group)

    def _check_columns(self) -> None:
        """Check that the columns of words and tags are not swapped.

        They count as swapped if all words are known part-of-speech tags, but no cell of the tag column is one.
        """
        if len(self.words) > 2 and all(map(is_tag, self.words)) and not any(is_tag(tag) for (tag,) in self.tags):
            raise UserError(
                f"{self.where}, word: all words of {self.name} are parts of speech, such as {self.words[0]!r}; the "
                "columns must be document, part, word number, word, part of speech"
            )


def _as_written(word: str) -> str:
    """Return a word without the treebank's escapes, such as -LRB- for a bracket and a slash before punctuation."""
    if word in _BRACKET_WORDS:
        return _BRACKET_WORDS[word]
    return word[1:] if len(word) == 2 and word[0] == "/" and not word[1].isalnum() else word

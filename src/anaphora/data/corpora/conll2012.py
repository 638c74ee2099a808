"""CoNLL-2012 (Pradhan et al. 2012): OntoNotes' coreference, columns parted by blanks -> Examples.

`#begin document (name); part 000` and `#end document` stand around a part; entities are numbered anew in each. Columns:
document, part, word number, word, part of speech, parse and more; the last one holds brackets of mentions, `(12` before
the word, `12)` after it, `(3)` both, with `|` between several. Head words are not annotated: in English `head_word` is
the rule, in Chinese the last noun or pronoun.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from anaphora.base.errors import UserError
from anaphora.base.language import WIDE_CHARACTER
from anaphora.data.corpora.coreference import (
    UNBALANCED,
    Document,
    Lost,
    Mention,
    MentionBrackets,
    check_language,
    read_documents,
)
from anaphora.data.corpora.division import Origin, ReadingReport, existing_path, files_below, read_lines
from anaphora.data.corpora.head_words import head_word
from anaphora.data.example import Example
from anaphora.settings.data import Conll2012

ORIGIN = Origin(
    files="a file .v4_gold_conll, any _conll or .conll, also .gz, or a folder of them",
    licence="LDC (OntoNotes 5.0, LDC2013T19)",
)

_SUFFIXES = ("_conll", ".conll", "_conll.gz", ".conll.gz")
_BEGIN = re.compile(r"#begin document \((.*)\); part (\d+)\s*")
_BRACKET = re.compile(r"(\()?(\d+)(\))?")
_FEWEST_COLUMNS = 12
_LANGUAGE_NAMES = {"en": "english", "zh": "chinese", "ar": "arabic"}
_OFFICIAL_NAMES = {"train": "train", "development": "dev", "dev": "dev", "test": "test"}
_PRONOUNS = frozenset(("PRP", "PRP$", "PN"))
_PROPER_NOUNS = frozenset(("NNP", "NNPS", "NR"))
_CHINESE_NOUNS = frozenset(("NN", "NR", "NT", "PN"))
_BRACKET_WORDS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
_REMOVED_WORD = "[WORD]"


def read(settings: Conll2012) -> tuple[dict[str, list[Example]], ReadingReport]:
    """The examples by split and the report, whose rows are mentions; the parts of a document are never divided.

    Raises:
        UserError: there is no such file, or a line does not fit; file, line, field and value are named.
    """

    def documents(path: Path) -> Iterator[tuple[Document, Lost]]:
        for document, lost in _documents(path, settings.language):
            check_language(document, path)
            yield document, lost

    named = files(settings)
    is_folder = existing_path(settings.path).is_dir()
    splits = {path: _official_split(_words(name)) for name, path in named.items() if is_folder}
    official = {path: split for path, split in splits.items() if split}
    return read_documents(settings, list(named.values()), official, documents)


def files(settings: Conll2012) -> dict[str, Path]:
    """The files that are read, by their place below `data.path`."""
    there = existing_path(settings.path, ORIGIN.files)
    if not there.is_dir():
        return {there.name: there}
    others = {name for language, name in _LANGUAGE_NAMES.items() if language != settings.language}
    named = {
        name: path
        for name, path in files_below(there).items()
        if name.endswith(_SUFFIXES) and not others & _words(name)
    }
    if not named:
        raise UserError(
            f"data.path ({there}): this folder has no _conll or .conll file in {_LANGUAGE_NAMES[settings.language]}"
        )
    return {name: path for name, path in named.items() if "gold" in _words(name)} or named


def sentences_of(path: Path) -> Iterator[str]:
    """The sentences of a file, a blank between words, whatever the numbers and brackets beside them.

    Raises:
        UserError: a line has too few columns, or holds no word of its text.
    """
    words: list[str] = []
    for number, line in enumerate([*read_lines(path), ""], start=1):
        cells = line.split()
        if cells and not _is_comment(line):
            words.append(_written_word(f"{path}, line {number}", cells))
        elif words:
            yield " ".join(words)
            words = []


def _words(name: str) -> set[str]:
    """The words in the name of a file and of its folders."""
    return set(re.split(r"[^a-z]+", name.lower()))


def _official_split(words: set[str]) -> str | None:
    return next((split for name, split in _OFFICIAL_NAMES.items() if name in words), None)


def _documents(path: Path, language: str) -> Iterator[tuple[Document, Lost]]:
    current: _DocumentBuilder | None = None
    for number, line in enumerate(read_lines(path), start=1):
        where = f"{path}, line {number}"
        if line.startswith("#begin document"):
            begin = _BEGIN.fullmatch(line)
            if begin is None:
                raise UserError(f"{where}: {line[:60]!r} must be '#begin document (name); part 000'")
            if current is not None:
                raise UserError(f"{where}: a document begins before '#end document' of {current.name}")
            current = _DocumentBuilder(begin[1], begin[2], language)
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
            current.word(where, line.split())
        elif current is not None:
            current.end_sentence()
    if current is not None:
        raise UserError(f"{path}: '#end document' of {current.name} is missing; the file is not whole")


def _is_comment(line: str) -> bool:
    """Whether a line is no word: a document may be named with a #."""
    return line.startswith("#") and len(line.split()) < _FEWEST_COLUMNS


def _written_word(where: str, cells: list[str]) -> str:
    if len(cells) < _FEWEST_COLUMNS:
        raise UserError(f"{where}: {len(cells)} columns; CoNLL-2012 has {_FEWEST_COLUMNS} or more")
    if cells[3] == _REMOVED_WORD:
        raise UserError(
            f"{where}, word: {_REMOVED_WORD} takes the place of a word; put the words of OntoNotes into the skeleton"
        )
    return _as_written(cells[3])


class _DocumentBuilder:
    """A part of a document as its lines come."""

    def __init__(self, document: str, part: str, language: str) -> None:
        self.group = f"conll2012/{document}"
        genre, is_path, _ = document.partition("/")
        self.factors = {"corpus": "conll2012", **({"genre": genre} if is_path else {})}
        self.name = f"{self.group}/{part}"
        self.language = language
        self.words: list[str] = []
        self.tags: list[str] = []
        self.sentences = [0]
        self.columns = 0  # of the sentence; it has one for each of its predicates
        self.brackets = MentionBrackets()

    def word(self, where: str, cells: list[str]) -> None:
        number = len(self.words) - self.sentences[-1]
        written = _written_word(where, cells)
        if number and len(cells) != self.columns:
            raise UserError(f"{where}: {len(cells)} columns; the sentence began with {self.columns}")
        self.columns = len(cells)
        if cells[2] != str(number):
            raise UserError(f"{where}, word number: {cells[2]!r} must be {number}")
        self.words.append(written)
        self.tags.append(cells[4])
        if cells[-1] in ("-", "_"):
            return
        for written in cells[-1].split("|"):
            bracket = _BRACKET.fullmatch(written)
            if bracket is None or not (bracket[1] or bracket[3]):
                raise UserError(
                    f"{where}, coreference: {cells[-1]!r} must be -, or made of (12, 12) and (12) separated by |"
                )
            if bracket[1]:
                self.brackets.open(bracket[2], len(self.words) - 1)
            if bracket[3]:
                self.brackets.close(bracket[2], len(self.words))

    def end_sentence(self) -> None:
        self.brackets.end_sentence()
        if len(self.words) > self.sentences[-1]:
            self.sentences.append(len(self.words))

    def document(self) -> tuple[Document, Lost]:
        self.end_sentence()
        document = Document(
            name=self.name,
            words=self.words,
            blank=[self._blank_after(place) for place in range(len(self.words))],
            sentences=[start for start in self.sentences if start < len(self.words)],
            mentions=[self._mention(*span) for span in self.brackets.spans],
            factors=self.factors,
            language=self.language,
            group=self.group,
        )
        return document, [(self.name, UNBALANCED)] * self.brackets.unbalanced

    def _blank_after(self, place: int) -> bool:
        """Chinese is written without blanks; words of Latin letters keep theirs."""
        beside = "".join(each[:1] for each in self.words[place + 1 : place + 2])
        return not (WIDE_CHARACTER.match(self.words[place][-1]) or WIDE_CHARACTER.match(beside))

    def _mention(self, first: int, end: int, entity: str) -> Mention:
        if self.language == "zh":
            nouns = [place for place in range(first, end) if self.tags[place] in _CHINESE_NOUNS]
            head = nouns[-1] if nouns else end - 1
        else:
            head = first + head_word(self.words[first:end])
        tag = self.tags[head]
        form = "pronoun" if tag in _PRONOUNS else "proper" if tag in _PROPER_NOUNS else "nominal"
        return Mention(first, end, head, form, entity)


def _as_written(word: str) -> str:
    """A word without the escapes of the treebank: -LRB- for a bracket, a slash before a mark."""
    if word in _BRACKET_WORDS:
        return _BRACKET_WORDS[word]
    return word[1:] if len(word) == 2 and word[0] == "/" and not word[1].isalnum() else word

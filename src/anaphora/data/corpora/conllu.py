"""CoNLL-U with coreference in MISC, the format of CorefUD 1.0 and of OntoGUM: `Entity=` brackets -> Documents.

`(e12-person-1-` opens a mention of entity e12 before the word, `e12)` closes one after it, `(e3-person-1-)` does both;
several may stand in one cell. `# global.Entity = eid-etype-head-other` names the parts of an opening bracket, of which
`eid` (in GUM `GRP`) is read; without it the entity comes first. Lines with ids like 3-4 (one written word, two
syntactic ones) are passed over: written words are the syntactic ones put together, with blanks where `SpaceAfter=No`
does not forbid them. Lines with ids like 8.1 are empty nodes, words that are not written: a mention of these alone is
dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from anaphora.base.errors import UserError
from anaphora.data.corpora.coreference import UNBALANCED, Document, Lost, Mention, MentionBrackets
from anaphora.data.corpora.division import existing_path, read_lines
from anaphora.settings.data import SPLITS

EMPTY_NODE = "it is an empty node: a word that is not written, such as a dropped pronoun"
DISCONTINUOUS = "it is in several parts"
_MULTIWORD_ID = re.compile(r"\d+-\d+")
_EMPTY_ID = re.compile(r"\d+\.\d+")
_TEXT = re.compile(r"# *text *=(.*)")
_BRACKET = re.compile(r"\([^()]+\)?|[^()]+\)")
_PART = re.compile(r"(.*)\[(\d+)/(\d+)\]")
_FORMS = {"PRON": "pronoun", "PROPN": "proper"}
_SUFFIXES = (".conllu", ".conllu.gz")
_ENTITY_FIELDS = ("eid", "GRP")


def conllu_files(path: str, needed: str) -> tuple[list[Path], dict[Path, str]]:
    """The .conllu files at a `data.path`, and the split of those of a folder whose names end in train, dev or test.

    Raises:
        UserError: nothing is there; `needed` says what should be.
    """
    there = existing_path(path, needed)
    if not there.is_dir():
        return [there], {}
    files = sorted(each for each in there.iterdir() if each.name.endswith(_SUFFIXES))
    if not files:
        raise UserError(f"data.path ({there}): this folder has no .conllu or .conllu.gz file")
    ends = {file: file.name.partition(".conllu")[0] for file in files}
    return files, {file: split for file, end in ends.items() for split in SPLITS if end.endswith(split)}


def documents_of(path: Path, corpus: str, language: str = "en") -> Iterator[tuple[Document, Lost]]:
    """The documents of a file, each with what was lost in it.

    Args:
        path: of the file.
        corpus: its name, a factor of the documents and the first part of their names.
        language: of the words.

    Raises:
        UserError: a line does not fit; file, line, field and value are named.
    """
    current: _DocumentBuilder | None = None
    entity_field = 0
    count = 0
    for number, line in enumerate(read_lines(path), start=1):
        where = f"{path}, line {number}"
        if line.startswith("# newdoc"):
            if current is not None:
                yield current.document(corpus, language)
            count += 1
            name = line.partition(" id = ")[2].strip() or f"{path.name.partition('.')[0]}_{count}"
            current = _DocumentBuilder(name, entity_field)
        elif line.startswith("# global.Entity"):
            entity_field = _entity_field(where, line.partition("=")[2].strip())
            if current is not None:
                current.entity_field = entity_field
        elif line.startswith("#"):
            continue
        elif current is None:
            if line.strip():
                raise UserError(f"{where}: a word comes before the first '# newdoc id = '")
        elif line.strip():
            current.line(where, line)
        else:
            current.end_sentence()
    if current is None:
        raise UserError(f"{path}: it has no line '# newdoc id = '")
    yield current.document(corpus, language)


def sentences_of(path: Path) -> Iterator[str]:
    """The sentences of a file as they are written: their lines `# text =`, else their words.

    Raises:
        UserError: a line of words is not in ten cells.
    """
    text = words = last_part = ""
    for number, line in enumerate([*read_lines(path), ""], start=1):
        if written := _TEXT.match(line):
            text = written[1].strip()
        elif not line.strip():
            yield text or words
            text = words = last_part = ""
        elif not line.startswith("#") and not text:
            identity, word, *_, more = _cells(f"{path}, line {number}", line)
            if _MULTIWORD_ID.fullmatch(identity):
                last_part = identity.partition("-")[2]
            elif last_part or _EMPTY_ID.fullmatch(identity):  # part of a word that is written already, or no such word
                last_part = "" if identity == last_part else last_part
                continue
            words += word if "SpaceAfter=No" in more.split("|") else f"{word} "


def _cells(where: str, line: str) -> list[str]:
    cells = line.split("\t")
    if len(cells) != 10:
        raise UserError(f"{where}: {len(cells)} cells; CoNLL-U has 10, separated by tabs")
    return cells


def _entity_field(where: str, written: str) -> int:
    """Which part of an opening bracket names the entity, counted from 0."""
    fields = written.split("-")
    for name in _ENTITY_FIELDS:
        if name in fields:
            return fields.index(name)
    raise UserError(f"{where}, global.Entity: {written!r} names no eid (or GRP), the entity of a mention")


class _DocumentBuilder:
    """A document as its lines come."""

    def __init__(self, name: str, entity_field: int) -> None:
        self.name = name
        self.entity_field = entity_field
        self.words: list[str] = []
        self.blank: list[bool] = []
        self.heads: list[int] = []  # the word that governs each, over the whole document; -1 for a root
        self.forms: list[str] = []
        self.sentences = [0]
        self.brackets = MentionBrackets()
        self.discontinuous = 0
        self.glued_until = 0  # of one written word that is several syntactic ones
        self.blank_after_glued = True

    def line(self, where: str, line: str) -> None:
        cells = _cells(where, line)
        identity, more = cells[0], cells[9].split("|")
        if _MULTIWORD_ID.fullmatch(identity):
            self.glued_until = self.sentences[-1] + int(identity.partition("-")[2])
            self.blank_after_glued = "SpaceAfter=No" not in more
            return
        before = len(self.words)
        if not _EMPTY_ID.fullmatch(identity):
            self._word(where, cells, "SpaceAfter=No" not in more)
        for entity in (each.removeprefix("Entity=") for each in more if each.startswith("Entity=")):
            for bracket in _BRACKET.findall(entity):
                self._bracket(bracket, before)

    def _word(self, where: str, cells: list[str], blank: bool) -> None:
        identity, written, head = cells[0], cells[1], cells[6]
        start = self.sentences[-1]
        if identity != str(len(self.words) - start + 1):
            raise UserError(f"{where}, ID: {identity!r} must be {len(self.words) - start + 1}")
        if not written.strip():
            raise UserError(f"{where}, FORM: {written!r} is blank; a word is needed")
        if not (head.isascii() and head.isdecimal()):
            raise UserError(f"{where}, HEAD: {head!r} must be a whole number")
        self.words.append(written)
        count = len(self.words)
        inside = count <= self.glued_until
        self.blank.append(blank if not inside else count == self.glued_until and self.blank_after_glued)
        self.heads.append(start + int(head) - 1 if head != "0" else -1)
        self.forms.append(_FORMS.get(cells[3], "nominal"))

    def _bracket(self, bracket: str, before: int) -> None:
        """Opens or closes a mention at a line, in front of which `before` words stand."""
        fields = bracket.strip("()").split("-")
        closes = bracket.endswith(")")
        # A bracket that only closes holds the entity alone.
        entity = fields[min(self.entity_field, len(fields) - 1)]
        part = _PART.fullmatch(entity)
        if part:
            self.discontinuous += closes and part[2] == part[3]
            return
        if bracket.startswith("("):
            self.brackets.open(entity, before)
        if closes:
            self.brackets.close(entity, len(self.words))

    def end_sentence(self) -> None:
        self.brackets.end_sentence()
        if len(self.words) > self.sentences[-1]:
            self.sentences.append(len(self.words))

    def document(self, corpus: str, language: str) -> tuple[Document, Lost]:
        self.end_sentence()
        name = f"{corpus}/{self.name}"
        written = [span for span in self.brackets.spans if span[0] < span[1]]
        empty = len(self.brackets.spans) - len(written)
        losses = ((UNBALANCED, self.brackets.unbalanced), (DISCONTINUOUS, self.discontinuous), (EMPTY_NODE, empty))
        document = Document(
            name=name,
            words=self.words,
            blank=self.blank,
            sentences=[start for start in self.sentences if start < len(self.words)],
            mentions=[self._mention(*span) for span in written],
            factors={"corpus": corpus},
            language=language,
        )
        return document, [(name, reason) for reason, count in losses for _ in range(count)]

    def _mention(self, first: int, end: int, entity: str) -> Mention:
        inside = range(first, end)
        # Several words may be governed from outside, as in a list without a verb: the first one stands for all.
        head = next((word for word in inside if self.heads[word] not in inside), None)
        if head is None:
            words = " ".join(self.words[first:end])
            raise UserError(f"{self.name}, HEAD: the words of {words!r} depend on one another in a circle")
        return Mention(first, end, head, self.forms[head], entity)

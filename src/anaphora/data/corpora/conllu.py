"""Reader of CoNLL-U with coreference as `Entity=` brackets in MISC, the format of CorefUD and OntoGUM.

`(e12-person-1-` opens a mention of entity e12 before the word, `e12)` closes one after it, and `(e3-person-1-)` does
both; a cell may hold several brackets, which `entity_brackets` parses.

A line with an id like 3-4 is a multiword token, written as its syntactic words without spaces; other words are followed
by a space unless MISC has `SpaceAfter=No`. A line with an id like 8.1 is an empty node, which is not part of the text;
a mention of empty nodes alone is dropped. A trace such as *pro* counts as an empty node, although its id is that of a
word. If a sentence has a line `# text =` and no placeholders for words, its words must match this text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from unicodedata import normalize

from anaphora.base.errors import UserError
from anaphora.base.translation import N_
from anaphora.data.corpora.coreference import EMPTY_NODE, UNBALANCED, Document, DocumentBuilder, Mention, Unusable
from anaphora.data.corpora.division import read_lines
from anaphora.data.corpora.entity_brackets import (
    HEAD_FIELDS,
    SPAN_FIELDS,
    Bracket,
    BracketFields,
    check_fields,
    pair_brackets,
    parse_brackets,
    parse_fields,
    undeclared_entity,
)
from anaphora.data.corpora.word_classes import is_trace, placeholders, unparsed_head, word_form

DISCONTINUOUS = N_("it is in several parts")
_MULTIWORD_ID = re.compile(r"[0-9]{1,9}-[0-9]{1,9}")
_EMPTY_ID = re.compile(r"[0-9]{1,9}\.[0-9]{1,9}")
_NEW_DOCUMENT = re.compile(r"# *newdoc\b(?: *id *=(.*))?.*")
_GLOBAL_ENTITY = re.compile(r"# *global\.Entity *=(.*)", re.IGNORECASE)
_GLOBAL_COLUMNS = re.compile(r"# *global\.columns *=(.*)", re.IGNORECASE)
_TEXT = re.compile(r"# *text *=(.*)")
_COLUMNS = "ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC"
_SPACE_AFTER = "SpaceAfter="
_SPACES = (f"{_SPACE_AFTER}No", f"{_SPACE_AFTER}Yes")
_ATTRIBUTES = ("Entity=", *_SPACES)
_SPLIT_ATTRIBUTES = ("SplitAnte", "Split")
_SHOWN_BEFORE, _SHOWN_AFTER = 20, 40
"""Number of characters that a message shows before and after the first difference of two texts."""
_AGGREGATE = ":aggr"  # GUM's mark of a plural antecedent: acc:aggr, bridge:aggr


def documents_of(path: Path, corpus: str, language: str = "en") -> Iterator[tuple[Document, Unusable]]:
    """Yield (document, annotations that cannot be used as mentions) for each document of a file.

    `corpus` becomes the factor (attribute) `corpus` of the documents, and the beginning of their names.

    Raises:
        UserError: a line is invalid; the message names file, line, field and value.
    """
    builders = _builders(path, language)
    undeclared = [builder for builder in builders if builder.fields is None and any(builder.brackets)]
    entity = undeclared_entity([each for builder in undeclared for each in builder.brackets]) if undeclared else 0
    for builder in builders:
        yield builder.document(corpus, entity)


def _builders(path: Path, language: str) -> list[_ParsedDocumentBuilder]:
    """Return a builder for each document of a file, to which the document's lines have been added."""
    builders: list[_ParsedDocumentBuilder] = []
    fields: BracketFields | None = None
    has_new_fields = False
    text: tuple[str, str] | None = None
    for number, line in enumerate(read_lines(path), start=1):
        where = f"{path}, line {number}"
        if begin := _NEW_DOCUMENT.fullmatch(line):
            name = (begin[1] or "").strip() or f"{path.name.partition('.')[0]}_{len(builders) + 1}"
            builders.append(_ParsedDocumentBuilder(where, name, language, fields))
        elif declared := _GLOBAL_ENTITY.fullmatch(line):
            fields, has_new_fields = parse_fields(where, declared[1].strip()), True
        elif columns := _GLOBAL_COLUMNS.fullmatch(line):
            if columns[1].split() != _COLUMNS.split():
                raise UserError(f"{where}, global.columns: {columns[1].strip()[:80]!r} must be {_COLUMNS}")
        elif written := _TEXT.fullmatch(line):
            text = (where, written[1])
        elif line.startswith("#"):
            continue
        elif not builders:
            if line.strip():
                raise UserError(f"{where}: a word comes before the first '# newdoc id = '")
        elif line.strip():
            if has_new_fields and fields is not None:  # the comments above a sentence come in any order
                builders[-1].declare(fields)
            has_new_fields = False
            builders[-1].text = text or builders[-1].text
            text = None
            builders[-1].line(where, line)
        else:
            builders[-1].end_sentence()
            text = None
    if not builders:
        raise UserError(f"{path}: it has no line '# newdoc id = '")
    return builders


def sentences_of(path: Path) -> Iterator[str]:
    """Yield the text of each sentence of a file.

    If the sentence has a line `# text =`, the line gives the text. Otherwise the text consists of the words, without
    empty nodes. A sentence ends at a blank line; each further blank line yields "".

    Raises:
        UserError: a word of a sentence without `# text =` does not have ten cells.
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
            elif last_part or _EMPTY_ID.fullmatch(identity):  # part of a multiword token, or an empty node
                last_part = "" if identity == last_part else last_part
                continue
            words += word if "SpaceAfter=No" in more.split("|") else f"{word} "


def _cells(where: str, line: str) -> list[str]:
    cells = line.split("\t")
    if len(cells) != 10:
        raise UserError(f"{where}: {len(cells)} cells; CoNLL-U has 10, separated by tabs")
    return cells


def _check_attributes(where: str, attributes: Sequence[str]) -> None:
    for attribute in attributes:
        is_cut = attribute and any(whole.startswith(attribute) and attribute != whole for whole in _ATTRIBUTES)
        if is_cut or (attribute.startswith(_SPACE_AFTER) and attribute not in _SPACES):
            raise UserError(
                f"{where}, MISC: {attribute!r} must be whole: Entity=(...), SpaceAfter=No or SpaceAfter=Yes"
            )


def _check_text(where: str, text: str, words: str, traces: Sequence[str]) -> None:
    """Check that the text in `# text =`, if any, equals the text of the words.

    Repeated spaces, traces and the Unicode form of letters (NFC or NFD) may differ. The error message shows both texts
    around the first difference.
    """
    text, words = (normalize("NFC", " ".join(each.split())) for each in (text, words))
    if text != words:
        for trace in traces:
            text = re.sub(rf"(?<!\S){re.escape(trace)}(?!\w)", "", text, count=1)
        text = " ".join(text.split())
    if text and text != words:
        pairs = enumerate(zip(text, words, strict=False))
        different = next((place for place, (one, other) in pairs if one != other), min(len(text), len(words)))
        shown = slice(max(0, different - _SHOWN_BEFORE), different + _SHOWN_AFTER)
        raise UserError(
            f"{where}, text: {text[shown]!r}, but the words of the sentence read {words[shown]!r}; both must "
            "be the same, with SpaceAfter=No in MISC at a word without a blank after it, and a word written "
            "together (ID 2-3) must be its parts put together"
        )


class _ParsedDocumentBuilder(DocumentBuilder):
    """Builder of a document from its CoNLL-U lines, with or without dependency annotation."""

    def __init__(self, where: str, name: str, language: str, fields: BracketFields | None) -> None:
        super().__init__(where, name, language)
        self.fields = fields
        self.blank: list[bool] = []
        self.heads: list[int | None] = []  # index of each word's head in the document, -1 for a root; None if unparsed
        self.plural: set[tuple[int, str]] = set()  # (row, entity) of mentions with a split antecedent
        self.glued_until = 0  # id of the last word of the latest multiword token in the sentence
        self.blank_after_glued = True
        self.text: tuple[str, str] | None = None  # location and text of the current sentence
        self._texts: list[tuple[tuple[str, str], int, int, list[str]]] = []  # text, first word, end, traces of each
        self._traces: list[str] = []  # of the current sentence
        self._governors: list[tuple[str, str, int | None]] = []  # location, HEAD and word index of each of its rows

    def declare(self, fields: BracketFields) -> None:
        """Store the names of the bracket fields that a line `# global.Entity` declares.

        Raises:
            UserError: the declaration is not above the first sentence of the document.
        """
        if self.words:
            raise UserError(
                f"{fields.where}, global.Entity: it is in the middle of {self.name}; it must come before the first "
                "sentence of a document, next to '# newdoc id = '"
            )
        self.fields = fields

    def line(self, where: str, line: str) -> None:
        cells = _cells(where, line)
        identity, more = cells[0], cells[9].split("|")
        _check_attributes(where, more)
        blank = "SpaceAfter=No" not in more
        coreference = [each.partition("=")[2] for each in more if each.startswith("Entity=")]
        if _MULTIWORD_ID.fullmatch(identity):
            self._begin_multiword_token(where, identity, blank, bool(coreference))
            return
        row = len(self.words_before) - 1
        if not _EMPTY_ID.fullmatch(identity):
            self._word(where, cells, blank)
        self.words_before.append(len(self.words))
        for written in coreference:
            self.brackets += parse_brackets(where, row, written)
        for attribute in more:
            name, _, links = attribute.partition("=")
            if name in _SPLIT_ATTRIBUTES:
                self.plural |= {(row, link.partition("<")[2].partition(":")[0]) for link in links.split(",")}

    def _begin_multiword_token(self, where: str, identity: str, blank: bool, has_mention: bool) -> None:
        """Begin a multiword token (a line with an id like 3-4), which must not have mention brackets itself."""
        first, _, last = identity.partition("-")
        if int(first) != len(self._governors) + 1 or int(last) <= int(first):
            raise UserError(f"{where}, ID: {identity!r} must begin with {len(self._governors) + 1} and end after it")
        if has_mention:
            raise UserError(f"{where}, Entity: it must be on a word, not on the words {identity} together")
        self.glued_until, self.blank_after_glued = int(last), blank

    def _word(self, where: str, cells: list[str], blank: bool) -> None:
        identity, written, head = cells[0], cells[1], cells[6]
        place = len(self._governors) + 1
        if identity != str(place):
            raise UserError(f"{where}, ID: {identity!r} must be {place}")
        if not written.strip():
            raise UserError(f"{where}, FORM: {written!r} is blank; a word is needed")
        tags = (cells[3], cells[4])
        if is_trace(written, tags):
            self._governors.append((where, head, None))
            self._traces.append(written)
            return
        self._governors.append((where, head, len(self.words)))
        self.words.append(written)
        self.tags.append(tags)
        inside = place <= self.glued_until
        self.blank.append(blank if not inside else place == self.glued_until and self.blank_after_glued)

    def end_sentence(self) -> None:
        if not self._governors:
            super().end_sentence()
            return
        if self.glued_until > len(self._governors):
            where = self._governors[-1][0]
            raise UserError(
                f"{where}: the sentence ends before word {self.glued_until}, with which a written word ends"
            )
        self.glued_until = 0
        heads = [head for _, head, _ in self._governors]
        if all(head in ("_", "") for head in heads) or (len(heads) > 1 and all(head == "0" for head in heads)):
            self.heads += [None] * (len(self.words) - self.sentences[-1])
        else:
            self.heads += self._sentence_heads()
        if self.text is not None:
            self._texts.append((self.text, self.sentences[-1], len(self.words), self._traces))
        self._governors, self._traces, self.text = [], [], None
        super().end_sentence()

    def _sentence_heads(self) -> Iterable[int]:
        """Yield the syntactic head of each word of a parsed sentence, as its index in the document; -1 for a root.

        Traces are skipped; a word whose head is a trace gets the head of that trace.
        """
        for where, head, _ in self._governors:
            if not (head.isascii() and head.isdecimal()):
                raise UserError(f"{where}, HEAD: {head!r} must be a whole number")
            if len(head) > 9 or int(head) > len(self._governors):
                last = len(self._governors)
                raise UserError(f"{where}, HEAD: {head[:20]} must be 0 or a word of the sentence, 1 to {last}")
        words = [word for _, _, word in self._governors]
        parents = [int(head) - 1 for _, head, _ in self._governors]
        for place, word in enumerate(words):
            if word is None:
                continue
            parent = parents[place]
            for _ in words:
                if parent >= 0 and words[parent] is None:
                    parent = parents[parent]
            governor = words[parent] if parent >= 0 else None
            yield -1 if governor is None else governor

    def document(self, corpus: str, undeclared: int) -> tuple[Document, Unusable]:
        """Return the document, and (name, reason) of each annotation that cannot be used as a mention.

        Without a line `# global.Entity`, the field of a bracket at index `undeclared` is the entity's id.
        """
        self.end_sentence()
        holds_place = placeholders(self.words, self.tags)
        for text, first, end, traces in self._texts:
            if holds_place.isdisjoint(range(first, end)):
                words = zip(self.words[first:end], self.blank[first:end], strict=True)
                _check_text(*text, "".join(word + " " * blank for word, blank in words), traces)
        if self.fields is not None:
            check_fields(self.brackets, self.fields)
        place = undeclared if self.fields is None else self.fields.entity
        pairs, unbalanced, in_pieces = pair_brackets(self.brackets, place)
        mentions = [self._mention(*pair) for pair in pairs]
        written = [mention for mention in mentions if mention is not None]
        reasons = [
            *[UNBALANCED] * unbalanced,
            *[DISCONTINUOUS] * in_pieces,
            *[EMPTY_NODE] * (len(mentions) - len(written)),
        ]
        return self.built(f"{corpus}/{self.name}", written, reasons, self.blank, {"corpus": corpus})

    def _mention(self, opening: Bracket, closing: Bracket, entity: str) -> Mention | None:
        """Return the mention between two brackets; None if it consists only of empty nodes and traces."""
        first, end = self.extent(opening, closing)
        given = self._given_head(opening, closing, HEAD_FIELDS)
        if first == end:
            return None
        if given is None and None in self.heads[first:end]:
            given = self._given_head(opening, closing, SPAN_FIELDS)
        head = self._head(opening.where, first, end) if given is None else given
        return Mention(
            first=first,
            end=end,
            head=head,
            form=word_form(self.words[head], self.tags[head], self.language),
            entity=entity,
            has_plural_antecedent=(opening.row, entity) in self.plural
            or any(field.endswith(_AGGREGATE) for field in opening.fields),
        )

    def _given_head(self, opening: Bracket, closing: Bracket, names: Sequence[str]) -> int | None:
        """Return the index of the head word that a bracket gives in the field with one of the `names`.

        The result is None if the bracket gives no head word, or if the head is an empty node or a trace.
        """
        number = 0 if self.fields is None else self.fields.head(opening, names)
        row, rows = opening.row + number - 1, closing.row - opening.row + 1
        if number > rows:
            raise UserError(f"{opening.where}, Entity: the head {number} in {opening} must be a word of 1 to {rows}")
        is_written = number > 0 and self.words_before[row] < self.words_before[row + 1]
        return self.words_before[row] if is_written else None

    def _head(self, where: str, first: int, end: int) -> int:
        inside = range(first, end)
        if None in self.heads[first:end]:
            return first + unparsed_head(self.words[first:end], self.tags[first:end], self.language)
        # Several words may have a head outside the mention, as in a list without a verb: the first of them is used.
        head = next((word for word in inside if self.heads[word] not in inside), None)
        if head is None:
            words = " ".join(self.words[first:end])
            raise UserError(f"{where}, HEAD: the words of {words[:60]!r} depend on one another in a circle")
        return head

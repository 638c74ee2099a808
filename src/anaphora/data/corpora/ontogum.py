"""OntoGUM (Zhu et al. 2021): coreference in CoNLL-U, `Entity=` brackets with dependency heads -> Examples.

`(12` opens a mention of entity 12 before the word, `12)` closes one after it, `(3)` does both; several may stand in one
cell. Lines with ids like 3-4 (one written word, two syntactic ones) and 8.1 (a word that is not written) are passed
over: written words are the syntactic ones put together, with blanks where `SpaceAfter=No` does not forbid them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from anaphora.base.errors import UserError
from anaphora.data.corpora.coreference import Document, Mention, examples_of
from anaphora.data.corpora.division import Origin, ReadingReport, existing_path, read_lines, split_by_group
from anaphora.data.example import SPLITS, Example
from anaphora.settings.data import OntoGum

ORIGIN = Origin(
    files="a folder of .conllu or .conllu.gz, or one such file",
    licence="annotations CC BY 4.0; texts vary: fiction, essays, letters, podcasts and wikiHow non-commercial",
)

UNBALANCED = "a bracket without its partner"
NO_SPLIT = "its document is in a file of none of the splits, as test2 is"
_MULTIWORD_ID = re.compile(r"\d+-\d+")
_BRACKET = re.compile(r"\([^()]+\)?|[^()]+\)")
_FORMS = {"PRON": "pronoun", "PROPN": "proper"}
_SUFFIXES = (".conllu", ".conllu.gz")


def read(settings: OntoGum) -> tuple[dict[str, list[Example]], ReadingReport]:
    """The examples by split and the report, whose rows are mentions; a document is never divided.

    In a folder, files whose names end in train, dev and test are the splits, and the mentions of other files are
    dropped; where there are none of these, all files are divided by the shares, as a single file is.

    Raises:
        UserError: there is no such file, or a line does not fit; file, line, field and value are named.
    """
    official = _official_splits(settings)
    dropped: list[tuple[str, str]] = []
    splits: dict[str, list[Example]] = {split: [] for split in SPLITS}
    rows = 0
    unassigned: list[Example] = []
    for path in _files(settings):
        examples: list[Example] = []
        for document, unbalanced in _documents(path):
            rows += len(document.mentions) + unbalanced
            if official and path not in official:
                dropped += [(document.name, NO_SPLIT)] * (len(document.mentions) + unbalanced)
                continue
            dropped += [(document.name, UNBALANCED)] * unbalanced
            examples += examples_of(document, settings.words, dropped)
        if path in official:
            splits[official[path]] += examples
        else:
            unassigned += examples
    if not official:
        splits = split_by_group(unassigned, settings.dev_share, settings.test_share, settings.seed)
    return splits, ReadingReport(rows, tuple(dropped))


def _files(settings: OntoGum) -> list[Path]:
    path = existing_path(settings.path, ORIGIN.files)
    return _conllu_files(path) if path.is_dir() else [path]


def _conllu_files(folder: Path) -> list[Path]:
    files = sorted(each for each in folder.iterdir() if each.name.endswith(_SUFFIXES))
    if not files:
        raise UserError(f"data.path ({folder}): no file .conllu or .conllu.gz is in this folder")
    return files


def _official_splits(settings: OntoGum) -> dict[Path, str]:
    folder = existing_path(settings.path, ORIGIN.files)
    if not folder.is_dir():
        return {}
    return {
        path: split for path in _conllu_files(folder) for split in SPLITS if path.name.partition(".")[0].endswith(split)
    }


def _documents(path: Path) -> Iterator[tuple[Document, int]]:
    """Documents, each with the number of its brackets that have no partner."""
    current: _DocumentBuilder | None = None
    for number, line in enumerate(read_lines(path), start=1):
        if line.startswith("# newdoc id = "):
            if current is not None:
                yield current.document()
            current = _DocumentBuilder(line.removeprefix("# newdoc id = ").strip())
        elif line.startswith("#"):
            continue
        elif current is None:
            if line.strip():
                raise UserError(f"{path}, line {number}: a word stands before the first '# newdoc id = '")
        elif line.strip():
            current.word(f"{path}, line {number}", line)
        else:
            current.end_sentence()
    if current is None:
        raise UserError(f"{path}: there is no '# newdoc id = ' in it")
    yield current.document()


class _DocumentBuilder:
    """A document as its lines come."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.words: list[str] = []
        self.blank: list[bool] = []
        self.heads: list[int] = []  # the word that governs each, over the whole document; -1 for a root
        self.forms: list[str] = []
        self.sentences = [0]
        self.open: dict[str, list[int]] = {}
        self.mentions: list[Mention] = []
        self.unbalanced = 0
        self.glued_until = 0  # of one written word that is several syntactic ones
        self.blank_after_glued = True

    def word(self, where: str, line: str) -> None:
        cells = line.split("\t")
        if len(cells) != 10:
            raise UserError(f"{where}: {len(cells)} cells; CoNLL-U has 10, parted by tabs")
        identity, written, head, more = cells[0], cells[1], cells[6], cells[9]
        blank = "SpaceAfter=No" not in more.split("|")
        start = self.sentences[-1]
        if "." in identity:
            return
        if _MULTIWORD_ID.fullmatch(identity):
            self.glued_until = start + int(identity.partition("-")[2])
            self.blank_after_glued = blank
            return
        if identity != str(len(self.words) - start + 1):
            raise UserError(f"{where}, ID: {identity!r} must be {len(self.words) - start + 1}")
        if not head.isdecimal():
            raise UserError(f"{where}, HEAD: {head!r} must be a whole number")
        self.words.append(written)
        count = len(self.words)
        inside = count <= self.glued_until
        self.blank.append(blank if not inside else count == self.glued_until and self.blank_after_glued)
        self.heads.append(start + int(head) - 1 if head != "0" else -1)
        self.forms.append(_FORMS.get(cells[3], "nominal"))
        for entity in (each[7:] for each in more.split("|") if each.startswith("Entity=")):
            for bracket in _BRACKET.findall(entity):
                self._bracket(bracket)

    def _bracket(self, bracket: str) -> None:
        name = bracket.strip("()")
        if bracket.startswith("("):
            self.open.setdefault(name, []).append(len(self.words) - 1)
        if bracket.endswith(")"):
            if not self.open.get(name):
                self.unbalanced += 1
                return
            first, end = self.open[name].pop(), len(self.words)
            self.mentions.append(Mention(first, end, -1, "", name))

    def end_sentence(self) -> None:
        """Sentences close every mention, so that a lost bracket spoils no other sentence."""
        self.unbalanced += sum(map(len, self.open.values()))
        self.open = {}
        if len(self.words) > self.sentences[-1]:
            self.sentences.append(len(self.words))

    def document(self) -> tuple[Document, int]:
        self.end_sentence()
        mentions = []
        for mention in self.mentions:
            inside = range(mention.first, mention.end)
            # Several words may be governed from outside, as in a list without a verb: the first one stands for all.
            head = next((word for word in inside if self.heads[word] not in inside), None)
            if head is None:
                words = " ".join(self.words[mention.first : mention.end])
                raise UserError(f"{self.name}, HEAD: the words of {words!r} govern one another in a circle")
            mentions.append(mention._replace(head=head, form=self.forms[head]))
        genre = [*self.name.split("_"), ""][1]
        document = Document(
            name=f"ontogum/{self.name}",
            words=self.words,
            blank=self.blank,
            sentences=[start for start in self.sentences if start < len(self.words)],
            mentions=mentions,
            factors={"corpus": "ontogum", "genre": genre},
        )
        return document, self.unbalanced

"""Reader of JSON lines with `clusters`, the format that neural coreference systems read and write.

A line is a document: its words in `sentences` (a list of lists), or in `cased_words` or `tokens` (one list, possibly
with a sentence number for each word in `sent_id`), and clusters of [start, end] word spans. The end differs by system:

- `clusters` with `sentences`, as in e2e-coref, coref-hoi, s2e-coref and BookCoref: the last word (inclusive);
- `clusters` with `cased_words`, the input of wl-coref, and `span_clusters`, its output: the word after it (exclusive);
- `clusters_token_offsets`, the output of maverick: the last word (inclusive).

The setting `ends` therefore states whether the ends in the field `clusters` are inclusive or exclusive; by default,
this is inferred from the spans in the file. Head words are not annotated; `unparsed_head` finds them, with the help of
part-of-speech tags in the optional field `pos`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from anaphora.base.errors import UserError, counted
from anaphora.data.corpora.conll2012 import official_split
from anaphora.data.corpora.coreference import NO_LAYER, Document, Unusable, read_documents, unparsed_mention
from anaphora.data.corpora.division import Origin, ReadingReport, existing_path, files_below
from anaphora.data.corpora.reading import json_lines
from anaphora.data.corpora.word_classes import blanks_after, placeholders
from anaphora.data.example import Example
from anaphora.settings.data import ClusterLines

ORIGIN = Origin(files="a file .jsonl or .jsonlines, also .gz, or a folder of them")
SUFFIXES = (".jsonl", ".jsonlines", ".jsonl.gz", ".jsonlines.gz")
WORD_FIELDS = ("sentences", "cased_words", "tokens")
CLUSTER_FIELDS: Mapping[str, str | None] = {
    "clusters": None,
    "span_clusters": "exclusive",
    "clusters_token_offsets": "inclusive",
}
"""Whether the ends of spans are inclusive or exclusive, by name of the clusters' field; None if it differs by file."""
NAME_FIELDS = ("doc_key", "document_id", "doc_id")


@dataclass(frozen=True)
class ClusterDocument:
    """Document, or part of a document, from one line of a file."""

    where: str  # file and line, for error messages
    name: str  # of the document, followed by its part if the line gives one
    group: str  # name of the document
    sentences: tuple[tuple[str, ...], ...]  # words of each sentence
    clusters: tuple[tuple[tuple[int, int], ...], ...]  # [start, end) of each mention, in words of the document
    row: Mapping[str, Any]  # JSON object of the line
    field: str  # name of the field of the clusters
    ends: str  # "inclusive" if the end of a span in this field is its last word, "exclusive" if it is the word after
    tags: tuple[str, ...] = ()  # part of speech of each word; () if unknown

    @property
    def words(self) -> list[str]:
        """Return the words of all sentences, in order."""
        return [word for sentence in self.sentences for word in sentence]

    def with_clusters(self, clusters: Sequence[Sequence[tuple[int, int]]]) -> ClusterDocument:
        """Return a copy of the document with other clusters; those in `row` (a JSON object) are replaced too."""
        beyond = int(self.ends == "inclusive")
        written = [[[start, end - beyond] for start, end in cluster] for cluster in clusters]
        row = {**self.row, self.field: written}
        return replace(self, clusters=tuple(tuple(cluster) for cluster in clusters), row=row)


def read(settings: ClusterLines) -> tuple[dict[str, list[Example]], ReadingReport]:
    """Return the examples by split and a report on dropped mentions; a document stays in one split.

    In a folder, the path of a file may name its split (see `official_split`). If only some paths do, the mentions of
    the other files are dropped. A single file, or a folder whose paths name no splits, is split at random.

    Raises:
        UserError: no file is found, a line is invalid, two mentions cross, the spans do not show whether their ends are
            inclusive or exclusive, or a document is not in `data.language`.
    """

    def documents(path: Path) -> Iterator[tuple[Document, Unusable]]:
        for line in cluster_documents(path, settings.ends):
            _check_nesting(line)
            document = coreference_document(line, settings.language)
            yield document, [] if line.clusters else [(document.name, NO_LAYER)]

    named = files(settings)
    is_folder = existing_path(settings.path).is_dir()
    official = {path: split for name, path in named.items() if is_folder and (split := official_split(name))}
    return read_documents(settings, list(named.values()), official, documents)


def files(settings: ClusterLines) -> dict[str, Path]:
    """Return the files to read, keyed by path relative to `data.path`; a single file may have any name.

    Raises:
        UserError: the path does not exist, or the folder has no .jsonl or .jsonlines file.
    """
    there = existing_path(settings.path, ORIGIN.files)
    named = {name: path for name, path in files_below(there).items() if name.endswith(SUFFIXES) or not there.is_dir()}
    if not named:
        raise UserError(f"data.path ({there}): this folder has no {' or '.join(SUFFIXES[:2])} file")
    return named


def cluster_documents(path: Path, ends: str | None = None, setting: str = "data.ends") -> list[ClusterDocument]:
    """Return the documents of a file.

    Args:
        ends: "inclusive" if the end of a span is its last word, "exclusive" if it is the word after; None to infer this
            from the spans in the file. The format fixes the ends of some fields, such as `span_clusters`. If the file
            has only such fields, `ends` must agree with the format or be None.
        setting: name of the setting for `ends`, for error messages.

    Raises:
        UserError: a line is invalid, the file has no document, or `ends` is wrong or, if it is
            None, cannot be inferred.
    """
    rows = [(where, row, _cluster_field(where, row)) for where, row in json_lines(path)]
    if not rows:
        raise UserError(f"{path}: it holds no document")
    parsed = [(where, row, field, _sentences(where, row)) for where, row, field in rows]
    if ends is None:
        ends = _proven_ends(path, parsed, setting)
    elif ends not in (fixed := {CLUSTER_FIELDS[field] or ends for _, _, field in rows}):
        raise UserError(f"{setting} ({ends}): the ends in {path} are {fixed.pop()}, as in every field {rows[0][2]}")
    documents: list[ClusterDocument] = []
    for where, row, field, sentences in parsed:
        count = sum(map(len, sentences))
        own_ends = CLUSTER_FIELDS[field] or ends
        clusters = _clusters(f"{where}, {field}", row[field], count, own_ends)
        tags = _tags(where, row.get("pos"), count)
        documents.append(
            ClusterDocument(where, *_names(path, row, where), sentences, clusters, row, field, own_ends, tags)
        )
    return documents


def _cluster_field(where: str, row: Mapping[str, Any]) -> str:
    there = [field for field in CLUSTER_FIELDS if field in row]
    if len(there) != 1:
        found = " and ".join(there) or "none"
        raise UserError(f"{where}: it has {found} of the fields {', '.join(CLUSTER_FIELDS)}; it must have one")
    return there[0]


def _sentences(where: str, row: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    there = [field for field in WORD_FIELDS if row.get(field) is not None]
    if not there:
        raise UserError(f"{where}: it has none of the fields {', '.join(WORD_FIELDS)}; one must hold the words")
    field, value = there[0], row[there[0]]
    if field != "sentences":
        words = _words(f"{where}, {field}", value)
        if not words:
            raise UserError(f"{where}, {field}: it holds no word")
        return _by_sentence(where, words, row["sent_id"]) if row.get("sent_id") is not None else (words,)
    if not isinstance(value, list):
        raise UserError(f"{where}, sentences: {_shown(value)} must be a list of lists of words")
    listed = tuple(_words(f"{where}, sentences[{number}]", sentence) for number, sentence in enumerate(value))
    if not any(listed):
        raise UserError(f"{where}, sentences: they hold no word")
    return tuple(sentence for sentence in listed if sentence)


def _words(place: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise UserError(f"{place}: {_shown(value)} must be a list of words")
    for number, word in enumerate(value):
        if not isinstance(word, str) or not word or word != word.strip():
            raise UserError(f"{place}[{number}]: {_shown(word)} must be a word, without blanks around it")
    return tuple(value)


def _by_sentence(where: str, words: tuple[str, ...], numbers: Any) -> tuple[tuple[str, ...], ...]:
    whole = isinstance(numbers, list) and all(isinstance(one, int) and not isinstance(one, bool) for one in numbers)
    if not whole or len(numbers) != len(words) or numbers != sorted(numbers):
        raise UserError(
            f"{where}, sent_id: {_shown(numbers)} must be {counted(len(words), 'number')}, one for each word, none "
            "smaller than "
            "the one before"
        )
    starts = [place for place in range(len(words)) if place == 0 or numbers[place] != numbers[place - 1]]
    return tuple(words[start:end] for start, end in zip(starts, [*starts[1:], len(words)], strict=True))


def _names(path: Path, row: Mapping[str, Any], where: str) -> tuple[str, str]:
    """Return the name of the part of a document that a row holds, and the name of the document.

    If the row does not name the document, the document's name consists of the file name and the line number.
    """
    field = next((name for name in NAME_FIELDS if row.get(name) is not None), None)
    document = path.name + where.removeprefix(str(path)) if field is None else row[field]
    if not isinstance(document, str) or not document.strip():
        raise UserError(f"{where}, {field}: {_shown(document)} must be the name of the document, a string")
    part = row.get("part_id")
    if not (part is None or (isinstance(part, int) and not isinstance(part, bool))):
        raise UserError(f"{where}, part_id: {_shown(part)} must be a whole number")
    return (document if part is None else f"{document}/{part}"), document


def _tags(where: str, tags: Any, count: int) -> tuple[str, ...]:
    """Return the part of speech of each word, from one list or a list for each sentence; () if `tags` is None."""
    if tags is None:
        return ()
    lists = isinstance(tags, list) and all(isinstance(each, list) for each in tags)
    flat = [tag for sentence in tags for tag in sentence] if lists else tags
    if not isinstance(flat, list) or len(flat) != count or not all(isinstance(tag, str) for tag in flat):
        raise UserError(f"{where}, pos: {_shown(tags)} must be {count} parts of speech, one for each word")
    return tuple(flat)


def _proven_ends(
    path: Path, parsed: Sequence[tuple[str, Mapping[str, Any], str, Sequence[Sequence[str]]]], setting: str
) -> str:
    """Infer from the spans in a file whether their ends are inclusive or exclusive; return "inclusive" or "exclusive".

    A span [n, n] proves inclusive ends, since it would otherwise be empty; an end equal to the number of words proves
    exclusive ends, since it would otherwise be out of range. Fields such as `span_clusters`, whose ends are always of
    one kind, are ignored; without spans in other fields, the result is "exclusive".

    Raises:
        UserError: the spans prove both kinds of end or neither, or a span is out of range.
    """
    proofs: dict[str, str] = {}
    undecided = False
    for where, row, field, sentences in parsed:
        if CLUSTER_FIELDS[field] is not None:
            continue
        count = sum(map(len, sentences))
        for place, span in _spans(f"{where}, {field}", row[field]):
            undecided = True
            if not 0 <= span[0] <= span[1] <= count:
                raise UserError(
                    f"{place}: {span} must be [start, end] with 0 <= start <= end <= {count}, the number of words"
                )
            if span[0] == span[1]:
                proofs.setdefault("inclusive", f"{place}: {span} is empty if ends are exclusive")
            if span[1] == count:
                proofs.setdefault("exclusive", f"{place}: {span} ends after the last word if ends are inclusive")
    if len(proofs) == 2:
        raise UserError(f"{proofs['inclusive']}, and {proofs['exclusive']}; set {setting} to inclusive or exclusive")
    if undecided and not proofs:
        raise UserError(
            f"{setting}: the spans of {path} do not show whether [0, 1] is one word or two; set it to inclusive "
            "(the end is the last word) or exclusive (the end is the word after it)"
        )
    return next(iter(proofs), "exclusive")


def _spans(place: str, clusters: Any) -> Iterator[tuple[str, list[int]]]:
    """Yield (location, [start, end]) for each span of the clusters."""
    if not isinstance(clusters, list):
        raise UserError(f"{place}: {_shown(clusters)} must be a list of clusters, each a list of [start, end]")
    for number, cluster in enumerate(clusters):
        if not isinstance(cluster, list) or not cluster:
            raise UserError(f"{place}[{number}]: {_shown(cluster)} must be a list of [start, end], at least one")
        for mention, span in enumerate(cluster):
            whole = isinstance(span, list) and len(span) == 2
            if not whole or not all(isinstance(one, int) and not isinstance(one, bool) for one in span):
                raise UserError(f"{place}[{number}][{mention}]: {_shown(span)} must be [start, end], two whole numbers")
            yield f"{place}[{number}][{mention}]", span


def _clusters(place: str, clusters: Any, count: int, ends: str) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Convert the clusters of a document of `count` words to tuples of spans with exclusive ends.

    `ends` says whether the ends in `clusters` are "inclusive" or "exclusive".
    """
    beyond = int(ends == "inclusive")
    allowed = f"0 <= start <= end < {count}" if beyond else f"0 <= start < end <= {count}"
    first_place: dict[tuple[int, int], str] = {}
    for where, (start, last) in _spans(place, clusters):
        span = (start, last + beyond)
        if not 0 <= span[0] < span[1] <= count:
            raise UserError(f"{where}: {[start, last]} must be [start, end] with {allowed}, the words ({ends} ends)")
        if span in first_place:
            raise UserError(
                f"{where}: {[start, last]} is a mention of {first_place[span]} too; a mention must be listed once"
            )
        first_place[span] = where.removeprefix(f"{place.rpartition(', ')[0]}, ")
    return tuple(tuple((start, last + beyond) for start, last in cluster) for cluster in clusters)


def _check_nesting(document: ClusterDocument) -> None:
    """Check that no two mentions cross: mentions that share words must be nested."""
    spans = sorted((span for cluster in document.clusters for span in cluster), key=lambda span: (span[0], -span[1]))
    open_spans: list[tuple[int, int]] = []
    for start, end in spans:
        while open_spans and open_spans[-1][1] <= start:
            open_spans.pop()
        if open_spans and end > open_spans[-1][1]:
            words = document.words
            first, second = (" ".join(words[slice(*span)])[:40] for span in (open_spans[-1], (start, end)))
            raise UserError(
                f"{document.where}, clusters: words {list(open_spans[-1])} ({first!r}) and {[start, end]} ({second!r}) "
                "cross; one of two mentions that share words must lie inside the other (ends exclusive)"
            )
        open_spans.append((start, end))


def coreference_document(line: ClusterDocument, language: str) -> Document:
    """Convert a document with clusters to a `Document`; infer each mention's head word and form, such as "pronoun".

    Its examples get the factor (attribute) `corpus`. If the document's name contains a "/", the part before the first
    "/" becomes the factor `genre`.
    """
    words = line.words
    starts = [0, *accumulate(map(len, line.sentences[:-1]))]
    tags = [[tag] for tag in line.tags] or [[] for _ in words]
    genre, is_path, _ = line.group.partition("/")
    mentions = [
        unparsed_mention(words, tags, *span, str(entity), language)
        for entity, cluster in enumerate(line.clusters)
        for span in cluster
    ]
    return Document(
        name=f"clusters/{line.name}",
        words=words,
        blank=blanks_after(words),
        sentences=starts,
        mentions=mentions,
        factors={"corpus": "clusters", **({"genre": genre} if is_path else {})},
        language=language,
        group=f"clusters/{line.group}",
        placeholders=placeholders(words, tags),
    )


def _shown(value: Any) -> str:
    return repr(value)[:60]

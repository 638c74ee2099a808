"""Conversion of coreference documents to Examples: each question is the antecedent of a mention.

A document is cut into passages. A mention is its head word, so that mentions inside one another do not overlap; the
whole mention stands in the factors, where `extents_of` reads it. The earlier mentions of one entity are one candidate:
any of them is an antecedent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from anaphora.base.errors import UserError
from anaphora.base.language import language_of
from anaphora.base.locale.translation import N_
from anaphora.data.corpora.division import ReadingReport
from anaphora.data.corpora.reading import split_examples
from anaphora.data.example import Example, Span, format_span, parse_span
from anaphora.settings.data import SPLITS, CoreferenceCorpus

SHARED_HEAD_WORD = N_("its head word is that of a shorter mention")
CROSSES_PASSAGES = N_("the end of a passage cuts it in two")
FIRST_MENTION = N_("no mention of its entity stands before it in its passage")
PLURAL_ANTECEDENT = N_("its antecedent is several entities together (SplitAnte)")
UNBALANCED = N_("a bracket without its partner")
EMPTY_NODE = N_("it is an empty node: a word that is not written, such as a dropped pronoun")
NO_LAYER = N_("a document without coreference: no mention is marked in it")
PLACEHOLDER = N_("words of its passage are left out, and [WORD] or _ stands in their place")
SAME_DOCUMENT = N_("its document stands in the files twice")
NO_SPLIT = N_("its document is in a file of none of the splits, as test2 is")


class Mention(NamedTuple):
    """A span of a document that refers to an entity; `first`, `end` and `head` count words from 0.

    Attributes:
        first, end: the first word and the one past the last.
        head: the word that stands for the whole.
        form: one of `word_classes.FORMS`.
        entity: mentions of one entity share it.
        has_plural_antecedent: whether it means several entities before it together.
    """

    first: int
    end: int
    head: int
    form: str
    entity: str
    has_plural_antecedent: bool = False


@dataclass(frozen=True)
class Document:
    """Words, sentences and mentions of a text.

    Attributes:
        name: of the document.
        words: W words.
        blank: W times whether a blank follows the word.
        sentences: the first word of every sentence.
        mentions: in any order.
        factors: what all its examples carry, such as corpus and genre.
        language: of its words.
        group: the documents that share it are never divided between splits; "" where this one stands alone.
        placeholders: the words that only hold the place of a word.
    """

    name: str
    words: Sequence[str]
    blank: Sequence[bool]
    sentences: Sequence[int]
    mentions: Sequence[Mention]
    factors: Mapping[str, str] = field(default_factory=dict)
    language: str = "en"
    group: str = ""
    placeholders: frozenset[int] = frozenset()


def check_language(document: Document, path: Path) -> None:
    """Check that a document's script matches its language setting.

    Raises:
        UserError: naming the file and the setting.
    """
    words = [word for place, word in enumerate(document.words) if place not in document.placeholders]
    language = language_of("".join(words[:500]))
    if words and language != document.language:
        raise UserError(f"data.language ({document.language}): {path} is {language}, as {document.name} shows")


Lost = list[tuple[str, str]]
"""(where, reason) of what stands in a file and is no mention."""


def read_documents(
    settings: CoreferenceCorpus,
    files: Sequence[Path],
    official: Mapping[Path, str],
    documents: Callable[[Path], Iterator[tuple[Document, Lost]]],
) -> tuple[dict[str, list[Example]], ReadingReport]:
    """Read the examples of some files by split, and the report, whose rows are mentions; groups stay whole.

    Args:
        settings: the passages' length and the shares.
        files: what is read.
        official: the split of the files that have one. Mentions of the others are dropped; where no file has
            one, all are divided by the shares.
        documents: a file -> its documents, each with what was lost in it.
    """
    dropped: Lost = []
    known: set[tuple[str, int]] = set()
    splits: dict[str, list[Example]] = {split: [] for split in SPLITS}
    unassigned: list[Example] = []
    rows = 0
    for path in files:
        for document, lost in documents(path):
            count = len(document.mentions) + len(lost)
            rows += count
            text = (document.name, hash(tuple(document.words)))
            if text in known:
                dropped += [(document.name, SAME_DOCUMENT)] * count
                continue
            known.add(text)
            if official and path not in official:
                dropped += [(document.name, NO_SPLIT)] * count
                continue
            dropped += lost
            examples = splits[official[path]] if official else unassigned
            examples += examples_of(document, settings.words, dropped)
    if not official:
        splits = split_examples(unassigned, None, settings)
    return splits, ReadingReport(rows, tuple(dropped))


def passages(document: Document, most: int) -> Iterator[tuple[int, int]]:
    """Yield first and past-the-last word of passages of at most `most` words, in whole sentences where possible.

    A sentence that is longer is cut after every `most` words.
    """
    ends = [*document.sentences[1:], len(document.words)]
    start = reached = 0
    for end in ends:
        if end - start > most and reached > start:
            yield start, reached
            start = reached
        while end - start > most:
            yield start, start + most
            start += most
        reached = end
    if reached > start:
        yield start, reached


def examples_of(document: Document, most: int, dropped: list[tuple[str, str]]) -> list[Example]:
    """Return one example for every mention with an antecedent in its passage; add the others to `dropped`.

    A mention inside the one in question is no candidate ("his" in "his wife"). Of mentions with one head
    word the shortest stays: "Anna", not "Anna and Berta" where the head word of that is "Anna" as well.

    Args:
        document: what to cut.
        most: words of a passage.
        dropped: (where, reason) of every mention that makes no example.
    """
    examples: list[Example] = []
    for passage, inside in _passages_with_mentions(document, most, dropped):
        examples += _passage_examples(document, passage, inside, dropped)
    return examples


def mention_questions(document: Document, most: int) -> Iterator[tuple[Mention, list[Mention], Example]]:
    """Yield every mention that has others before it in its passage, those others, and the question which one it means.

    Every earlier mention is a candidate of its own, and the example has no antecedent: entities play no part. Mentions
    are left out as in `examples_of`.

    Args:
        document: what to cut.
        most: words of a passage.
    """
    for passage, inside in _passages_with_mentions(document, most, []):
        for number, mention in enumerate(inside):
            earlier = [each for each in inside[:number] if not _is_within(each, mention)]
            if earlier:
                yield (
                    mention,
                    earlier,
                    Example(
                        text=passage.text,
                        language=document.language,
                        pronoun=passage.head(mention),
                        candidates=tuple((passage.head(each),) for each in earlier),
                        antecedents=(),
                    ),
                )


def _passages_with_mentions(
    document: Document, most: int, dropped: list[tuple[str, str]]
) -> Iterator[tuple[_Passage, list[Mention]]]:
    """Yield the passages, each with the mentions in it by their head words; add the others to `dropped`."""
    shortest_last = sorted(document.mentions, key=lambda each: (each.first - each.end, -each.first))
    kept = {mention.head: mention for mention in shortest_last}
    dropped += [(_location(document, each), SHARED_HEAD_WORD) for each in shortest_last if kept[each.head] is not each]
    waiting = sorted(kept.values(), key=lambda each: each.head, reverse=True)
    for start, end in passages(document, most):
        inside = []
        while waiting and waiting[-1].head < end:
            mention = waiting.pop()
            if start <= mention.first and mention.end <= end:
                inside.append(mention)
            else:
                dropped.append((_location(document, mention), CROSSES_PASSAGES))
        if not document.placeholders.isdisjoint(range(start, end)):
            dropped += [(_location(document, mention), PLACEHOLDER) for mention in inside]
            continue
        yield _Passage(document, start, end), inside


def _is_within(one: Mention, other: Mention) -> bool:
    return other.first <= one.first and one.end <= other.end


def extents_of(example: Example) -> tuple[Span, tuple[tuple[Span, ...], ...]]:
    """Return the whole mentions of an example with head words: of the pronoun, and of the candidates.

    Where nothing is written about them, the spans themselves are whole.
    """
    if "extent" not in example.factors:
        return example.pronoun, example.candidates
    entities = example.factors["extents"].split(";")
    whole = tuple(tuple(parse_span(each) for each in entity.split(",")) for entity in entities)
    return parse_span(example.factors["extent"]), whole


class _Passage:
    """A stretch of a document as text."""

    def __init__(self, document: Document, start: int, end: int) -> None:
        self.first = start
        self.spans: list[Span] = []
        written, length = [], 0
        for word, blank in zip(document.words[start:end], document.blank[start:end], strict=True):
            self.spans.append((length, length + len(word)))
            written.append(f"{word} " if blank else word)
            length += len(written[-1])
        self.text = "".join(written).rstrip()

    def head(self, mention: Mention) -> Span:
        return self.spans[mention.head - self.first]

    def extent(self, mention: Mention) -> Span:
        return self.spans[mention.first - self.first][0], self.spans[mention.end - 1 - self.first][1]


def _passage_examples(
    document: Document, passage: _Passage, inside: Sequence[Mention], dropped: list[tuple[str, str]]
) -> Iterator[Example]:
    for number, mention in enumerate(inside):
        entities: dict[str, list[Mention]] = {}
        for earlier in inside[:number]:
            if not _is_within(earlier, mention):
                entities.setdefault(earlier.entity, []).append(earlier)
        if mention.entity not in entities:
            reason = PLURAL_ANTECEDENT if mention.has_plural_antecedent else FIRST_MENTION
            dropped.append((_location(document, mention), reason))
            continue
        yield Example(
            text=passage.text,
            language=document.language,
            pronoun=passage.head(mention),
            candidates=tuple(tuple(map(passage.head, mentions)) for mentions in entities.values()),
            antecedents=(list(entities).index(mention.entity),),
            group=document.group or document.name,
            factors={
                **document.factors,
                "document": document.name,
                "form": mention.form,
                "extent": format_span(passage.extent(mention)),
                "extents": ";".join(
                    ",".join(format_span(passage.extent(each)) for each in mentions) for mentions in entities.values()
                ),
            },
        )


def _location(document: Document, mention: Mention) -> str:
    return f"{document.name}, {' '.join(document.words[mention.first : mention.end])[:60]!r}"

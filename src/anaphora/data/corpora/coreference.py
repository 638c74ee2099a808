"""Conversion of documents with coreference annotation to examples: one for each mention with an antecedent.

Documents are split into passages. Each mention is represented by its head word, so that nested mentions do not overlap;
the factors (attributes) of an example have the spans of whole mentions (`extents_of`). All earlier mentions of an
entity in the passage form one candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from anaphora.base.errors import UserError
from anaphora.base.language import language_of
from anaphora.base.translation import N_
from anaphora.data.corpora.division import ReadingReport
from anaphora.data.corpora.entity_brackets import Bracket
from anaphora.data.corpora.reading import split_examples
from anaphora.data.corpora.word_classes import UNKNOWN_FORM, placeholders, unparsed_head, word_form
from anaphora.data.example import Example, Span, format_span, parse_span
from anaphora.settings.data import SPLITS, BilingualDocuments, CoreferenceCorpus

SHARED_HEAD_WORD = N_("its head word is that of a shorter mention")
TWO_ENTITIES = N_("its words are marked for another entity too")
MARKED_TWICE = N_("its words are marked twice for its entity")
CROSSES_PASSAGES = N_("the end of a passage cuts it in two")
FIRST_MENTION = N_("no mention of its entity comes before it in its passage")
PLURAL_ANTECEDENT = N_("its antecedent is several entities together (SplitAnte)")
UNBALANCED = N_("a bracket without its partner")
EMPTY_NODE = N_("it is an empty node: a word that is not written, such as a dropped pronoun")
NO_LAYER = N_("a document without coreference: no mention is marked in it")
PLACEHOLDER = N_("words of its passage are left out, and [WORD] or _ stands in their place")
SAME_DOCUMENT = N_("its document is in the files twice")
NO_SPLIT = N_("its document is in a file of none of the splits, as test2 is")


class Mention(NamedTuple):
    """Span of a document that refers to an entity."""

    first: int  # index of its first word in the document, from 0
    end: int  # exclusive
    head: int  # index of the head word, which represents the mention
    form: str  # one of `word_classes.FORMS`
    entity: str  # key shared by the mentions of one entity
    has_plural_antecedent: bool = False  # whether it refers to several earlier entities together (a split antecedent)


def unparsed_mention(
    words: Sequence[str], tags: Sequence[Sequence[str]], first: int, end: int, entity: str, language: str
) -> Mention:
    """Build a mention of the words from `first` to `end` (exclusive) in a document without parse trees.

    Its head word and form (one of `FORMS`, such as "pronoun") are inferred from words and tags.
    """
    head = first + unparsed_head(words[first:end], tags[first:end], language)
    form = word_form(words[head], tags[head], language)
    if form == UNKNOWN_FORM and language == "zh":  # 她们 is two words if every character is one
        form = word_form("".join(words[first:end]), (), language)
    return Mention(first, end, head, form, entity)


Unusable = list[tuple[str, str]]  # (location, reason) of each annotation that cannot be used as a mention


@dataclass(frozen=True)
class Document:
    """Words, sentences and mentions of a text."""

    name: str
    words: Sequence[str]  # (W,)
    blank: Sequence[bool]  # (W,) whether a space follows each word
    sentences: Sequence[int]  # index of the first word of each sentence, from 0
    mentions: Sequence[Mention]  # in any order
    factors: Mapping[str, str] = field(default_factory=dict)  # of all its examples, such as corpus and genre
    language: str = "en"  # "en" or "zh"
    group: str = ""  # key shared by documents that must stay in one split; "" for a document on its own
    placeholders: frozenset[int] = frozenset()  # indices of words that are placeholders for removed words


class DocumentBuilder:
    """Words, tags and brackets of a document, read row by row; a row is a word, a trace or an empty node."""

    def __init__(self, where: str, name: str, language: str) -> None:
        self.where, self.name, self.language = where, name, language
        self.words: list[str] = []
        self.tags: list[tuple[str, ...]] = []
        self.sentences = [0]  # index of the first word of each sentence
        self.words_before = [0]  # number of words before each row and before the end
        self.brackets: list[Bracket | None] = []  # None ends a sentence

    def end_sentence(self) -> None:
        self.brackets.append(None)
        if len(self.words) > self.sentences[-1]:
            self.sentences.append(len(self.words))

    def extent(self, opening: Bracket, closing: Bracket) -> tuple[int, int]:
        """Return the span of word indices between two brackets, end exclusive; empty for empty nodes and traces."""
        return self.words_before[opening.row], self.words_before[closing.row + 1]

    def built(
        self,
        name: str,
        mentions: Sequence[Mention],
        reasons: Sequence[str],
        blank: Sequence[bool],
        factors: Mapping[str, str],
        group: str = "",
    ) -> tuple[Document, Unusable]:
        """Build the document; return it with (name, reason) of each annotation that cannot be used as a mention.

        If the document has no brackets, this list has a single entry that says so.
        """
        sentences = [start for start in self.sentences if start < len(self.words)]
        left_out = placeholders(self.words, self.tags)
        document = Document(name, self.words, blank, sentences, mentions, factors, self.language, group, left_out)
        return document, [(name, reason) for reason in (reasons if any(self.brackets) else [NO_LAYER])]


def _check_language(document: Document, path: Path) -> None:
    """Check that the first 500 words of a document, without placeholders, are in the language `data.language`."""
    words = [word for place, word in enumerate(document.words) if place not in document.placeholders]
    language = language_of("".join(words[:500]))
    if words and language != document.language:
        raise UserError(f"data.language ({document.language}): {path} is {language}, as {document.name} shows")


def read_documents(
    settings: CoreferenceCorpus,
    files: Sequence[Path],
    official: Mapping[Path, str],
    documents: Callable[[Path], Iterator[tuple[Document, Unusable]]],
) -> tuple[dict[str, list[Example]], ReadingReport]:
    """Return the examples of files by split and a report on dropped mentions; each `Document.group` stays in one split.

    Of several documents with the same name and words, only the first is used. A mention is dropped if

    - it has no antecedent in its passage, or crosses the end of a passage,
    - a shorter mention has the same head word, or another mention has the same span, or
    - its passage contains placeholders for words.

    Args:
        official: official splits by file; mentions of other files are dropped. If empty, groups are split at random.
        documents: function that returns the documents of a file, each with the annotations that cannot be used as
            mentions, which the report includes.

    Raises:
        UserError: a document is not in the language of the settings.
    """
    dropped: Unusable = []
    known: set[tuple[str, int]] = set()
    splits: dict[str, list[Example]] = {split: [] for split in SPLITS}
    unassigned: list[Example] = []
    rows = 0
    for path in files:
        for document, lost in documents(path):
            if isinstance(settings, BilingualDocuments):
                _check_language(document, path)
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
    """Yield the spans of word indices, end exclusive, of consecutive passages that cover a document.

    A passage consists of as many whole sentences as fit into `most` words. A longer sentence is cut after every `most`
    words, and what remains of it begins the next passage.
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
    """Return an example for each mention with an antecedent in its passage of at most `most` words.

    Other mentions are appended to `dropped`. A mention inside the mention to be resolved is not a candidate ("his" in
    "his wife"). Of several mentions with the same head word, only the shortest is used: "Anna", not "Anna and Berta".
    Passages in which words are replaced by placeholders give no examples.
    """
    examples: list[Example] = []
    for passage, mention, earlier in _mentions_in_passages(document, most, dropped):
        entities: dict[str, list[Mention]] = {}
        for each in earlier:
            entities.setdefault(each.entity, []).append(each)
        if mention.entity not in entities:
            reason = PLURAL_ANTECEDENT if mention.has_plural_antecedent else FIRST_MENTION
            dropped.append((_location(document, mention), reason))
            continue
        extents = [",".join(format_span(passage.extent(each)) for each in mentions) for mentions in entities.values()]
        example = Example(
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
                "extents": ";".join(extents),
            },
        )
        examples.append(example)
    return examples


def mention_questions(document: Document, most: int) -> Iterator[tuple[Mention, list[Mention], Example]]:
    """Yield (mention, earlier mentions, example) for each mention with earlier mentions in its passage.

    Each earlier mention is a separate candidate, and the example has no antecedent, since the annotated entities are
    not used. The mentions and passages are those of `examples_of`.
    """
    for passage, mention, earlier in _mentions_in_passages(document, most, []):
        if earlier:
            example = Example(
                text=passage.text,
                language=document.language,
                pronoun=passage.head(mention),
                candidates=tuple((passage.head(each),) for each in earlier),
                antecedents=(),
            )
            yield mention, earlier, example


def _mentions_in_passages(
    document: Document, most: int, dropped: list[tuple[str, str]]
) -> Iterator[tuple[_Passage, Mention, list[Mention]]]:
    """Yield (passage, mention, earlier mentions) for the mentions of passages without placeholders for words.

    The mentions are ordered by head word. The earlier mentions are those in the passage with an earlier head word,
    except mentions inside the mention itself. Mentions that are not yielded are appended to `dropped`, with the reason.
    """
    shortest_last = sorted(document.mentions, key=lambda each: (each.first - each.end, -each.first))
    kept = {mention.head: mention for mention in shortest_last}
    for each in shortest_last:
        if (other := kept[each.head]) is not each:
            same_words = MARKED_TWICE if each.entity == other.entity else TWO_ENTITIES
            reason = same_words if (each.first, each.end) == (other.first, other.end) else SHARED_HEAD_WORD
            dropped.append((_location(document, each), reason))
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
        passage = _Passage(document, start, end)
        for number, mention in enumerate(inside):
            outside = [each for each in inside[:number] if each.first < mention.first or mention.end < each.end]
            yield passage, mention, outside


def extents_of(example: Example) -> tuple[Span, tuple[tuple[Span, ...], ...]]:
    """Return the character spans of the whole mentions of an example: of the pronoun, and of each candidate.

    The example's own spans, which may cover only head words, are returned if it has no factor (attribute) `extent`.
    """
    if "extent" not in example.factors:
        return example.pronoun, example.candidates
    entities = example.factors["extents"].split(";")
    whole = tuple(tuple(parse_span(each) for each in entity.split(",")) for entity in entities)
    return parse_span(example.factors["extent"]), whole


class _Passage:
    """Text of a passage of a document, with the character span of each word."""

    def __init__(self, document: Document, start: int, end: int) -> None:
        self.first = start
        self.spans: list[Span] = []
        written, length = [], 0
        for word, blank in zip(document.words[start:end], document.blank[start:end], strict=True):
            self.spans.append((length, length + len(word)))
            written.append(f"{word} " if blank else word)
            length += len(written[-1])
        self.text = "".join(written).removesuffix(" ")

    def head(self, mention: Mention) -> Span:
        return self.spans[mention.head - self.first]

    def extent(self, mention: Mention) -> Span:
        return self.spans[mention.first - self.first][0], self.spans[mention.end - 1 - self.first][1]


def _location(document: Document, mention: Mention) -> str:
    return f"{document.name}, {' '.join(document.words[mention.first : mention.end])[:60]!r}"

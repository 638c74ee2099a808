"""Tests of files in the formats of converters, compared with independently computed items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from cases import cases, result_or_one_line
from hypothesis import assume, given
from hypothesis import strategies as draw

from anaphora.data.corpora import conll2012, corefud, gap, litbank
from anaphora.data.corpora.coreference import extents_of
from anaphora.data.corpora.word_classes import FORMS
from anaphora.data.example import Example
from anaphora.settings.data import Conll2012, CorefUd, Gap, LitBank

WORDS = ("Anna", "mill", "she", "it", "Tom", "ran", "old", "'s", "(", "'", "1", "*", "x-y")
SHARES = {"dev_share": 0.0, "test_share": 0.0}


@dataclass(frozen=True)
class Book:
    """Sentences with one-word mentions as (sentence, word, entity), in text order."""

    sentences: Sequence[Sequence[str]]
    mentions: Sequence[tuple[int, int, int]]

    def entity(self, sentence: int, word: int) -> int | None:
        return next((e for s, w, e in self.mentions if (s, w) == (sentence, word)), None)


Answer = tuple[str, tuple[tuple[tuple[str, ...], bool], ...]]


def answers(book: Book) -> list[Answer]:
    """Return each mention with an earlier mention, with the earlier mentions of each entity and their correctness."""
    rows: list[Answer] = []
    earlier: dict[int, list[str]] = {}
    for sentence, word, entity in book.mentions:
        written = book.sentences[sentence][word]
        if entity in earlier:
            rows.append((written, tuple((tuple(words), name == entity) for name, words in earlier.items())))
        earlier.setdefault(entity, []).append(written)
    return rows


def answers_read(examples: Sequence[Example]) -> list[Answer]:
    return [
        (
            one.text[slice(*one.pronoun)],
            tuple(
                (tuple(one.text[slice(*span)] for span in spans), number in one.antecedents)
                for number, spans in enumerate(one.candidates)
            ),
        )
        for one in examples
    ]


@draw.composite
def books(draws: draw.DrawFn) -> Book:
    sentences = draws(draw.lists(draw.lists(draw.sampled_from(WORDS), min_size=1, max_size=6), min_size=1, max_size=4))
    places = [(s, w) for s, sentence in enumerate(sentences) for w in range(len(sentence))]
    assume(2 * sum(sentence.count("*") for sentence in sentences) <= len(places))  # more would be an emptied column
    chosen = sorted(draws(draw.sets(draw.sampled_from(places), max_size=8)))
    return Book(sentences, [(*place, draws(draw.integers(0, 3))) for place in chosen])


def as_conllu(book: Book, form: str, header: str, parse: str, tags: str) -> str:
    """Return a document in which `form` is the format of brackets: "#" is the entity, and "@" its type."""
    lines = ["# newdoc id = one", *([header] if header else [])]
    for s, sentence in enumerate(book.sentences):
        for w, word in enumerate(sentence):
            entity = book.entity(s, w)
            misc = "_" if entity is None else f"Entity=({form.replace('#', str(entity + 5)).replace('@', 'person')})"
            head = {"none": "_", "zero": "0", "chain": str(w)}[parse]
            lines.append("\t".join((str(w + 1), word, "_", tags, "_", "_", head, "_", "_", misc)))
        lines.append("")
    return "\n".join([*lines, ""])


def as_conll2012(book: Book, separator: str, tag: str, empty: str) -> str:
    lines = ["#begin document (nw/one); part 000"]
    for s, sentence in enumerate(book.sentences):
        for w, word in enumerate(sentence):
            entity = book.entity(s, w)
            coreference = empty if entity is None else f"({entity})"
            lines.append(separator.join(("nw/one", "0", str(w), word, tag, *"*----*", coreference)))
        lines.append("")
    return "\n".join([*lines, "#end document", ""])


def as_litbank(folder: Path, book: Book) -> None:
    text = "\n".join(" ".join(sentence) for sentence in book.sentences)
    rows = []
    for number, (s, w, entity) in enumerate(book.mentions):
        cells = (f"T{number}", s, w, s, w, book.sentences[s][w], "PER", "PRON")
        rows += ["\t".join(map(str, ("MENTION", *cells))), f"COREF\tT{number}\te-{entity}"]
    (folder / "1_one_brat.txt").write_text(f"{text}\n")
    (folder / "1_one_brat.ann").write_text("\n".join([*rows, ""]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("converters")


@cases(share=0.03, quick=60)
@given(
    book=books(),
    form=draw.sampled_from(
        [
            ("e#-@-1-", "# global.Entity = eid-etype-head-other"),
            ("@-#-new-1", "# global.Entity = etype-GRP-infstat-minspan"),
            ("@-#", ""),  # GUM before version 8
            ("@-#-new-1-coref", ""),
            ("#-@-new-1", ""),
            ("#", ""),
            ("#", "# global.Entity = GRP"),
        ]
    ),
    parse=draw.sampled_from(["none", "zero", "chain"]),
    tag=draw.sampled_from(["_", "PRON", "NOUN", "-", "nn"]),
    end=draw.sampled_from(["\n", "\r\n"]),
)
def test_corefud_has_the_answers_that_were_written(
    folder: Path, book: Book, form: tuple[str, str], parse: str, tag: str, end: str
) -> None:
    path = folder / "a.conllu"
    path.write_bytes(as_conllu(book, *form, parse, tag).replace("\n", end).encode())
    splits, report = corefud.read(CorefUd(path=str(path), **SHARES))  # type: ignore[arg-type]
    assert answers_read(splits["train"]) == answers(book)
    assert report.rows == max(len(book.mentions), 1)
    assert all(one.factors["form"] in FORMS for one in splits["train"])


@cases(share=0.01, quick=40)
@given(
    book=books(),
    written=draw.sampled_from(["(e1", "e1)", "(person-1", "person-1)", "((1)", "1", "(a-b-c)", "(1-2-3)", "()", ")("]),
    header=draw.sampled_from(
        ["", "# global.Entity = eid-etype-head", "# global.Entity = etype-eid", "# global.Entity = x"]
    ),
)
def test_brackets_that_do_not_fit_are_counted_or_named(folder: Path, book: Book, written: str, header: str) -> None:
    path = folder / "b.conllu"
    text = as_conllu(book, "@-#", header, "none", "_")
    path.write_text(text.replace("\t_\n", f"\tEntity={written}\n", 1))
    read = result_or_one_line(lambda: corefud.read(CorefUd(path=str(path), **SHARES)))  # type: ignore[arg-type]
    if read is not None:
        assert len(read[0]["train"]) + len(read[1].dropped) == read[1].rows


@cases(share=0.02, quick=60)
@given(
    book=books(),
    columns=draw.sampled_from([(" ", "-"), ("   ", "_"), ("\t", "-"), ("\t", "")]),
    tag=draw.sampled_from(["NN", "PRP", "-", "XX", "*"]),
)
def test_conll_2012_has_the_answers_that_were_written(
    folder: Path, book: Book, columns: tuple[str, str], tag: str
) -> None:
    path = folder / "a.conll"
    separator, empty = columns
    path.write_text(as_conll2012(book, separator, tag, empty))
    splits, report = conll2012.read(Conll2012(path=str(path), **SHARES))  # type: ignore[arg-type]
    assert answers_read(splits["train"]) == answers(book)
    assert report.rows == max(len(book.mentions), 1)


@cases(share=0.02, quick=40)
@given(book=books(), shift=draw.sampled_from([0, 0, 1, -1]))
def test_litbank_has_the_answers_that_were_written_or_names_the_row(
    tmp_path_factory: pytest.TempPathFactory, book: Book, shift: int
) -> None:
    folder = tmp_path_factory.mktemp("litbank")
    as_litbank(folder, book)
    path = folder / "1_one_brat.ann"
    rows = [line.split("\t") for line in path.read_text().splitlines()]
    if not rows:
        return
    moved = [[*row[:3], *(str(int(cell) + shift * (n % 2 == 0)) for n, cell in enumerate(row[3:6])), *row[6:]]
             if row[0] == "MENTION" else row for row in rows]  # fmt: skip
    path.write_text("\n".join("\t".join(row) for row in moved))
    read = result_or_one_line(lambda: litbank.read(LitBank(path=str(folder), **SHARES)))  # type: ignore[arg-type]
    if read is not None:
        assert answers_read(read[0]["train"]) == answers(book)
    assert read is not None or shift


Span = tuple[int, int]


@draw.composite
def nested_mentions(draws: draw.DrawFn) -> list[tuple[int, int, int]]:
    """Draw mentions of a sentence of eight words as (first, last, entity), nested but not crossing."""
    spans: set[Span] = set()
    for first, length in draws(draw.lists(draw.tuples(draw.integers(0, 7), draw.integers(0, 4)), max_size=7)):
        last = min(first + length, 7)
        crosses = any(start < first <= end < last or first < start <= last < end for start, end in spans)
        if not crosses and all(start != first for start, _ in spans):  # one head word, the first, for each mention
            spans.add((first, last))
    return [(*span, draws(draw.integers(0, 2))) for span in sorted(spans)]


def nested_brackets(mentions: Sequence[tuple[int, int, int]], word: int, opening: str, closing: str, both: str) -> str:
    """Return the brackets at a word: those of ending mentions, then those of starting mentions, longest first."""
    parts = []
    for first, last, entity in mentions:
        name = both if first == last else opening
        parts += [name.replace("#", str(entity))] if first == word else []
    ends = [entity for first, last, entity in reversed(mentions) if last == word != first]
    return "".join([*parts, *(closing.replace("#", str(entity)) for entity in ends)])


@cases(share=0.02, quick=60)
@given(mentions=nested_mentions(), format_=draw.sampled_from(["conllu", "conll"]))
def test_mentions_inside_one_another_keep_their_extents_and_entities(
    folder: Path, mentions: list[tuple[int, int, int]], format_: str
) -> None:
    words = [f"w{number}" for number in range(8)]
    path = folder / f"nested.{format_}"
    if format_ == "conllu":
        lines = ["# newdoc id = one", "# global.Entity = eid-etype-head", f"# text = {' '.join(words)}"]
        for number, word in enumerate(words):
            brackets = nested_brackets(mentions, number, "(e#-x-1", "e#)", "(e#-x-1)")
            misc = f"Entity={brackets}" if brackets else "_"
            lines.append("\t".join((str(number + 1), word, "_", "NOUN", "_", "_", "_", "_", "_", misc)))
        path.write_text("\n".join([*lines, "", ""]))
        splits, report = corefud.read(CorefUd(path=str(path), **SHARES))  # type: ignore[arg-type]
    else:
        lines = ["#begin document (nw/one); part 000"]
        for number, word in enumerate(words):
            brackets = nested_brackets(mentions, number, "(#|", "#)|", "(#)|").rstrip("|") or "-"
            lines.append(" ".join(("nw/one", "0", str(number), word, "NN", *"*----*", brackets)))
        path.write_text("\n".join([*lines, "", "#end document", ""]))
        splits, report = conll2012.read(Conll2012(path=str(path), **SHARES))  # type: ignore[arg-type]
    examples = splits["train"]
    assert len(examples) + len(report.dropped) == report.rows == max(len(mentions), 1)
    entity_of = {(first, last): entity for first, last, entity in mentions}
    for one in examples:
        whole, candidates = extents_of(one)
        extents = [[words_of(one.text, span) for span in spans] for spans in candidates]
        asked = entity_of[words_of(one.text, whole)]
        assert [
            {entity_of[span] for span in spans} for spans in extents if len({entity_of[s] for s in spans}) != 1
        ] == []
        right = [number for number, spans in enumerate(extents) if entity_of[spans[0]] == asked]
        assert list(one.antecedents) == right
        assert all(span < words_of(one.text, whole) for spans in extents for span in spans)


def words_of(text: str, span: Span) -> Span:
    """Return the indices of the first and last word of a character span, by the spaces between words."""
    return text[: span[0]].count(" "), text[: span[1]].count(" ")


@cases(share=0.01, quick=40)
@given(before=draw.text("é𠮷 aT", max_size=6), units=draw.sampled_from(["characters", "UTF-8", "UTF-16"]))
def test_offsets_of_gap_are_characters_or_the_row_is_named(folder: Path, before: str, units: str) -> None:
    def offset(text: str, word: str) -> int:
        start = text[: text.index(word)]
        return {"characters": len(start), "UTF-8": len(start.encode()), "UTF-16": len(start.encode("utf-16-le")) // 2}[
            units
        ]

    text = f"{before} Anna met Bertha when he (Berthold, that is) had left the hehe."
    cells = ("d-1", text, "he", offset(text, " he ") + 1, "Anna", offset(text, "Anna"), "TRUE")
    row = (*cells, "Bertha", offset(text, "Bertha"), "FALSE", "u")
    header = "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL"
    path = folder / "gap.tsv"
    path.write_text(f"{header}\n" + "\t".join(map(str, row)) + "\n", encoding="utf-8")
    read = result_or_one_line(lambda: gap.read(Gap(path=str(path), **SHARES)))  # type: ignore[arg-type]
    if read is None:
        assert units != "characters"
        return
    (one,) = read[0]["train"]
    assert one.pronoun[0] == text.index(" he ") + 1
    assert [one.words(number) for number in range(2)] == ["Anna", "Bertha"]

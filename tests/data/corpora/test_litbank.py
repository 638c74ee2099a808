from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from anaphora.base.errors import UserError
from anaphora.data import store
from anaphora.data.corpora import litbank
from anaphora.data.corpora.coreference import (
    CROSSES_PASSAGES,
    FIRST_MENTION,
    NO_LAYER,
    PLACEHOLDER,
    SHARED_HEAD_WORD,
    Document,
    extents_of,
    passages,
)
from anaphora.data.corpora.litbank import NO_CHAIN, NO_COREF
from anaphora.data.corpora.word_classes import head_word
from anaphora.data.example import Example, from_record, to_record
from anaphora.settings.data import LitBank

SENTENCES = "Anna Bell saw the mill of her aunt .\nShe liked it , and Tom Reed liked her .\nHe waved .\n"
ROWS = (
    ("T0", 0, 0, 1, "Anna Bell", "PER", "PROP", "anna"),
    ("T1", 0, 3, 7, "the mill of her aunt", "FAC", "NOM", "mill"),
    ("T2", 0, 6, 7, "her aunt", "PER", "NOM", "aunt"),
    ("T3", 0, 6, 6, "her", "PER", "PRON", "anna"),
    ("T4", 1, 0, 0, "She", "PER", "PRON", "anna"),
    ("T5", 1, 2, 2, "it", "FAC", "PRON", "mill"),
    ("T6", 1, 5, 6, "Tom Reed", "PER", "PROP", "tom"),
    ("T7", 1, 8, 8, "her", "PER", "PRON", "anna"),
    ("T8", 2, 0, 0, "He", "PER", "PRON", "tom"),
)


def book(
    folder: Path,
    name: str = "77_the_mill_on_the_hill",
    text: str = SENTENCES,
    rows: Sequence[tuple[str, int, int, int, str, str, str, str]] = ROWS,
    more: Sequence[str] = (),
) -> Path:
    """Write an invented book in the format of LitBank; a row without an entity is in no chain."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}_brat.txt").write_text(text)
    mentions = [
        f"MENTION\t{i}\t{s}\t{a}\t{s}\t{b}\t{words}\t{kind}\t{form}" for i, s, a, b, words, kind, form, _ in rows
    ]
    links = [f"COREF\t{row[0]}\t{row[7]}-1" for row in rows if row[7]]
    (folder / f"{name}_brat.ann").write_text("\n".join([*mentions, *links, *more]) + "\n")
    return folder


def everything(settings: LitBank) -> list[Example]:
    splits, _ = litbank.read(settings)
    return [example for examples in splits.values() for example in examples]


def tokens_of(example: Example) -> tuple[str, list[list[str]], list[str]]:
    names = [[example.text[start:end] for start, end in spans] for spans in example.candidates]
    return (
        example.text[slice(*example.pronoun)],
        names,
        [name for index in example.antecedents for name in names[index]],
    )


def test_a_mention_is_asked_by_its_head_word_against_the_entities_before_it(tmp_path: Path) -> None:
    items = everything(LitBank(path=str(book(tmp_path))))
    assert [tokens_of(example)[0] for example in items] == ["her", "She", "it", "her", "He"]
    assert tokens_of(items[3]) == (
        "her",
        [["Bell", "her", "She"], ["mill", "it"], ["aunt"], ["Reed"]],
        ["Bell", "her", "She"],
    )
    assert {example.group for example in items} == {"litbank/77_the_mill_on_the_hill"}
    assert {example.factors["form"] for example in items} == {"pronoun"}


def test_whole_mentions_stand_beside_their_head_words(tmp_path: Path) -> None:
    example = everything(LitBank(path=str(book(tmp_path))))[-1]
    own, whole = extents_of(example)
    assert example.text[slice(*own)] == "He"
    written = [[example.text[start:end] for start, end in spans] for spans in whole]
    assert written[1] == ["the mill of her aunt", "it"]
    assert written[3] == ["Tom Reed"]
    assert [len(spans) for spans in whole] == [len(spans) for spans in example.candidates]


def test_what_holds_no_extents_is_whole_itself() -> None:
    plain = Example(text="Ann ran; she hid.", language="en", pronoun=(9, 12), candidates=(((0, 3),),), antecedents=(0,))
    assert extents_of(plain) == ((9, 12), (((0, 3),),))


def test_a_mention_inside_the_asked_one_is_no_candidate(tmp_path: Path) -> None:
    rows = (
        ("T0", 0, 0, 0, "Anna", "PER", "PROP", "anna"),
        ("T1", 0, 2, 3, "her aunt", "PER", "NOM", "aunt"),
        ("T2", 0, 2, 2, "her", "PER", "PRON", "anna"),
        ("T3", 0, 5, 6, "her aunt", "PER", "NOM", "aunt"),
        ("T4", 0, 5, 5, "her", "PER", "PRON", "anna"),
    )
    items = everything(LitBank(path=str(book(tmp_path, text="Anna saw her aunt and her aunt .\n", rows=rows))))
    assert tokens_of(items[-1]) == ("aunt", [["Anna", "her"], ["aunt"]], ["aunt"])


def test_every_mention_that_is_not_asked_is_reported_with_its_reason(tmp_path: Path) -> None:
    both = ("T9", 1, 5, 8, "Tom Reed liked her", "PER", "NOM", "pair")  # an invented mention with the head of T7
    loose = ("T10", 2, 0, 1, "He waved", "PER", "NOM", "")
    folder = book(tmp_path, rows=(*ROWS, both, loose), more=["COP\tT10\tT8"])
    splits, report = litbank.read(LitBank(path=str(folder)))
    assert report.rows == 11
    assert report.reasons == {NO_CHAIN: 1, SHARED_HEAD_WORD: 1, FIRST_MENTION: 4}
    assert sum(map(len, splits.values())) + len(report.dropped) == report.rows


def test_passages_end_with_sentences_and_hold_at_most_the_words_asked_for(tmp_path: Path) -> None:
    items = everything(LitBank(path=str(book(tmp_path)), words=13))
    assert {example.text for example in items} == {
        "Anna Bell saw the mill of her aunt .",
        "She liked it , and Tom Reed liked her . He waved .",
    }
    assert tokens_of(items[-1]) == ("He", [["She", "her"], ["it"], ["Reed"]], ["Reed"])


@pytest.mark.parametrize(
    ("sentences", "most", "expected"),
    [
        ([0, 4, 8], 8, [(0, 8), (8, 12)]),
        ([0, 4, 8], 7, [(0, 4), (4, 8), (8, 12)]),
        ([0, 4, 8], 3, [(0, 3), (3, 4), (4, 7), (7, 8), (8, 11), (11, 12)]),
        ([0, 2], 5, [(0, 2), (2, 7), (7, 12)]),
        ([0], 100, [(0, 12)]),
    ],
)
def test_too_long_sentences_are_cut_and_no_word_is_lost(
    sentences: list[int], most: int, expected: list[tuple[int, int]]
) -> None:
    document = Document(name="d", words=["w"] * 12, blank=[True] * 12, sentences=sentences, mentions=())
    assert list(passages(document, most)) == expected


def test_an_exported_item_is_read_back_with_its_whole_mentions(tmp_path: Path) -> None:
    items = everything(LitBank(path=str(book(tmp_path))))
    assert items and [from_record(to_record(each)) for each in items] == items


def test_a_mention_that_a_cut_runs_through_is_dropped(tmp_path: Path) -> None:
    splits, report = litbank.read(LitBank(path=str(book(tmp_path)), words=5))
    assert report.reasons[CROSSES_PASSAGES] == 1
    assert not [one for examples in splits.values() for one in examples if "mill of" in one.factors["extents"]]


@pytest.mark.parametrize(
    ("mention", "head"),
    [
        ("the old mill", "mill"),
        ("the mill of her aunt", "mill"),
        ("Anna Bell , the painter", "Bell"),
        ("the man who waved", "man"),
        ("the roses she liked", "roses"),
        ("the printer 's", "printer"),
        ("the printer 's hands", "hands"),
        ("Anna and Tom", "Anna"),
        ("Mr. Reed", "Reed"),
        ("that", "that"),
        ("the half - ruined mill", "mill"),
        ("the mill itself", "mill"),
        ("himself", "himself"),
        ("her", "her"),
        ('" Nan "', "Nan"),
    ],
)
def test_the_head_is_the_last_word_before_what_follows_a_head(mention: str, head: str) -> None:
    words = mention.split()
    assert words[head_word(words)] == head


def test_books_of_a_pre_training_text_are_distinguished_by_number_or_title(tmp_path: Path) -> None:
    folder = book(tmp_path / "books")
    book(folder, name="78_the_well")
    book(folder, name="79_the_hedge")
    lists = {
        "numbers.txt": "77\n",
        "titles.txt": "The Mill on the Hill\n",
        "rows.jsonl": "\ufeff" + json.dumps({"id": 77, "title": "another one", "text": "x"}) + "\n",
    }
    for name, content in lists.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    with gzip.open(tmp_path / "rows.jsonl.gz", "wt") as file:
        file.write(json.dumps({"title": "The Mill, on the hill", "text": "x"}))
    for name in (*lists, "rows.jsonl.gz"):
        items = everything(LitBank(path=str(folder), seen_in=str(tmp_path / name)))
        assert {(one.group, one.factors["seen"]) for one in items} == {
            ("litbank/77_the_mill_on_the_hill", "yes"),
            ("litbank/78_the_well", "no"),
            ("litbank/79_the_hedge", "no"),
        }
    assert "seen" not in everything(LitBank(path=str(folder)))[0].factors


def test_a_book_is_never_divided_and_stored_examples_are_those_read(tmp_path: Path) -> None:
    folder = tmp_path / "books"
    for number in range(10):
        book(folder, name=f"{number}_book")
    settings = LitBank(path=str(folder), dev_share=0.2, test_share=0.3)
    splits, _ = litbank.read(settings)
    assert {name: len({one.group for one in examples}) for name, examples in splits.items()} == {
        "train": 5, "dev": 2, "test": 3,
    }  # fmt: skip
    corpus = store.load(settings)
    assert all(corpus.examples(name) == splits[name] for name in splits)
    (folder / "0_book_brat.ann").write_text((folder / "0_book_brat.ann").read_text().replace("\tT8\ttom", "\tT8\tanna"))
    assert store.load(settings).fingerprint != corpus.fingerprint


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "\t2\t0\t2\t0\tHe",
            "\t2\t0\t2\t1\tHe",
            r"line 9, words: 'He' is not what the text has there: \['He', 'waved'\]",
        ),
        ("\t2\t0\t2\t0\tHe", "\t2\t0\t2\t7\tHe", "line 9, place: words 0 to 7 .* sentence 2 has 3 words"),
        ("\t2\t0\t2\t0\tHe", "\t9\t0\t9\t0\tHe", "line 9, place: .* sentence 9 has 0 words"),
        ("\t2\t0\t2\t0\tHe", "\t2\tx\t2\t0\tHe", "line 9, place: .* must be four whole numbers"),
        ("PER\tPRON\nCOREF\tT0", "PER\tPRO\nCOREF\tT0", "line 9, category: 'PRO' must be one of PRON, PROP, NOM"),
        ("MENTION\tT7", "MENTION\tT6", "line 8, id: 'T6' names a mention above too"),
        ("COREF\tT8", "COREF\tT7", "line 18, id: 'T7' is in entity tom-1 here and in entity anna-1 above"),
        ("COREF\tT8", "COREF\tT88", "COREF names mentions that have no MENTION row: T88"),
        ("COREF\tT8", "LINK\tT8", r"line 18: 'LINK\\tT8.*must be a MENTION row \(9 cells\)"),
    ],
)
def test_a_broken_row_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = book(tmp_path) / "77_the_mill_on_the_hill_brat.ann"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(UserError, match=message):
        litbank.read(LitBank(path=str(tmp_path)))


def test_missing_files_and_wrong_settings_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"must be a folder with <book>\.ann and <book>\.txt"):
        litbank.read(LitBank(path=str(tmp_path)))
    folder = book(tmp_path / "books")
    with pytest.raises(UserError, match=r"data\.seen_in \(nowhere\): there is no such file"):
        litbank.read(LitBank(path=str(folder), seen_in="nowhere"))
    (tmp_path / "bad.jsonl").write_text('{"name": "x"}\n')
    with pytest.raises(UserError, match=r"bad\.jsonl, row 1: a book needs an id or a title"):
        litbank.read(LitBank(path=str(folder), seen_in=str(tmp_path / "bad.jsonl")))
    (tmp_path / "bad.jsonl").write_text('{"id": "77"}\n{"id": \n')
    with pytest.raises(UserError, match=r"bad\.jsonl, row 2: not JSON"):
        litbank.read(LitBank(path=str(folder), seen_in=str(tmp_path / "bad.jsonl")))
    half = tmp_path / "half.jsonl.gz"
    half.write_bytes(gzip.compress(b'{"id": "77"}\n')[:-9])
    with pytest.raises(UserError, match=r"half\.jsonl\.gz: not a whole gzip file"):
        litbank.read(LitBank(path=str(folder), seen_in=str(half)))
    (folder / "77_the_mill_on_the_hill_brat.txt").unlink()
    with pytest.raises(UserError, match=r"its text 77_the_mill_on_the_hill_brat\.txt is missing"):
        litbank.read(LitBank(path=str(folder)))
    with pytest.raises(UserError, match=r"data\.words \(1\) must be at least 2"):
        LitBank(path=".", words=1)


def test_a_mention_in_no_chain_and_a_book_without_mentions_are_counted_by_their_reasons(tmp_path: Path) -> None:
    expected, report = litbank.read(LitBank(path=str(book(tmp_path))))
    path = tmp_path / "77_the_mill_on_the_hill_brat.ann"
    path.write_text(path.read_text().replace("COREF\tT8\ttom-1\n", ""))
    book(tmp_path, name="78_bare", rows=())
    splits, again = litbank.read(LitBank(path=str(tmp_path)))
    assert [one for one in everything(LitBank(path=str(tmp_path))) if one.text[slice(*one.pronoun)] == "He"] == []
    assert again.reasons == {**report.reasons, NO_COREF: 1, NO_LAYER: 1}
    assert sum(map(len, splits.values())) + len(again.dropped) == again.rows == report.rows + 1
    assert len(expected["train"]) >= len(splits["train"])


def test_passages_without_their_words_are_dropped_and_counted(tmp_path: Path) -> None:
    rows = (*ROWS[:-1], ("T8", 2, 0, 0, "[WORD]", "PER", "PRON", "tom"))
    folder = book(tmp_path, text=SENTENCES.replace("He", "[WORD]"), rows=rows)
    splits, report = litbank.read(LitBank(path=str(folder), words=13))
    assert report.reasons[PLACEHOLDER] == 5
    assert [one.text for split in splits.values() for one in split] == ["Anna Bell saw the mill of her aunt ."]

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from anaphora.base.errors import UserError
from anaphora.data import store
from anaphora.data.corpora import corefud
from anaphora.data.corpora.coreference import (
    FIRST_MENTION,
    MARKED_TWICE,
    NO_SPLIT,
    SHARED_HEAD_WORD,
    TWO_ENTITIES,
    UNBALANCED,
    extents_of,
)
from anaphora.data.example import Example
from anaphora.settings.data import OntoGum

# id, word, part of speech, head, MISC
FIRST_SENTENCE = (
    ("1", "Young", "ADJ", 2, "Entity=(5"),
    ("2", "Anna", "PROPN", 6, "_"),
    ("3", "and", "CCONJ", 4, "_"),
    ("4", "Tom", "PROPN", 2, "Entity=(2)5)|SpaceAfter=No"),
    ("5", ",", "PUNCT", 2, "_"),
    ("6", "saw", "VERB", 0, "_"),
    ("7", "her", "PRON", 8, "Entity=(3(1)"),
    ("8-9", "aunt's", "_", "_", "_"),
    ("8", "aunt", "NOUN", 10, "_"),
    ("9", "'s", "PART", 8, "Entity=3)"),
    ("10", "mill", "NOUN", 6, "SpaceAfter=No"),
    ("10.1", "seen", "VERB", "_", "_"),
    ("11", ".", "PUNCT", 6, "_"),
)
SECOND_SENTENCE = (
    ("1", "He", "PRON", 2, "Entity=(2)"),
    ("2-3", "can't", "_", "_", "SpaceAfter=No"),
    ("2", "ca", "VERB", 0, "_"),
    ("3", "n't", "PART", 2, "_"),
    ("4", "!", "PUNCT", 2, "_"),
    ("5", "They", "PRON", 2, "Entity=(5)"),
    ("6", "know", "VERB", 2, "_"),
    ("7", "Tom", "PROPN", 6, "Entity=(2)"),
)


def written(name: str = "GUM_news_mill") -> str:
    blocks = [f"# newdoc id = {name}\n# global.Entity = GRP"]
    texts = ("Young Anna and Tom, saw her aunt's mill.", "He can't! They know Tom")
    for sentence, text in zip((FIRST_SENTENCE, SECOND_SENTENCE), texts, strict=True):
        rows = [
            f"{number}\t{word}\t_\t{kind}\t_\t_\t{head}\t_\t_\t{misc}" for number, word, kind, head, misc in sentence
        ]
        blocks[-1] += f"\n# text = {text}\n" + "\n".join(rows) + "\n"
        blocks.append("")
    return "\n".join(blocks)


def everything(settings: OntoGum) -> list[Example]:
    splits, _ = corefud.read(settings)
    return [example for examples in splits.values() for example in examples]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "one.conllu"
    file.write_text(written(), encoding="utf-8")
    return file


def test_words_are_put_together_as_they_were_written(path: Path) -> None:
    (text,) = {example.text for example in everything(OntoGum(path=str(path)))}
    assert text == "Young Anna and Tom, saw her aunt's mill. He can't! They know Tom"


def test_the_dependency_head_stands_for_the_mention(path: Path) -> None:
    examples = everything(OntoGum(path=str(path)))
    pronouns = [(one.text[slice(*one.pronoun)], one.factors["form"]) for one in examples]
    assert pronouns == [("He", "pronoun"), ("They", "pronoun"), ("Tom", "proper")]
    last = examples[-1]
    heads = [[last.text[slice(*span)] for span in spans] for spans in last.candidates]
    whole = [[last.text[slice(*span)] for span in spans] for spans in extents_of(last)[1]]
    assert heads == [["Anna", "They"], ["Tom", "He"], ["her"], ["aunt"]]
    assert whole == [["Young Anna and Tom", "They"], ["Tom", "He"], ["her"], ["her aunt's"]]
    assert last.antecedents == (1,)
    assert (last.group, last.factors["genre"]) == ("ontogum/GUM_news_mill", "news")


def test_mentions_without_an_antecedent_are_counted_and_lost_brackets_spoil_no_other_sentence(path: Path) -> None:
    splits, report = corefud.read(OntoGum(path=str(path)))
    assert (report.rows, report.reasons) == (7, {FIRST_MENTION: 4})
    path.write_text(path.read_text().replace("Entity=(1", "Entity=(7(1").replace("Entity=(3(1)", "Entity=(7(3(1)"))
    again, report = corefud.read(OntoGum(path=str(path)))
    assert report.reasons == {FIRST_MENTION: 4, UNBALANCED: 1}
    assert again == splits


def test_of_mentions_with_one_head_word_the_shortest_stays(path: Path) -> None:
    path.write_text(
        path.read_text().replace("Anna\t_\tPROPN\t_\t_\t6\t_\t_\t_", "Anna\t_\tPROPN\t_\t_\t6\t_\t_\tEntity=(9)")
    )
    _, report = corefud.read(OntoGum(path=str(path)))
    assert report.reasons == {SHARED_HEAD_WORD: 1, FIRST_MENTION: 5}


@pytest.mark.parametrize(("entity", "reason"), [("9", TWO_ENTITIES), ("1", MARKED_TWICE)])
def test_words_that_are_marked_for_two_entities_or_twice_have_a_reason_of_their_own(
    entity: str, reason: str, path: Path
) -> None:
    path.write_text(path.read_text().replace("Entity=(3(1)", f"Entity=(3(1)({entity})"))
    _, report = corefud.read(OntoGum(path=str(path)))
    assert report.rows == 8 and report.reasons[reason] == 1
    assert set(report.reasons) == {reason, FIRST_MENTION}


def test_file_names_tell_the_official_splits_and_mentions_of_other_files_are_dropped(tmp_path: Path) -> None:
    for split in ("train", "dev", "test", "test2"):
        with gzip.open(tmp_path / f"onto_{split}.conllu.gz", "wt", encoding="utf-8") as file:
            file.write(written(f"GUM_news_{split}"))
    splits, report = corefud.read(OntoGum(path=str(tmp_path)))
    assert (report.rows, report.reasons) == (4 * 7, {FIRST_MENTION: 3 * 4, NO_SPLIT: 7})
    assert {where for where, reason in report.dropped if reason == NO_SPLIT} == {"ontogum/GUM_news_test2"}
    assert {name: {one.group for one in examples} for name, examples in splits.items()} == {
        name: {f"ontogum/GUM_news_{name}"} for name in ("train", "dev", "test")
    }
    corpus = store.load(OntoGum(path=str(tmp_path)))
    assert all(corpus.examples(name) == splits[name] for name in splits)


def test_documents_without_official_splits_are_divided_by_the_shares(tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / f"GUM_fiction_{number}.conllu").write_text(written(f"GUM_fiction_{number}"), encoding="utf-8")
    splits, _ = corefud.read(OntoGum(path=str(tmp_path), dev_share=0.2, test_share=0.3))
    assert {name: len({one.group for one in examples}) for name, examples in splits.items()} == {
        "train": 5, "dev": 2, "test": 3,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("# newdoc id = GUM_news_mill\n", "", r"line 3: a word comes before the first '# newdoc id = '"),
        ("6\tsaw\t", "7\tsaw\t", r"line 9, ID: '7' must be 6"),
        ("8-9\taunt's", "8-x\taunt's", r"line 11, ID: '8-x' must be 8"),
        ("Anna\t_\tPROPN\t_\t_\t6", "Anna\t_\tPROPN\t_\t_\t4", "line 4, HEAD: .* in a circle"),
        ("VERB\t_\t_\t0\t", "VERB\t_\t_\t_\t", r"line 9, HEAD: '_' must be a whole number"),
        ("6\tsaw\t_\t", "6\tsaw\t", "line 9: 9 cells; CoNLL-U has 10"),
    ],
)
def test_a_broken_line_is_named(path: Path, old: str, new: str, message: str) -> None:
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(UserError, match=message):
        corefud.read(OntoGum(path=str(path)))


def test_wrong_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"this folder has no \.conllu or \.conllu\.gz file"):
        corefud.read(OntoGum(path=str(tmp_path)))
    (tmp_path / "cut.conllu.gz").write_bytes(gzip.compress(b"x" * 99)[:-4])
    with pytest.raises(UserError, match=r"cut\.conllu\.gz: not a whole gzip file"):
        corefud.read(OntoGum(path=str(tmp_path)))
    (tmp_path / "cut.conllu.gz").write_bytes(gzip.compress(b"\n"))
    with pytest.raises(UserError, match="it has no line '# newdoc id = '"):
        corefud.read(OntoGum(path=str(tmp_path)))


@pytest.mark.parametrize("ending", ["\r\n", "\r"])
def test_every_line_end_is_the_same_corpus(path: Path, ending: str) -> None:
    expected = everything(OntoGum(path=str(path)))
    path.write_bytes(b"\xef\xbb\xbf" + written().replace("\n", ending).encode())
    assert everything(OntoGum(path=str(path))) == expected

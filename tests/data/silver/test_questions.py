"""Tests of silver-standard items: names, the answers of the two rules, and the generated text."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from readings import everything, pronoun, right, words

from anaphora.base.errors import UserError
from anaphora.data.example import Example
from anaphora.data.silver import questions as silver
from anaphora.data.silver.people import NameLexicon, gender_of
from anaphora.data.silver.questions import passages, silver_items
from anaphora.data.store import load
from anaphora.data.text import Text
from anaphora.runs.directory import load as load_run
from anaphora.runs.warm_start import with_start_model
from anaphora.settings.data import SilverStandard
from anaphora.settings.run import Config
from anaphora.training.run import train

_LIVES = {
    "Marta Dahl": "She wrote. She sang. Her books sold. She won. Her house burned.",
    "Marta Holm": "She ran. She won. Her time stands. She left. Her club closed.",
    "Olaf Berg": "He wrote. He sang. His books sold. He won. His house burned.",
    "Peter Lund": "He ran. He won. His time stands. He left. His club closed.",
}


def page(title: str, text: str) -> Text:
    return Text(text=text, language="en", title=title, group=f"pages/{title}")


def lives() -> list[Text]:
    """Return documents from which four given names are learned."""
    return [page(name, f"{name} (born 1950) was a person. {text}") for name, text in _LIVES.items()]


def asked(text: str, title: str = "", seed: int = 0) -> list[Example]:
    return list(silver_items(page(title, text), NameLexicon(lives()), words=100, seed=seed))


def by(rule: str, text: str, title: str = "", seeds: int = 20) -> list[Example]:
    """Return the items of one rule over several seeds."""
    return [each for seed in range(seeds) for each in asked(text, title, seed) if each.factors["rule"] == rule]


def test_pages_about_people_teach_given_names_and_their_gender() -> None:
    names = NameLexicon(
        [
            *lives(),
            page("Kim Foss", "Kim Foss (born 1950) was a singer. " + _LIVES["Marta Dahl"]),
            page("Kim Krog", "Kim Krog (born 1950) was a singer. " + _LIVES["Olaf Berg"]),  # bearers of both genders
            page("The Hague", "The Hague is a city. He liked it. He did. He did. He did. He did."),
            page("Olaf the Wise", "A saga (1350) of kings. He won. He won. He won. He won. He won."),
        ]
    )
    assert names.genders == {"Marta": "female", "Olaf": "male", "Peter": "male"}
    assert names.given == {"Marta": 2, "Olaf": 1, "Peter": 1, "Kim": 2}
    assert (names.of["male"], names.of["female"]) == (("Olaf", "Peter"), ("Marta",))
    assert names.families == ("Dahl", "Holm", "Berg", "Lund", "Foss", "Krog")


def test_a_page_may_begin_with_a_longer_form_of_the_name_in_its_title() -> None:
    text = "Maximilian Foss (born 1950) was a singer. " + _LIVES["Olaf Berg"]
    names = NameLexicon([*lives(), page("Max Foss", text)])
    assert names.genders["Max"] == "male" and "Foss" in names.families
    subject = names.subject(page("Max Foss", text))
    assert subject is not None and subject.given == "Max"
    assert names.subject(page("Max Foss", f"Later, {text}")) is None


@pytest.mark.parametrize(
    ("text", "gender"),
    [
        ("He and his dog. He, him, himself.", "male"),
        ("She. Her. Hers. She. Herself.", "female"),
        ("He. He. She.", None),
    ],
)
def test_a_text_has_the_gender_of_nearly_all_its_pronouns(text: str, gender: str | None) -> None:
    assert gender_of(text) == gender
    assert gender_of(text + " he she" * 5) is None


def named(text: str, title: str = "") -> list[tuple[str, str, str | None]]:
    names = NameLexicon(lives())
    subject = names.subject(page(title, text))
    return [(text[one.start : one.end], one.person, one.gender) for one in names.mentions(text, subject)]


def test_parts_of_a_name_are_the_person_whom_the_whole_has_named() -> None:
    assert named("When Olaf J. Strand met Marta Vik's aunt, Strand told Olaf and Vik.") == [
        ("Olaf J. Strand", "Olaf J. Strand", "male"),
        ("Marta Vik", "Marta Vik", "female"),
        ("Strand", "Olaf J. Strand", "male"),
        ("Olaf", "Olaf J. Strand", "male"),
        ("Vik", "Marta Vik", "female"),
    ]


def test_a_capital_letter_does_not_make_a_word_part_of_a_name() -> None:
    assert named("Later Marta Vik and Later Vik met Brother Olaf Strand.") == [
        ("Marta Vik", "Marta Vik", "female"),
        ("Olaf Strand", "Olaf Strand", "male"),
    ]


def test_titles_name_people_and_places_are_none() -> None:
    assert named("Mrs. Strand left the Marta Vik Museum in June with Mr. Vik.") == [
        ("Mrs. Strand", "Mrs Strand", "female"),
        ("Mr. Vik", "Mr Vik", "male"),
    ]


def test_a_given_name_alone_is_a_person_in_stories_where_two_pages_know_it() -> None:
    assert named("Then Marta smiled at Peter.") == [("Marta", "Marta", "female")]  # one page alone has a Peter
    assert named("Olaf Berg was here. Then Marta smiled.", title="Olaf Berg") == [("Olaf Berg", "Olaf Berg", "male")]


COUPLE = (
    "Olaf Strand met Marta Vik at the harbour early in spring. While Strand mended his boat, she read her book aloud, "
    "and later Marta Vik gave it to him without a word."
)


def test_a_passage_of_a_man_and_a_woman_is_written_in_one_gender() -> None:
    items = by("gender", COUPLE)
    assert {each.factors["gender"] for each in items} == {"male", "female"}
    for each in items:
        forms = {word.strip(".,").lower() for word in each.text.split()}
        other = {"he", "him", "his"} if each.factors["gender"] == "female" else {"she", "her"}
        assert not forms & other
        kept = "Marta Vik" if each.factors["gender"] == "female" else "Olaf Strand"
        changed = "Olaf Strand" if each.factors["gender"] == "female" else "Marta Vik"
        assert kept in each.text
        assert changed not in each.text


def test_the_answer_is_the_person_whose_gender_the_pronoun_had() -> None:
    answers = set()
    for each in by("gender", COUPLE, seeds=40):
        start = each.pronoun[0]
        first_is_meant = each.antecedents == (0,)  # the man is named first
        before = each.text[:start].rsplit(" ", 2)[-2:]
        is_the_mans = before[-2] == "mended" or "gave it to" in each.text[:start]
        assert first_is_meant == is_the_mans
        answers.add((pronoun(each), first_is_meant))
    assert {("his", True), ("her", True), ("him", True), ("she", False), ("he", False)} <= answers


def test_no_question_offers_one_name_twice() -> None:
    items = [
        each for each in by("gender", COUPLE.replace("Vik", "Dahl"), seeds=40) if each.factors["gender"] == "female"
    ]
    assert items
    assert all(each.words(0) != each.words(1) for each in items)


def test_her_becomes_possessive_before_a_noun_and_an_object_elsewhere() -> None:
    text = (
        "Marta Vik met Olaf Strand at the harbour early in the spring of that year. He gave her a book, he told her to "
        "read it, and he admired her voice more than anything else there."
    )
    men = next(each for each in by("gender", text) if each.factors["gender"] == "male")
    assert "He gave him a book, he told him to read it, and he admired his voice" in men.text


def test_where_the_rule_cannot_know_nothing_is_asked() -> None:
    more = " They stayed there for many years and built a house of stone near the old church by the river."
    for text, title in (
        ("Olaf Strand met Peter Vik when he was young." + more, ""),  # two men
        ("Olaf Strand and Marta Vik met." + more, ""),  # no pronoun
        ("Olaf Strand met Marta Vik and Kim Vik when he was young." + more, "Olaf Berg"),  # the page's man may be meant
    ):
        assert not by("gender", text, title), text


def test_a_name_that_comes_again_is_written_as_the_pronoun_of_its_place() -> None:
    more = " at the harbour of the small town where both of them had lived for a long time in peace"
    for sentence, form in (
        (f"Olaf Strand met Peter Lund{more}. Strand left.", "He"),
        (f"Olaf Strand met Peter Lund{more}, and Strand left.", "he"),
        (f"Olaf Strand met Peter Lund{more}, who told Strand everything.", "him"),
        (f"Olaf Strand met Peter Lund{more}, who sold Strand's boat.", "his"),
    ):
        (each,) = by("name", sentence, seeds=1)
        assert (pronoun(each), right(each), words(each)) == (form, ["Olaf Strand"], [["Olaf Strand"], ["Peter Lund"]])
        assert "Strand" not in each.text.replace("Olaf Strand", "")
    assert not by("name", f"Olaf Strand met Peter Lund{more}; a friend saw Strand and left.")  # subject or object?
    assert not by("name", f"Olaf Strand met Peter Lund{more}, and Strand left. She stayed.")  # of whom is that said?


def test_a_third_person_allows_the_answer_none_of_them() -> None:
    text = (
        "Olaf Strand met Peter Lund and Olaf Vik at the harbour of the small town where all of them had lived. "
        "Peter Lund left, and Lund came back."
    )
    items = by("name", text, seeds=60)
    answers = {tuple(right(each)) for each in items}
    assert () in answers
    assert ("Peter Lund",) in answers
    assert all(["Peter Lund"] not in words(each) for each in items if not each.antecedents)


def test_passages_are_whole_sentences_of_one_paragraph() -> None:
    sentences = [f"Sentence number {number} has a few words more than that, said Mr. Vik." for number in range(12)]
    text = " ".join(sentences[:6]) + "\n" + " ".join(sentences[6:])
    texts = list(passages(text, 50, random.Random(0)))
    assert texts
    assert len(set(texts)) == len(texts)
    for each in texts:
        assert each in text
        assert each.startswith("Sentence")
        assert each.endswith("Vik.")
        assert 20 <= len(each.split()) <= 50


def test_questions_are_drawn_by_seed_and_document() -> None:
    assert asked(COUPLE, seed=3) == asked(COUPLE, seed=3)
    assert len({each.text for seed in range(20) for each in asked(COUPLE, seed=seed)}) > 1


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with four biographies and thirty stories about these persons."""
    pages = [{"title": one.title, "text": one.text} for one in lives()]
    late = (
        "Marta Vik came early. Later Olaf Strand came, who said nothing, and then he sat down by the fire with a pipe."
    )
    stories = [{"text": f"{COUPLE} {'It rained. ' * number}\n{late} It was {number}."} for number in range(30)]
    (tmp_path / "pages.jsonl").write_text("\n".join(map(json.dumps, [*pages, *stories])), encoding="utf-8")
    return tmp_path


def test_a_corpus_of_text_becomes_questions_whose_documents_stay_whole(folder: Path) -> None:
    corpus = load(SilverStandard(path=str(folder / "pages.jsonl"), dev_share=0.2))
    splits = {split: corpus.examples(split) for split in ("train", "dev", "test")}
    assert len(splits["train"]) > len(splits["dev"]) > 0
    assert not splits["test"]
    assert not {one.group for one in splits["train"]} & {one.group for one in splits["dev"]}
    assert {one.factors["rule"] for one in everything(splits)} >= {"gender"}
    assert corpus.report.rows == 64


def test_a_run_on_silver_questions_is_something_to_start_from(
    folder: Path, table: Path, settings: Callable[..., Config], tmp_path: Path
) -> None:
    small = (f"output={tmp_path}", "recipe=fine_tuned", "optimizer.frozen_layers=0", "trainer=smoke")
    first = train(settings(*small, "name=silver", "data=silver", f"data.path={folder / 'pages.jsonl'}"))
    here = ("name=after", "data=jsonl", f"data.path={table}", f"start={first}")
    after = train(with_start_model(settings(*small, *here, "optimizer.learning_rate=1e-20")))  # as good as no step
    began, ended = (load_run(one).model.state_dict() for one in (first, after))
    assert all(torch.allclose(began[name], ended[name], atol=1e-6) for name in began)


def test_answers_that_are_named_first_are_at_most_twice_as_many(folder: Path) -> None:
    splits, _ = silver.read(SilverStandard(path=str(folder / "pages.jsonl"), dev_share=0.0))
    first, later = (sum(one.antecedents == (place,) for one in splits["train"]) for place in (0, 1))
    assert 0 < first <= silver.MAX_FIRST_RATIO * later


def test_text_that_evaluation_data_share_is_left_out(folder: Path) -> None:
    (folder / "asked.txt").write_text(COUPLE, encoding="utf-8")
    without = SilverStandard(path=str(folder / "pages.jsonl"), dev_share=0.0, without=[str(folder / "asked.txt")])
    splits, report = silver.read(without)
    assert len(report.dropped) == 30
    assert not any("harbour" in one.text for one in splits["train"])


def test_what_cannot_be_made_into_questions_is_reported(folder: Path) -> None:
    (folder / "plain.txt").write_text("Nobody is named here.", encoding="utf-8")
    with pytest.raises(UserError, match="no given names were found"):
        silver.read(SilverStandard(path=str(folder / "plain.txt"), dev_share=0.0))
    bare = "\n".join(json.dumps({"title": one.title, "text": one.text}) for one in lives())
    (folder / "bare.jsonl").write_text(bare, encoding="utf-8")
    with pytest.raises(UserError, match="no passage names two people"):
        silver.read(SilverStandard(path=str(folder / "bare.jsonl"), dev_share=0.0))
    with pytest.raises(UserError, match=r"data.words \(10\) must be at least 20"):
        SilverStandard(path="x", words=10)

"""Tests of the readers of PDP-60 and of both formats of WSC273."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from readings import everything, pairs_in_one_split, pronoun, right, words

from anaphora.base.errors import UserError
from anaphora.data.corpora import wsc273
from anaphora.data.store import load
from anaphora.settings.data import Knowref, Mandarinograd, Pdp60, Wsc273

PDP = """Maud gave Ida the vase of Ida's aunt.  Later [MASK]  broke it.
[MASK]
 Ida's aunt , Ida , Maud
 Ida's aunt

Maud gave Ida the vase of Ida's aunt. Later she broke  [MASK] , alas.
[MASK]
 Vase , Maud
 Vase

The potter slept because [MASK] was tired.
[MASK]
 potter , kiln
 potter
"""


def pdp(folder: Path, text: str = PDP) -> Pdp60:
    path = folder / "PDP.txt"
    path.write_text(text)
    return Pdp60(path=str(path))


def test_a_blank_takes_the_place_of_the_mask_and_several_candidates_are_read(tmp_path: Path) -> None:
    first, second = everything(wsc273.read(pdp(tmp_path, "\n\n".join(PDP.split("\n\n")[:2])))[0])
    assert first.text == "Maud gave Ida the vase of Ida's aunt. Later _ broke it."
    assert (pronoun(first), pronoun(second)) == ("_", "_")
    assert second.text == "Maud gave Ida the vase of Ida's aunt. Later she broke _ , alas."
    assert right(first) == ["Ida's aunt"]
    assert right(second) == ["vase"]  # in other case


def test_a_candidate_that_is_only_a_part_of_a_longer_one_is_not_in_the_sentence(tmp_path: Path) -> None:
    text = "Maud met Ida's aunt and Ida before [MASK] left.\n[MASK]\nIda's aunt , Ida\nIda\n"
    (example,) = everything(wsc273.read(pdp(tmp_path, text))[0])
    assert words(example) == [["Ida's aunt"], ["Ida"]]
    splits, report = wsc273.read(pdp(tmp_path, text.replace(" and Ida", "")))
    assert not everything(splits)
    assert report.reasons == {"a candidate is not in the sentence": 1}


def test_questions_about_one_passage_share_a_group_and_nothing_is_for_training(tmp_path: Path) -> None:
    splits, report = wsc273.read(pdp(tmp_path, PDP.replace("The potter slept", "By the kiln the potter slept")))
    assert (report.rows, report.dropped) == (3, ())
    assert splits["train"] == []
    assert len({example.group for example in everything(splits)}) == 2
    assert pairs_in_one_split(splits)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Later [MASK]", "Later she", r"line 1, sentence: .* must hold \[MASK\] once"),
        (" Ida's aunt , Ida , Maud", "Maud", "line 3: candidates 'Maud' must be two or more"),
        ("\n Vase\n", "\n pot\n", r"line 9: answer 'pot' must be one of \['Vase', 'Maud'\]"),
    ],
)
def test_a_broken_block_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in PDP
    with pytest.raises(UserError, match=message):
        wsc273.read(pdp(tmp_path, PDP.replace(old, new)))


def schema(before: str, form: str, after: str, answers: tuple[str, str], letter: str) -> str:
    listed = "".join(f"<answer> {answer}\n</answer>" for answer in answers)
    return (
        f"<schema><text><txt1>{before}</txt1><pron> {form} </pron><txt2>{after}</txt2></text>"
        f"<quote><quote1/><pron>{form}</pron><quote2/></quote><answers>{listed}</answers>"
        f"<correctAnswer> {letter} </correctAnswer><source>(me)</source></schema>"
    )


POTS = [
    schema("The cup would not\n go in the bag because", "it", "was too large.", ("The cup", "the bag"), "A"),
    schema("The cup would not go in the bag because", "it", "was too small.", ("The cup", "The bag"), "B."),
    schema("", "She", ", Maud said, would call Ida.", ("Maud", "Ida"), "A"),
]


def wsc(folder: Path, schemas: list[str]) -> Wsc273:
    path = folder / "WSCollection.xml"
    path.write_text(f"<?xml version='1.0'?><collection>{''.join(schemas)}</collection>")
    return Wsc273(path=str(path))


def test_the_letter_is_the_answer_and_neighbours_with_the_same_answers_are_twins(tmp_path: Path) -> None:
    splits, _ = wsc273.read(wsc(tmp_path, POTS))
    by_text = {example.text: example for example in everything(splits)}
    large, small, alone = (by_text[text] for text in sorted(by_text, key=lambda text: (-len(text), text)))
    assert large.text == "The cup would not go in the bag because it was too large."
    assert (right(large), right(small), right(alone)) == (["The cup"], ["the bag"], ["Maud"])
    assert large.group == small.group != alone.group
    assert large.minimal_pair == small.minimal_pair != ""
    assert alone.minimal_pair == ""
    assert alone.text == "She, Maud said, would call Ida."
    assert pairs_in_one_split(splits)


def test_what_comes_after_the_first_273_schemas_is_dropped_and_counted(tmp_path: Path) -> None:
    splits, report = wsc273.read(wsc(tmp_path, [POTS[0]] * 275))
    assert len(everything(splits)) == 273
    assert report.reasons == {"not among the first 273 schemas": 2}


def test_the_order_of_the_copy_that_lists_the_right_answer_first_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "wsc273.txt"
    text = "The cup would not go in the bag because [MASK] was {}.\n[MASK]\n{}\n{}\n\n"
    path.write_text(
        text.format("large", "the cup,the bag", "the cup") + text.format("small", "the bag,the cup", "the bag")
    )
    examples = everything(wsc273.read(Wsc273(path=str(path)))[0])
    assert sorted(example.antecedents for example in examples) == [(0,), (1,)]
    assert len({example.minimal_pair for example in examples}) == 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("<correctAnswer> A ", "<correctAnswer> C ", "schema 1, correctAnswer: 'C' must be one of A, B"),
        ("<pron> it </pron><txt2>", "<pron> </pron><txt2>", "schema 1, pron: '' must be text"),
        ("<schema>", "<schema", r"WSCollection.xml: not XML"),
        ("schema>", "other>", "WSCollection.xml: it has no <schema>"),
    ],
)
def test_a_broken_schema_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in POTS[0]
    with pytest.raises(UserError, match=message):
        wsc273.read(wsc(tmp_path, [POTS[0].replace(old, new)]))


@pytest.mark.parametrize("settings", [Pdp60, Knowref, Mandarinograd])
def test_a_folder_in_a_files_place_is_reported_with_what_it_holds(settings: Any, tmp_path: Path) -> None:
    (tmp_path / "held.txt").write_text("one")
    with pytest.raises(UserError, match=r"is a folder, not a file; it holds held.txt"):
        load(settings(path=str(tmp_path)))

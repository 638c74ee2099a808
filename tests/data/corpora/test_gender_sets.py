"""Tests of the readers of WinoBias, Winogender and KnowRef."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from readings import everything, pairs_in_one_split, pronoun, right, words

from anaphora.base.errors import UserError
from anaphora.data.corpora import knowref, winobias, winogender
from anaphora.settings.data import Knowref, Winobias, Winogender

PRO = ["1 [The potter] thanked the night nurse because [he] was glad of [his] tea.",
       "2 The potter thanked [the night nurse] because [ she] brought tea."]  # fmt: skip
ANTI = ["1 [The potter] thanked the night nurse because [she] was glad of [her] tea.",
        "2 The potter thanked [the night nurse] because [he] brought tea."]  # fmt: skip
SECOND = ["1 The nurse thanked [the potter] and sent [him] to the weaver.",
          "2 The potter saw [the weaver] and greeted [her]."]  # fmt: skip


def wino(folder: Path, part: str = "dev") -> Winobias:
    files = {"pro_stereotyped_type1": PRO, "anti_stereotyped_type1": ANTI, "pro_stereotyped_type2": SECOND}
    for name, lines in files.items():
        (folder / f"{name}.txt.{part}").write_text("\n".join(lines) + "\n")
    (folder / "female_occupations.txt").write_text("nurse\nnight nurse")  # no end of line, as in the original
    (folder / "male_occupations.txt").write_text("potter\nweaver\n")
    return Winobias(path=str(folder))


def test_brackets_are_taken_off_and_the_other_occupation_is_found_by_the_lists(tmp_path: Path) -> None:
    by_text = {example.text: example for example in everything(winobias.read(wino(tmp_path))[0])}
    first = by_text["The potter thanked the night nurse because he was glad of his tea."]
    assert (pronoun(first), words(first)) == ("he", [["The potter"], ["the night nurse"]])
    assert (right(first), first.factors["stereotype"], first.factors["type"]) == (["The potter"], "pro", "type 1")
    blank = by_text["The potter thanked the night nurse because she brought tea."]
    assert (pronoun(blank), right(blank), blank.factors["gender"]) == ("she", ["the night nurse"], "female")


def test_an_occupation_after_the_pronoun_is_no_candidate(tmp_path: Path) -> None:
    examples = everything(winobias.read(wino(tmp_path))[0])
    (example,) = (example for example in examples if "sent him" in example.text)
    assert words(example) == [["The nurse"], ["the potter"]]
    assert example.minimal_pair == ""


def test_winobias_minimal_pairs_differ_in_the_ending_and_not_in_gender_and_a_pair_of_lines_stays_together(
    tmp_path: Path,
) -> None:
    splits, report = winobias.read(wino(tmp_path))
    assert (report.rows, report.dropped) == (6, ())
    by_pair: dict[str, set[tuple[str, tuple[int, ...]]]] = {}
    for example in everything(splits):
        if example.minimal_pair:
            by_pair.setdefault(example.minimal_pair, set()).add((example.factors["gender"], example.antecedents))
    assert sorted(map(sorted, by_pair.values())) == [
        [("female", (0,)), ("female", (1,))],
        [("male", (0,)), ("male", (1,))],
    ]
    assert len({example.group for example in everything(splits)}) == 2
    assert pairs_in_one_split(splits)


def test_both_parts_of_winobias_are_the_splits_of_their_names(tmp_path: Path) -> None:
    wino(tmp_path, "test")
    splits, _ = winobias.read(wino(tmp_path))
    assert {name: len(examples) for name, examples in splits.items()} == {"train": 0, "dev": 6, "test": 6}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[The potter] met the nurse and [he] left.", r"type1.txt.dev, line 1, '\[The potter\].* must begin with its"),
        ("1 [The potter] met the nurse and he left.", "line 1, .* must hold an occupation and its pronoun"),
    ],
)
def test_a_broken_winobias_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    settings = wino(tmp_path)
    (tmp_path / "pro_stereotyped_type1.txt.dev").write_text(line)
    with pytest.raises(UserError, match=message):
        winobias.read(settings)


def test_winobias_needs_its_lists_and_a_sentence_with_both_occupations(tmp_path: Path) -> None:
    settings = wino(tmp_path)
    (tmp_path / "male_occupations.txt").write_text("weaver\n")
    assert "not exactly one other occupation before the pronoun" in winobias.read(settings)[1].reasons
    (tmp_path / "male_occupations.txt").unlink()
    with pytest.raises(UserError, match=r"the folder has no male_occupations\.txt"):
        winobias.read(settings)


TEMPLATES = """occupation(0)\tother-participant(1)\tanswer\tsentence
potter\tguest\t0\tThe $OCCUPATION told the $PARTICIPANT that $POSS_PRONOUN kiln was hot.
potter\tguest\t1\tThe $PARTICIPANT heard from the $OCCUPATION that $NOM_PRONOUN could go.
"""
SENTENCES = """sentid\tsentence
potter.guest.0.male.txt\tThe potter told the guest that his kiln was hot.
potter.guest.1.female.txt\tThe guest heard from the potter that she could go.
potter.someone.0.male.txt\tThe potter told someone that his kiln was hot.
potter.someone.1.neutral.txt\tSomeone heard from the potter that they could go.
potter.guest.1.male.txt\tThe guest heard nothing.
"""


def gender_files(folder: Path, sentences: str = SENTENCES) -> Winogender:
    (folder / "all_sentences.tsv").write_text(sentences)
    (folder / "templates.tsv").write_text(TEMPLATES)
    return Winogender(path=str(folder))


def test_winogender_templates_say_where_pronoun_and_candidates_stand(tmp_path: Path) -> None:
    splits, report = winogender.read(gender_files(tmp_path))
    by_text = {example.text: example for example in everything(splits)}
    theirs = by_text["Someone heard from the potter that they could go."]
    assert (pronoun(theirs), words(theirs), right(theirs)) == ("they", [["Someone"], ["the potter"]], ["Someone"])
    assert theirs.factors == {
        "corpus": "winogender", "form": "they", "gender": "neutral", "participant": "someone", "answer": "participant",
    }  # fmt: skip
    his = by_text["The potter told the guest that his kiln was hot."]
    assert (pronoun(his), words(his), right(his)) == ("his", [["The potter"], ["the guest"]], ["The potter"])
    assert report.reasons == {"the sentence does not match its template": 1}
    assert {example.group for example in by_text.values()} == {"winogender/potter"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("potter.guest.0.male", "potter.guest.2.male", r"line 2, sentid: 'potter.guest.2.male.txt' must be occupation"),
        ("potter.guest.0.male", "weaver.guest.0.male", "line 2, sentid: .* has no template with this occupation"),
        ("sentid\t", "id\t", "line 1: columns sentid are missing"),
        ("\tThe potter told the guest", "", "line 2: the number of cells differs from the header's 2"),
    ],
)
def test_a_broken_winogender_row_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        winogender.read(gender_files(tmp_path, SENTENCES.replace(old, new, 1)))


def test_winogender_needs_both_files(tmp_path: Path) -> None:
    settings = gender_files(tmp_path)
    (tmp_path / "templates.tsv").unlink()
    with pytest.raises(UserError, match=r"must be a folder with all_sentences\.tsv and .*: no templates\.tsv"):
        winogender.read(settings)


NAMES = {
    "sentence_with_pronoun": "Maud phoned Ida , but [she] was out .",
    "candidate0": ["Maud"],
    "candidate1": ["Ida"],
    "correct_candidate": ["Ida"],
    "correct_candidate_idx": 0,
    "original_sentence": ["Maud phoned Tom , but he was out ."],
}


def names_file(folder: Path, *items: dict[str, Any]) -> Knowref:
    path = folder / "knowref_test.json"
    path.write_text(json.dumps([{**NAMES, **item} for item in items]))
    return Knowref(path=str(path))


def test_knowref_takes_the_named_answer_and_not_the_index_column(tmp_path: Path) -> None:
    (example,) = everything(knowref.read(names_file(tmp_path, {}))[0])
    assert (example.text, pronoun(example)) == ("Maud phoned Ida , but she was out .", "she")
    assert (right(example), example.factors["names"]) == (["Ida"], "exchanged")


def test_knowref_items_of_one_original_share_a_group(tmp_path: Path) -> None:
    other = {"sentence_with_pronoun": "Maud phoned Ann , but [her] line was out .", "candidate1": ["Ann"]}
    splits, _ = knowref.read(names_file(tmp_path, {}, {**other, "correct_candidate": ["Ann"]}))
    assert len({example.group for example in everything(splits)}) == 1


def test_knowref_drops_what_cannot_be_asked(tmp_path: Path) -> None:
    twice = {"sentence_with_pronoun": "Maud phoned Ida , but [she] and [she] were out ."}
    same = {"candidate0": ["Ida"]}
    absent = {"candidate0": ["Dr. Lee"]}
    splits, report = knowref.read(names_file(tmp_path, twice, same, absent))
    assert not everything(splits)
    assert report.reasons == {
        "two pronouns are marked": 1, "two candidates are the same": 1, "a candidate is not in the sentence": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"sentence_with_pronoun": "Maud phoned Ida ."}, r"item 1, sentence_with_pronoun: .* the pronoun in \[ \]"),
        ({"correct_candidate": ["Tom"]}, r"item 1, correct_candidate: 'Tom' must be one of \['Maud', 'Ida'\]"),
        ({"candidate0": "Maud"}, "item 1, candidate0: 'Maud' must be a list of one text"),
    ],
)
def test_a_broken_knowref_item_is_named(tmp_path: Path, item: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        knowref.read(names_file(tmp_path, item))


def test_a_knowref_file_that_is_no_list_is_named(tmp_path: Path) -> None:
    settings = names_file(tmp_path)
    with pytest.raises(UserError, match="must hold one JSON list"):
        knowref.read(settings)
    (tmp_path / "knowref_test.json").write_text("[{")
    with pytest.raises(UserError, match=r"knowref_test.json, line 1: not JSON"):
        knowref.read(settings)


def test_brackets_that_do_not_pair_are_dropped_with_that_reason(tmp_path: Path) -> None:
    settings = wino(tmp_path)
    line = "1 [The potter met the nurse because [he] was ill and [his] head hurt."
    (tmp_path / "pro_stereotyped_type1.txt.dev").write_text(line)
    assert winobias.read(settings)[1].reasons["its brackets do not pair"] == 1
    other = {"sentence_with_pronoun": "[Maud phoned Ida , but [she] was out ."}
    assert knowref.read(names_file(tmp_path, other))[1].reasons == {"its brackets do not pair": 1}


def test_two_columns_of_one_name_are_reported(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"line 1: two columns have the same name \(sentid, sentence, sentence\)"):
        winogender.read(gender_files(tmp_path, "sentid\tsentence\tsentence\na\tb\tc\n"))

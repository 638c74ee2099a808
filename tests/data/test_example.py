from __future__ import annotations

import json
from typing import Any

import pytest

from anaphora.base.errors import UserError
from anaphora.data.example import Example, from_record, in_text_order, to_record

TEXT = "Anna met Berta because she was free."


def record(**changes: Any) -> dict[str, Any]:
    right = {"text": TEXT, "language": "en", "pronoun": [23, 26], "candidates": [[0, 4], [[9, 14]]], "antecedents": [0]}
    return right | changes


def test_a_record_survives_the_way_there_and_back() -> None:
    example = from_record(record(group="g", minimal_pair="t", factors={"focal": "0,1", "cue": "free"}))
    assert from_record(json.loads(json.dumps(to_record(example)))) == example


def test_the_older_name_of_minimal_pair_is_read_but_not_beside_the_present_one() -> None:
    assert from_record(record(twin="t")).minimal_pair == "t"
    with pytest.raises(UserError, match="twin: unknown field"):
        from_record(record(twin="t", minimal_pair="t"))


def test_spans_cut_the_words() -> None:
    example = from_record(record())
    assert [example.words(index) for index in range(2)] == ["Anna", "Berta"]
    assert TEXT[slice(*example.pronoun)] == "she"


def test_all_candidates_are_focal_unless_the_factor_says_otherwise() -> None:
    assert from_record(record()).focal == (0, 1)
    assert from_record(record(factors={"focal": "1"})).focal == (1,)


def test_candidates_in_any_order_come_out_in_the_order_of_the_text() -> None:
    example = from_record(record(candidates=[[9, 14], [0, 4]], factors={"focal": "0", "subject": "1"}))
    assert example.candidates == (((0, 4),), ((9, 14),))
    assert example.antecedents == (1,)
    assert (example.factors["focal"], example.factors["subject"]) == ("1", "0")


def test_whole_mentions_come_out_in_the_order_of_their_candidates() -> None:
    factors = {"extent": "23:26", "extents": "9:14;23:35,0:4"}
    example = from_record(record(candidates=[[9, 14], [[31, 35], [0, 4]]], factors=factors))
    assert example.candidates == (((0, 4), (31, 35)), ((9, 14),))
    assert example.factors["extents"] == "0:4,23:35;9:14"
    assert from_record(to_record(example)) == example


@pytest.mark.parametrize(
    ("written", "distance"), [("12", 12), ("0", 0), ("far", None), ("-1", None), ("", None), ("9" * 5000, None)]
)
def test_a_distance_is_a_number_of_words_and_other_labels_of_that_name_are_none(
    written: str, distance: int | None
) -> None:
    assert from_record(record(factors={"distance": written})).distance == distance
    assert from_record(record()).distance is None


def test_mentions_of_one_candidate_are_sorted() -> None:
    assert in_text_order((((9, 14), (0, 4)), ((5, 8),)), (1, 0)) == ((((0, 4), (9, 14)), ((5, 8),)), (0, 1), (0, 1))


def test_none_or_several_antecedents_are_allowed() -> None:
    assert from_record(record(antecedents=[])).antecedents == ()
    assert from_record(record(antecedents=[1, 0])).antecedents == (0, 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"text": ""}, "text: it is empty"),
        ({"text": 3}, "text: 3 must be text"),
        ({"text": None}, "text: it is missing"),
        ({"language": "de"}, "language: 'de' must be one of en, zh"),
        ({"pronoun": [23, 99]}, r"pronoun: \[23, 99\] must be .* <= 36"),
        ({"pronoun": [26, 26]}, r"pronoun: \[26, 26\]"),
        ({"pronoun": [23]}, r"pronoun: \[23\] must be \[start, end\]"),
        ({"pronoun": [True, 26]}, r"pronoun: \[True, 26\]"),
        ({"candidates": []}, r"candidates: \[\]"),
        ({"candidates": [[0, 4], []]}, r"candidates\[1\]: \[\]"),
        ({"candidates": [[0, 4], [-3, -1]]}, r"candidates\[0\]: \[-3, -1\]"),
        ({"candidates": [[0, 4], [0, 4]]}, r"candidates\[1\]: \[0, 4\] overlaps candidates\[0\]"),
        ({"candidates": [[0, 4], [2, 14]]}, r"candidates\[1\]: \[2, 14\] overlaps candidates\[0\] at \[0, 4\]"),
        ({"candidates": [[0, 4], [22, 26]]}, r"candidates\[1\]: \[22, 26\] overlaps the pronoun at \[23, 26\]"),
        ({"antecedents": [2]}, "antecedents: 2 is not a candidate; allowed: 0 to 1"),
        ({"antecedents": [-1]}, "antecedents: -1 is not a candidate"),
        ({"antecedents": [0, 0]}, "lists a candidate twice"),
        ({"antecedents": 0}, "antecedents: 0 must be a list"),
        ({"factors": "x"}, "factors: 'x' must map"),
        ({"factors": {"focal": "7"}}, "factors.focal: '7' must be candidate indices from 0 to 1"),
        ({"factors": {"kind": "Role"}}, "factors.kind: 'Role' must be set or role; give a label of your own another"),
        ({"factors": {"pronouns": "she"}}, "factors.pronouns: 'she' must be a number from 1 to 9; give a label of"),
        (
            {"factors": {"subject": "teacher"}},
            "factors.subject: 'teacher' must be the index of a candidate; give a label",
        ),
        ({"factors": {"subject": "0,1"}}, "factors.subject: '0,1' must be the index of a candidate"),
        ({"factors": {"subject": "7"}}, "factors.subject: '7' must be candidate indices from 0 to 1"),
        (
            {"factors": {"extent": "short"}},
            "factors.extent: 'short' must be start:end with 0 <= start < end <= 36; give a",
        ),
        ({"factors": {"extent": "0:37", "extents": "0:4;9:14"}}, "factors.extent: '0:37' must be start:end"),
        ({"factors": {"extents": "0:4;9:14"}}, "factors.extent: '' must be start:end"),
        ({"factors": {"extent": "23:26"}}, "factors.extents: '' must be one start:end for each mention"),
        ({"factors": {"extent": "23:26", "extents": "0:4,9:14"}}, "factors.extents: '0:4,9:14' must be one"),
        ({"factors": {"extent": "23:26", "extents": "0:4;9:" + "9" * 5000}}, "factors.extents: '0:4;9:9999.* must be"),
        ({"factors": {"event_names": "picnic"}}, "factors.event_names: 'picnic' must be starts of mentions, as in"),
        ({"factors": {"event_names": "0,8"}}, "factors.event_names: '0,8' must be starts of mentions"),
        ({"factors": {"voices": 0}}, "factors.voices: '0' must be a number from 1 to 9"),
        ({"pronom": [1, 2]}, r"pronom: unknown field; did you mean pronoun\? \(allowed: text"),
        ({" group": "a"}, r"' group': unknown field; did you mean group\?"),
        ({"split": "dev"}, r"split: unknown field \(allowed: text, .*, factors; in a file also split"),
    ],
)
def test_a_wrong_field_is_named_with_its_value_and_what_is_allowed(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        from_record(record(**changes))


def test_candidates_out_of_order_are_refused() -> None:
    spans = (((9, 14),), ((0, 4),))
    with pytest.raises(UserError, match=r"candidates: .* must be in the order of the text"):
        Example(text=TEXT, language="en", pronoun=(23, 26), candidates=spans, antecedents=(0,))
    with pytest.raises(UserError, match=r"candidates: .* each candidate's mentions too"):
        Example(text=TEXT, language="en", pronoun=(23, 26), candidates=(((9, 14), (0, 4)),), antecedents=(0,))
    with pytest.raises(UserError, match=r"candidates\[0\]: it has no span"):
        Example(text=TEXT, language="en", pronoun=(23, 26), candidates=((),), antecedents=(0,))


@pytest.mark.parametrize("listed", ["-1", "2", "0,0", "", "1.0", "²", "x"])
def test_focal_candidates_are_named_by_their_number_each_once(listed: str) -> None:
    with pytest.raises(UserError, match=r"factors.focal: .* must be candidate indices from 0 to 1, each once"):
        from_record(record(factors={"focal": listed}))


@pytest.mark.parametrize(("field", "value"), [("pronoun", [4, 5]), ("candidates", [[0, 4], [8, 9]])])
def test_a_span_of_blanks_alone_is_reported(field: str, value: Any) -> None:
    with pytest.raises(UserError, match=rf"{field}.*: .* covers nothing but blanks"):
        from_record(record(**{field: value}))


def in_units(text: str, words: list[str], unit: str) -> list[list[int]]:
    """Return the spans of the first occurrences of some words in the units of another program."""
    spans = [(text.index(word), text.index(word) + len(word)) for word in words]
    match unit:
        case "UTF-16 code units":
            return [[len(text[:place].encode("utf-16-le")) // 2 for place in span] for span in spans]
        case "UTF-8 bytes":
            return [[len(text[:place].encode()) for place in span] for span in spans]
        case "places of the first and the last character":
            return [[start, end - 1] for start, end in spans]
        case "characters counted from 1":
            return [[start + 1, end + 1] for start, end in spans]
    return [[start + 1, end] for start, end in spans]


@pytest.mark.parametrize(
    "unit",
    [
        *("UTF-16 code units", "UTF-8 bytes", "places of the first and the last character"),
        *("characters counted from 1", "places of the first and the last character counted from 1"),
    ],
)
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("🙂🙂🙂 Anna met Berta because she was free.", ["she", "Anna", "Berta"]),
        ("𝄞 Анна встретила Берту, она свободна.", ["она", "Анна", "Берту"]),
        ("🙂 “Zoë” met Noël: she left 😀 then.", ["she", "Zoë", "Noël"]),
    ],
)
def test_offsets_in_another_unit_are_refused_and_the_unit_is_named(unit: str, text: str, words: list[str]) -> None:
    pronoun, *candidates = in_units(text, words, unit)
    wrong = {"text": text, "pronoun": pronoun, "candidates": candidates}
    with pytest.raises(UserError, match=rf"these fit as (.* or as )?{unit}($| or as )"):
        from_record(record(**wrong))


@pytest.mark.parametrize(
    ("text", "pronoun"),
    [
        ("she left.", [0, 4]),
        (" she left.", [0, 4]),
        ("Anna left.", [1, 4]),
        ("In 2024 he", [3, 5]),
        ("Анна ушла", [0, 3]),
        ("نورا", [1, 4]),
        ("नोरा गई", [0, 3]),
        ("Zoe\u0308 left", [0, 3]),
        ("王芳 走了", [0, 3]),
        ("co\u00adop shut", [0, 2]),
    ],
)
def test_a_span_that_cuts_a_word_or_ends_at_a_blank_is_refused(text: str, pronoun: list[int]) -> None:
    with pytest.raises(UserError, match=r"pronoun: .*, which (cuts a word|starts or ends at a blank); offsets are"):
        from_record(record(text=f"{text} Berta", pronoun=pronoun, candidates=[[len(text) + 1, len(text) + 6]]))


@pytest.mark.parametrize(
    ("text", "pronoun"),
    [
        *(("she's", "she"), ("wasn't he", "was"), ("WASN’T he", "N’T"), ("cannot go", "not"), ("gonna", "gon")),
        *(("Gimme", "me"), ("mother-in-law", "mother"), ("7pm", "7"), ("Nora被救", "Nora"), ("我被Nora救", "救")),
        *(("ผู้หญิง", "หญิง"), ("O'Neil", "Neil"), ("Anna/Berta", "Berta"), ("「她」", "她")),
    ],
)
def test_a_token_that_no_blank_separates_is_a_word(text: str, pronoun: str) -> None:
    start = text.index(pronoun)
    spans = {"pronoun": [start, start + len(pronoun)], "candidates": [[len(text) + 1, len(text) + 6]]}
    assert from_record(record(text=f"{text} Berta", **spans)).pronoun == (start, start + len(pronoun))


def test_a_part_of_a_word_may_be_meant() -> None:
    parts = {"text": "Berta shes gone", "pronoun": [6, 9], "candidates": [[0, 5]]}
    assert from_record(record(**parts, factors={"word_parts": "6"})).pronoun == (6, 9)
    with pytest.raises(UserError, match=r"list its start in factors\.word_parts$"):
        from_record(record(**parts))
    with pytest.raises(UserError, match=r"factors\.word_parts: '7' must be starts of mentions"):
        from_record(record(**parts, factors={"word_parts": "7"}))
    with pytest.raises(UserError, match="starts or ends at a blank"):
        from_record(record(**{**parts, "pronoun": [6, 11]}, factors={"word_parts": "6"}))

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as draw

from anaphora.data.example import Example, from_record, to_record
from anaphora.data.names import with_exchanged_names, with_names, with_other_names

TEXT = "Anna Lee saw Tom before he met Anna Lee."
EXAMPLE = Example(
    text=TEXT,
    language="en",
    pronoun=(24, 26),
    candidates=(((0, 8), (31, 39)), ((13, 16),)),
    antecedents=(1,),
    factors={"gender": "male"},
)


def test_every_mention_is_renamed_and_the_question_stays() -> None:
    renamed = with_names(EXAMPLE, ["Jo", "Maximilian"])
    assert renamed.text == "Jo saw Maximilian before he met Jo."
    assert renamed.text[slice(*renamed.pronoun)] == "he"
    assert [renamed.words(index) for index in range(2)] == ["Jo", "Maximilian"]
    assert [renamed.text[slice(*span)] for span in renamed.candidates[0]] == ["Jo", "Jo"]
    assert (renamed.antecedents, renamed.factors) == (EXAMPLE.antecedents, EXAMPLE.factors)


def test_exchanging_two_names_twice_gives_the_first_text() -> None:
    once = with_exchanged_names(EXAMPLE)
    assert once.text == "Tom saw Anna Lee before he met Tom."
    assert with_exchanged_names(once) == EXAMPLE


NAME = draw.text(draw.characters(exclude_characters="\0"), min_size=1, max_size=12)  # NUL is in no text


@given(draw.lists(NAME, min_size=2, max_size=2))
def test_any_names_leave_valid_spans(names: list[str]) -> None:
    renamed = with_names(EXAMPLE, names)
    assert [renamed.words(index) for index in range(2)] == names
    assert renamed.text[slice(*renamed.pronoun)] == "he"


def test_the_parts_of_a_name_are_renamed_where_they_stand_alone() -> None:
    text = "Anna Lee met Tom Ray. Lee's friend Ray said that Leeds had pleased her, and Anna laughed."
    start = text.index(" her,") + 1
    candidates = (((0, 8),), ((13, 20),))
    example = Example(text=text, language="en", pronoun=(start, start + 3), candidates=candidates, antecedents=(0,))
    renamed = with_names(example, ["Ida B. Wells", "Max Orr"])
    assert renamed.text == (
        "Ida B. Wells met Max Orr. Wells's friend Orr said that Leeds had pleased her, and Ida laughed."
    )
    assert renamed.text[slice(*renamed.pronoun)] == "her"
    assert [renamed.words(index) for index in range(2)] == ["Ida B. Wells", "Max Orr"]


def test_a_part_that_two_names_share_stays() -> None:
    text = "Anna Lee met Bo Lee, and Lee said that she knew."
    example = Example(text=text, language="en", pronoun=(39, 42), candidates=(((0, 8),), ((13, 19),)), antecedents=(0,))
    assert with_names(example, ["Ida Orr", "Eve Ray"]).text == "Ida Orr met Eve Ray, and Lee said that she knew."


def test_factors_that_hold_a_name_or_places_of_the_text_follow() -> None:
    factors = {"order": "Tom", "extent": "24:26", "extents": "0:8,31:39;13:16", "event_names": "0,13", "type": "voice"}
    example = replace(EXAMPLE, factors=factors)
    renamed = with_names(example, ["Jo", "Maximilian"])
    start, end = map(int, renamed.factors["extent"].split(":"))
    assert (renamed.factors["order"], renamed.factors["type"]) == ("Maximilian", "voice")
    assert renamed.text[start:end] == "he" and renamed.factors["extents"] == "0:2,32:34;7:17"
    assert renamed.factors["event_names"] == "0,7" and from_record(to_record(renamed)) == renamed
    assert with_names(renamed, ["Anna Lee", "Tom"]) == example


def asked(first: str, second: str, gender: str) -> Example:
    text = f"{first} met {second}, who smiled at that person."
    spans = ((0, len(first)),), ((len(first) + 5, len(first) + 5 + len(second)),)
    form = text.index("that")
    return Example(
        text=text,
        language="en",
        pronoun=(form, form + 4),
        candidates=spans,
        antecedents=(0,),
        factors={"gender": gender},
    )


def test_other_names_are_those_of_other_items_of_the_same_gender_and_length() -> None:
    women = [asked("Anna Lee", "Ida", "female"), asked("Eve Ray", "Ada", "female"), asked("Una Orr", "Bea", "female")]
    men = [asked("Tom Fox", "Max", "male"), asked("Bo Dahl", "Jon", "male"), asked("Al Berg", "Per", "male")]
    copies = with_other_names([*women, *men], 3, seed=0)
    assert len(copies) == 18
    for number, copy in enumerate(copies):
        original = [*women, *men][number % 6]
        own = women if original in women else men
        for index in range(2):
            assert copy.words(index) in {each.words(index) for each in own} - {original.words(index)}
        assert (copy.antecedents, copy.factors) == (original.antecedents, original.factors)
    assert with_other_names([*women, *men], 3, seed=0) == copies
    assert with_other_names([*women, *men], 3, seed=1) != copies


def test_a_name_that_no_other_item_replaces_stays() -> None:
    alone = asked("Anna Lee", "Ida", "female")
    assert with_other_names([alone], 1, seed=0) == [alone]
    assert with_other_names([alone], 0, seed=0) == []

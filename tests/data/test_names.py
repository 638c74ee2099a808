from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as draw

from anaphora.data.example import Example
from anaphora.data.names import renamed, with_exchanged_names

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
    found = renamed(EXAMPLE, ["Jo", "Maximilian"])
    assert found.text == "Jo saw Maximilian before he met Jo."
    assert found.text[slice(*found.pronoun)] == "he"
    assert [found.words(index) for index in range(2)] == ["Jo", "Maximilian"]
    assert [found.text[slice(*span)] for span in found.candidates[0]] == ["Jo", "Jo"]
    assert (found.antecedents, found.factors) == (EXAMPLE.antecedents, EXAMPLE.factors)


def test_exchanging_two_names_twice_gives_the_first_text() -> None:
    once = with_exchanged_names(EXAMPLE)
    assert once.text == "Tom saw Anna Lee before he met Tom."
    assert with_exchanged_names(once) == EXAMPLE


@given(draw.lists(draw.text(min_size=1, max_size=12), min_size=2, max_size=2))
def test_any_names_leave_valid_spans(names: list[str]) -> None:
    found = renamed(EXAMPLE, names)
    assert [found.words(index) for index in range(2)] == names
    assert found.text[slice(*found.pronoun)] == "he"

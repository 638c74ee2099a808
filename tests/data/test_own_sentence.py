from __future__ import annotations

import unicodedata
from typing import Literal, cast

import pytest

from anaphora.api.runs import OpenRun
from anaphora.base.errors import UserError
from anaphora.data.example import shared_items
from anaphora.data.own_sentence import example_from_query, find_span
from anaphora.runs.directory import Run

ENGLISH = "Anna told the other woman that she had won."
CHINESE = "王芳告诉李强她赢了。"


def test_words_are_found_whole_and_in_any_case() -> None:
    assert find_span("The theatre she likes", "the", "pronoun") == (0, 3)
    assert find_span("he said she and HE", "HE", "pronoun") == (0, 2)
    assert find_span("breathe; he ran", "he", "pronoun") == (9, 11)


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("typed", ["NFC", "NFD"])
def test_letters_with_accents_are_found_however_they_are_encoded(
    form: Literal["NFC", "NFD"], typed: Literal["NFC", "NFD"]
) -> None:
    text, names = "José met Zoë before José left; Jose stayed.", ("José", "Zoë")
    written = unicodedata.normalize(form, text)
    first, second = (unicodedata.normalize(typed, name) for name in names)
    example = example_from_query(written, "left", [second, first], unicodedata.normalize(form, "José"))
    assert [example.words(number) for number in (0, 1)] == [unicodedata.normalize(form, name) for name in names]
    assert example.antecedents == (0,)
    start, end = find_span(written, f"{first}:2", "candidates")
    assert written[start:] == unicodedata.normalize(form, "José left; Jose stayed.") and written[end:][:5] == " left"
    assert written[slice(*find_span(written, "Jose", "candidates"))] + " stayed." == written[-12:]


def test_chinese_words_need_no_blanks() -> None:
    assert find_span(CHINESE, "她", "pronoun") == (6, 7)


def test_places_choose_another_occurrence() -> None:
    assert find_span("he saw him and he ran", "15:17", "pronoun") == (15, 17)


def test_a_pronoun_that_stands_twice_needs_its_number() -> None:
    text = "The dog saw the cat because it was loud and it was near."
    assert [example_from_query(text, name).pronoun for name in ("it:1", "it:2", "IT:2", "44:46")] == [
        *((28, 30), (44, 46), (44, 46), (44, 46))
    ]
    with pytest.raises(UserError, match=r"\('it'\) appears 2 times in the text: .* 'it:2', .* \(28:30, 44:46\)"):
        example_from_query(text, "it")
    with pytest.raises(UserError, match=r"pronoun \('it:3'\): 'it' appears 2 times"):
        example_from_query(text, "it:3")
    assert example_from_query("她笑了，她走了。", "她:2").pronoun == (4, 5)


def test_an_absent_word_and_a_place_outside_are_reported() -> None:
    with pytest.raises(UserError, match=r"pronoun \('it'\) is not in the text"):
        find_span(ENGLISH, "it", "pronoun")
    with pytest.raises(UserError, match=r"candidates \(40:90\) is outside the text, which has 43 characters"):
        find_span(ENGLISH, "40:90", "candidates")
    with pytest.raises(UserError, match="outside the text"):
        find_span(ENGLISH, "5:5", "pronoun")


def test_a_question_becomes_an_example_with_candidates_in_text_order() -> None:
    example = example_from_query(ENGLISH, "she", ["the other woman", "Anna"], antecedent="Anna")
    assert (example.language, example.pronoun) == ("en", (31, 34))
    assert [example.words(index) for index in range(2)] == ["Anna", "the other woman"]
    assert example.antecedents == (0,)


def test_the_language_is_taken_from_the_text_unless_it_head_is_named() -> None:
    assert example_from_query(text=CHINESE, pronoun="她", candidates=["王芳"]).language == "zh"
    assert example_from_query(text=CHINESE, pronoun="她", candidates=["王芳"], language="en").language == "en"


def test_a_sentence_without_candidates_may_be_asked() -> None:
    example = example_from_query(text=ENGLISH, pronoun="she")
    assert example.antecedents == ()


def test_a_candidate_that_holds_the_pronoun_is_reported() -> None:
    with pytest.raises(UserError, match="overlaps the pronoun"):
        example_from_query(text=ENGLISH, pronoun="she", candidates=["that she"])


@pytest.mark.parametrize("words", ["", " ", "9" * 5000 + ":1"])
def test_blank_words_and_endless_numbers_are_reported(words: str) -> None:
    with pytest.raises(UserError, match=r"candidates \("):
        find_span("Anna met Berta", words, "candidates")


def test_an_antecedent_that_is_no_candidate_is_reported() -> None:
    message = r"antecedent \('Berta'\) must be one of candidates \(\['Anna', 'the other woman'\]\)"
    candidates = ["Anna", "the other woman"]
    with pytest.raises(UserError, match=message):
        example_from_query(ENGLISH, "she", candidates, antecedent="Berta")
    opened = OpenRun(cast(Run, None))  # the question is wrong before the run is asked
    with pytest.raises(UserError, match=message):
        opened.attention(ENGLISH, "she", candidates, antecedent="Berta")
    with pytest.raises(UserError, match="candidates need a pronoun"):
        opened.attention(ENGLISH, antecedent="Berta")


def test_an_item_in_two_splits_is_known_in_the_other_encoding_of_its_accents() -> None:
    composed = example_from_query("Zoé said that she left.", "she", ["Zoé"])
    decomposed = example_from_query(
        unicodedata.normalize("NFD", composed.text), "she", [unicodedata.normalize("NFD", "Zoé")]
    )
    assert composed.pronoun != decomposed.pronoun
    assert shared_items([decomposed], [composed]) == 1
    assert shared_items([decomposed], [example_from_query("Zoé said that he left.", "he", ["Zoé"])]) == 0


def test_a_chinese_comma_separates_candidates() -> None:
    text = "小红被美玲救了，因为她很虚弱。"
    expected = example_from_query(text=text, pronoun="她", candidates=["小红", "美玲"])
    for typed in ("小红，美玲", "小红、美玲"):
        assert example_from_query(text=text, pronoun="她", candidates=[typed]) == expected
    named = example_from_query(text=text, pronoun="她", candidates=["小红 ， 美玲，"], antecedent="美玲")
    assert named.candidates == expected.candidates and named.antecedents == (1,)

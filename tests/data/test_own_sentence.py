from __future__ import annotations

import unicodedata
from typing import Literal, cast

import pytest

from anaphora.api.row import positions_of
from anaphora.api.runs import OpenRun
from anaphora.base.errors import UserError
from anaphora.data.example import shared_questions
from anaphora.data.own_sentence import distinct_names, example_from_query, find_span
from anaphora.runs.directory import Run

ENGLISH = "Anna told the other woman that she had won."
CHINESE = "王芳告诉李强她赢了。"


def test_words_are_found_whole_and_in_any_case() -> None:
    assert find_span("The theatre she likes", "the", "pronoun") == (0, 3)
    assert find_span("he said she and IT", "He", "pronoun") == (0, 2)
    assert find_span("breathe; he ran", "he", "pronoun") == (9, 11)


def test_a_name_is_not_taken_for_a_word_without_its_capital() -> None:
    example = example_from_query("I hope Hope will call Will because he is ill.", "he", ["Hope", "Will"])
    assert example.candidates == (((7, 11),), ((22, 26),))
    assert find_span("The man saw the man.", "the man", "candidates") == (0, 7)
    assert find_span("Was it Élodie? élodie!", "E\u0301LODIE", "candidates") == (7, 13)


def test_candidates_of_the_same_words_are_named_by_their_number_as_settings_are() -> None:
    text = "The dog saw a dog and a dogfish when the Dog barked."
    dogs = [find_span(text, f"dog:{number}", "candidates") for number in (1, 2, 3)]
    assert distinct_names(text, [dogs[0], dogs[1], (24, 31)]) == ["dog:1", "dog:2", "dogfish"]
    assert distinct_names(text, [dogs[0], dogs[2]]) == ["dog", "Dog"]
    assert distinct_names(text, [dogs[0], (24, 27)]) == ["dog:1", "24:27"]  # a part of a word


def test_blanks_and_apostrophes_match_in_every_form() -> None:
    text = "The old\nman met O’Neill's\u00a0 wife, and she left."
    assert find_span(text, "the old man", "candidates") == (0, 11)
    assert find_span(text, " O'Neill’s wife ", "candidates") == (16, 31)


def test_a_part_of_a_word_is_named_with_its_word_and_characters() -> None:
    message = r"\('안나'\) is not in the text .* as a whole word, but in '안나는'; .* the characters \(0:2\)"
    with pytest.raises(UserError, match=message):
        find_span("안나는 왔다", "안나", "candidates")
    with pytest.raises(UserError, match=r"but in '1999'; .* \(8:10\)"):
        find_span("3:5 in 1999 it was", "99", "candidates")


def test_candidates_that_share_characters_are_named_by_their_words() -> None:
    text = "Anna's sister called Anna because her phone broke."
    with pytest.raises(UserError, match=r"""'Anna' \(0:4\) and "Anna's sister" \(0:13\) share .* as 'Anna:2'"""):
        example_from_query(text, candidates=["Anna's sister", "Anna"])
    example = example_from_query(text, candidates=["Anna's sister", "Anna:2"])
    assert example.candidates == (((0, 13),), ((21, 25),))
    with pytest.raises(UserError, match=r"'York' \(4:8\) and 'New York' \(0:8\) .*; leave one out$"):
        example_from_query("New York grew because it was rich.", candidates=["New York", "York"])
    text = "I hope Hope's sister calls Hope because she is ill."
    with pytest.raises(UserError, match="as 'Hope:3'"):
        example_from_query(text, candidates=["Hope", "Hope's sister"])
    assert example_from_query(text, candidates=["Hope:3", "Hope's sister"]).candidates == (((7, 20),), ((27, 31),))


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
    place = ENGLISH.index("that she")
    message = rf"'that she' \({place}:{place + 8}\) and the pronoun 'she' \({place + 5}:{place + 8}\) share characters"
    with pytest.raises(UserError, match=message):
        example_from_query(text=ENGLISH, pronoun="she", candidates=["that she", "Anna"])


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
    with pytest.raises(UserError, match="no English or Chinese third-person pronoun"):
        opened.attention("Anna left.", candidates=["Anna"])


def test_an_item_in_two_splits_is_known_in_the_other_encoding_of_its_accents() -> None:
    composed = example_from_query("Zoé said that she left.", "she", ["Zoé"])
    decomposed = example_from_query(
        unicodedata.normalize("NFD", composed.text), "she", [unicodedata.normalize("NFD", "Zoé")]
    )
    assert composed.pronoun != decomposed.pronoun
    assert shared_questions([decomposed.question], [composed.question]) == 1
    other = example_from_query("Zoé said that he left.", "he", ["Zoé"])
    assert shared_questions([decomposed.question], [other.question]) == 0


def test_a_chinese_comma_separates_candidates() -> None:
    text = "小红被美玲救了，因为她很虚弱。"
    expected = example_from_query(text=text, pronoun="她", candidates=["小红", "美玲"])
    for typed in ("小红，美玲", "小红、美玲"):
        assert example_from_query(text=text, pronoun="她", candidates=[typed]) == expected
    named = example_from_query(text=text, pronoun="她", candidates=["小红 ， 美玲，"], antecedent="美玲")
    assert named.candidates == expected.candidates and named.antecedents == (1,)


BESIDE = [
    ("Nora被美玲救了，因为她很虚弱。", "Nora", (0, 4)),
    ("美玲被Nora救了", "Nora", (3, 7)),
    ("美玲被NORA2救了", "nora", (3, 7)),
    ("Noraは美玲に", "Nora", (0, 4)),
    ("НораNoraНора", "Nora", (4, 8)),
    ("ΕλένηАнна", "Анна", (5, 9)),
    ("نوراNora", "نورا", (0, 4)),
    ("नोराNora", "नोरा", (0, 4)),
    ("เห็นนอร่าNora", "นอร่า", (4, 9)),
    ("第7名", "7", (1, 2)),
    ("7pm", "7", (0, 1)),
    ("_Nora_", "Nora", (1, 5)),
    ("Hawaiʻi", "Hawaiʻi", (0, 7)),
]


@pytest.mark.parametrize(("text", "word", "span"), BESIDE)
def test_a_word_beside_another_script_is_found_by_candidates_and_rows_alike(
    text: str, word: str, span: tuple[int, int]
) -> None:
    assert find_span(text, word, "candidates") == span
    spans = [(place, place + 1) for place in range(len(text))]
    assert positions_of(word, text, list(text), spans) == list(range(*span))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        *(("Norah被", "Nora"), ("被Eleanora", "nora"), ("17:15", "7:15"), ("7:155", "7:15"), ("m² is", "m")),
        *(("Hawaiʻi", "Hawai"), ("नोरा", "नोर"), ("นอร่า", "นอร"), ("مُحَمَّد", "محمد"), ("co\u00adop", "co"), ("ệ", "ê")),
        *(("한", "하"), (unicodedata.normalize("NFD", "한"), "하"), ("か\u3099", "か")),
    ],
)
def test_a_part_of_a_run_of_letters_or_of_a_letter_with_its_marks_is_not_found(text: str, word: str) -> None:
    with pytest.raises(UserError, match=r"is (not in|outside) the text"):
        find_span(text, word, "candidates")


def test_letters_with_several_accents_are_found_however_they_are_encoded() -> None:
    for written in ("Việt", "Vi\u00ea\u0323t", "Vi\u1eb9\u0302t", "Vie\u0323\u0302t", "Vie\u0302\u0323t"):
        for typed in ("Việt", "Vi\u00ea\u0323t", "Vie\u0302\u0323t"):
            assert find_span(f"x {written} ran", typed, "candidates") == (2, 2 + len(written))


TIMES = "The 7:15 left before the 9:40, and the 7:15 was full; 2 of 3 won 2:1 in 04:08, John 3:16, 1:2:3."


@pytest.mark.parametrize("words", ["7:15", "9:40", "2:1", "3:16", "04:08", "1:2:3"])
def test_numbers_that_stand_in_the_text_are_words_before_they_are_characters(words: str) -> None:
    start, end = find_span(TIMES, words, "candidates")
    assert TIMES[start:end] == words
    assert example_from_query("It met it at 4:9.", "4:9").pronoun == (13, 16)


def test_zeros_in_front_make_characters_of_numbers_that_stand_in_the_text() -> None:
    assert find_span(TIMES, "007:015", "candidates") == (7, 15)
    assert find_span(TIMES, "004:008", "candidates") == (4, 8)
    assert find_span(TIMES, "12:20", "candidates") == (12, 20)
    with pytest.raises(UserError, match=r"or its characters \(4:8, 39:43\)"):
        example_from_query(TIMES, "7:15")
    assert example_from_query(TIMES, "7:15:2").pronoun == (39, 43)
    with pytest.raises(UserError, match=r"or its characters \(00:02, 13:15\)"):
        example_from_query("it is at 0:2 it", "it")


def test_a_number_that_stands_several_times_is_counted() -> None:
    text = "The 3 of them met 3 of us."
    assert find_span(text, "3:2", "candidates") == (18, 19)
    assert find_span(text, "3:9", "candidates") == (3, 9)  # there is no ninth 3

"""Tests that each word of a text with mixed scripts is found at its position, as one word."""

from __future__ import annotations

import unicodedata
from itertools import pairwise
from typing import Literal, NamedTuple

from cases import cases, result_or_one_line
from hypothesis import example, given
from hypothesis import strategies as draw

from anaphora.api.row import positions_of
from anaphora.data.own_sentence import example_from_query, find_span, occurrences_in_any_case
from anaphora.data.tokens.words import word_numbers

WORDS = {
    "Latin": ("Nora", "Zoë", "İrem", "Việt", "ﬁne", "co\u00adop", "O’Neil-Smith", "Hawaiʻi", "ẞ", "Ｋｉｍ"),
    "Cyrillic": ("Анна", "Йод", "Ђурђа"),
    "Greek": ("Ελένη", "Ἄννα"),
    "Hebrew": ("נועה", "שָׁלוֹם"),
    "Arabic": ("نورا", "مُحَمَّد", "می\u200cروم"),
    "Devanagari": ("मीरा", "क्षिति", "ज्\u200dञान"),
    "Tamil": ("கௌரி",),
    "Hangul": ("노라", "한국"),
    "Georgian": ("ნინო",),
    "Ethiopic": ("ሰላም",),
    "digits": ("7", "15", "2024", "١٢", "９"),
    "Han": ("美玲", "王", "她", "小明"),
    "Thai": ("กุ้ง", "น้ำ"),
    "Lao": ("ລາວ",),
    "Hiragana": ("のら", "が"),
    "Katakana": ("ケン", "ペ"),
}
"""Words that are not part of another word of their script, and share no letters with it."""
WITHOUT_BLANKS = ("Han", "Thai", "Lao", "Hiragana", "Katakana")
FORMS: tuple[Literal["NFC", "NFD"], ...] = ("NFC", "NFD")
MARKS = ("", "", "", " ", ", ", "，", "。", "“", "_", ":", " — ", "/", "🙂", "\n")


class Piece(NamedTuple):
    """Word of a text with its script, its original characters and its position."""

    script: str
    word: str
    start: int
    end: int


@draw.composite
def mixed_texts(draws: draw.DrawFn) -> tuple[str, list[Piece]]:
    """Draw a text of words in several scripts, with spaces only between words that would otherwise be joined."""
    pieces: list[Piece] = []
    text = ""
    form = draws(draw.sampled_from(FORMS))
    for _ in range(draws(draw.integers(1, 7))):
        script = draws(draw.sampled_from(sorted(WORDS)))
        word = draws(draw.sampled_from(WORDS[script]))
        between = draws(draw.sampled_from(MARKS))
        if pieces and not between and pieces[-1].script == script and script not in WITHOUT_BLANKS:
            between = " "
        written = unicodedata.normalize(form, word)
        text += between
        pieces.append(Piece(script, word, len(text), len(text) + len(written)))
        text += written
    return text, pieces


@cases(share=0.05, quick=150)
@given(mixed_texts(), draw.sampled_from(FORMS), draw.sampled_from(["as written", "lower"]))
@example(("Nora被她", [Piece("Latin", "Nora", 0, 4), Piece("Han", "她", 5, 6)]), "NFC", "lower")
def test_every_word_of_a_mixed_text_is_found_wherever_it_stands(
    made: tuple[str, list[Piece]], form: Literal["NFC", "NFD"], case: str
) -> None:
    text, pieces = made
    for piece in pieces:
        typed = unicodedata.normalize(form, piece.word)
        if case == "lower" and len(typed.lower()) == len(typed):
            typed = typed.lower()
        expected = [(one.start, one.end) for one in pieces if one.word == piece.word]
        assert list(occurrences_in_any_case(typed, text)) == expected
        assert find_span(text, typed, "candidates") == expected[0]
        assert find_span(text, f"{typed}:{len(expected)}", "candidates") == expected[-1]
        characters = [(place, place + 1) for place in range(len(text))]
        assert positions_of(typed, text, list(text), characters) == list(range(*expected[0]))
    (first, *others) = dict.fromkeys(piece.word for piece in pieces)
    one = result_or_one_line(lambda: example_from_query(text, f"{first}:1", others))
    assert one is not None and [one.words(number) for number in range(len(others))] == [
        text[slice(*find_span(text, word, "candidates"))] for word in others
    ]


@cases(share=0.05, quick=150)
@given(mixed_texts())
def test_the_characters_of_a_word_are_one_word_and_the_next_word_is_another(made: tuple[str, list[Piece]]) -> None:
    text, pieces = made
    places = [place for place, character in enumerate(text) if not character.isspace()]
    numbers = dict(zip(places, word_numbers(text, [(place, place + 1) for place in places]), strict=True))
    for piece in pieces:
        own = {numbers[place] for place in range(piece.start, piece.end)}
        assert piece.script in WITHOUT_BLANKS or len(own) == 1
    for before, after in pairwise(pieces):
        assert numbers[before.end - 1] < numbers[after.start]


@cases(share=0.03, quick=100)
@given(mixed_texts(), draw.data())
def test_a_part_of_a_word_is_not_found_as_a_word(made: tuple[str, list[Piece]], data: draw.DataObject) -> None:
    text, pieces = made
    piece = data.draw(draw.sampled_from(pieces))
    start = data.draw(draw.integers(piece.start, piece.end - 1))
    end = data.draw(draw.integers(start + 1, piece.end))
    part = text[start:end]
    is_whole = (start, end) == (piece.start, piece.end)
    if is_whole or piece.script in WITHOUT_BLANKS or set(text[piece.start : piece.end]) & set("’-"):
        return
    for found in occurrences_in_any_case(part, text):
        assert any(found == (one.start, one.end) for one in pieces)

from __future__ import annotations

import unicodedata
from itertools import pairwise
from typing import Literal

import pytest

from anaphora.data.tokens.words import word_numbers


def test_pieces_of_a_word_share_its_number_and_punctuation_has_its_own() -> None:
    text = "Un-believ-able, isn't it?"
    spans = [(0, 0), (0, 2), (2, 10), (10, 14), (14, 15), (16, 19), (19, 21), (22, 24), (24, 25), (0, 0)]
    assert word_numbers(text, spans) == (-1, 0, 0, 0, 1, 2, 2, 3, 4, -1)


def test_each_chinese_token_is_a_word_and_bytes_of_one_character_are_one() -> None:
    text = "小红喜欢GPT模型"
    spans = [(0, 2), (2, 3), (2, 3), (3, 4), (4, 5), (5, 7), (7, 9)]
    assert word_numbers(text, spans) == (0, 1, 1, 2, 3, 3, 4)


def test_every_word_of_a_real_sentence_is_found() -> None:
    spans = [(0, 3), (4, 10), (10, 12), (13, 19), (20, 25), (26, 33), (34, 37), (38, 41), (42, 47), (47, 48)]
    numbers = word_numbers("The kitten's mother slept because she was tired.", spans)
    assert numbers == (0, 1, 1, 2, 3, 4, 5, 6, 7, 8)
    assert all(after - before in (0, 1) for before, after in pairwise(numbers))


@pytest.mark.parametrize(
    "word", ["İrem", "Việt", "ﬁne", "नोरा", "مُحَمَّد", "co\u00adop", "می\u200cروم", "Hawaiʻi", "naïve-ité", "한국", "ß’s"]
)
@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_a_letter_of_several_characters_is_never_apart_from_its_word(
    word: str, form: Literal["NFC", "NFD", "NFKC", "NFKD"]
) -> None:
    written = unicodedata.normalize(form, word)
    text = f"{written} {written.lower()},{written}"
    characters = [(place, place + 1) for place, character in enumerate(text) if not character.isspace()]
    expected = [0] * len(written) + [1] * len(written.lower()) + [2] + [3] * len(written)
    assert list(word_numbers(text, characters)) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("NoraАннаΕλένη", ["Nora", "Анна", "Ελένη"]),
        ("Nora2は", ["Nora", "2", "は"]),
        ("नोराNora", ["नोरा", "Nora"]),
        ("β-carotene", ["β-carotene"]),
        ("\u0301a", ["\u0301", "a"]),
        ("王\u0301", ["王", "\u0301"]),
    ],
)
def test_a_word_ends_where_the_script_changes(text: str, words: list[str]) -> None:
    numbers = word_numbers(text, [(place, place + 1) for place in range(len(text))])
    stretches = ["".join(text[place] for place, one in enumerate(numbers) if one == word) for word in range(len(words))]
    assert stretches == words and max(numbers) == len(words) - 1

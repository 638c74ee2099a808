"""Tests that words outside the vocabulary are reported, except those that subwords can spell."""

from __future__ import annotations

import pytest

from anaphora.data.own_sentence import example_from_query
from anaphora.data.tokens.tokenizer import Tokenizer
from anaphora.data.tokens.vocabulary import character_vocabulary, wordpiece_vocabulary
from anaphora.data.tokens.words import unknown_words

TEXTS = ["the old man met the woman because she was kind and he was not", "她和他去了小红的家，明天再来"] * 9


@pytest.mark.parametrize("tokenizer", [wordpiece_vocabulary(TEXTS, 300), character_vocabulary(TEXTS, 1)])
@pytest.mark.parametrize(
    ("text", "unknown", "is_readable"),
    [
        ("the mannish woman met a thesis because she was kind.", [], True),
        ("红天明去了家，她来。", [], True),
        ("the woman met the man because she was ЖЖ and kind.", ["ЖЖ"], True),
        ("ЖЖ met the woman because she was kind.", ["ЖЖ"], False),
        ("Ж ЖЖ ЖЖЖ, she was kind.", ["Ж", "ЖЖ", "ЖЖЖ"], False),
        ("龘和他去了家，她来了。", ["龘"], False),
    ],
)
def test_what_cannot_be_spelled_is_unknown(
    tokenizer: Tokenizer, text: str, unknown: list[str], is_readable: bool
) -> None:
    first = text[0] if text.endswith("。") else text.split()[0]
    example = example_from_query(text, None, [first])
    found = unknown_words(text, tokenizer.encode(text), example)
    assert (list(found.words), found.is_readable) == (unknown, is_readable)


@pytest.mark.parametrize(
    ("text", "pronoun", "foreign"),
    [
        ("Hans nahm was, wo er wohnt.", "er", ["Hans", "nahm", "wo", "er", "wohnt"]),
        ("the woman met the mannish cannoneer and one is hot", "one", []),  # split words in an English text
        ("woman met man, one was kind", "one", []),  # known words without a frequent one
        ("Hans nahm was, wo he wohnt.", "he", []),  # an English pronoun
        ("man met was Hans wohnt", "met", []),  # the pronoun is known
        ("man met was wo wohnt", "wo", ["wo", "wohnt"]),
        ("小红和mannish去了他的家。", "mannish", []),
        ("红の天は明た", "の", ["の", "は", "た"]),
    ],
)
def test_a_text_in_another_language_is_told_from_the_words_that_are_split(
    text: str, pronoun: str, foreign: list[str]
) -> None:
    tokenizer = wordpiece_vocabulary(TEXTS, 300)
    example = example_from_query(text, pronoun)
    assert list(unknown_words(text, tokenizer.encode(text), example).foreign) == foreign
    assert unknown_words(text, tokenizer.encode(text)).foreign == ()

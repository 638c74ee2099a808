from __future__ import annotations

from itertools import pairwise

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

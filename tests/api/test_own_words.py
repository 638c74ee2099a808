from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import anaphora
from anaphora.api import OpenRun
from anaphora.base.errors import UserError
from anaphora.data.tokens.tokenizer import TokenizedText
from anaphora.data.tokens.words import own_word_spans, with_own_words

TEXT = "小红推了小明，因为他很生气。"
WORDS = ["小红", "推了", "小明", "，", "因为", "他", "很生气", "。"]


@pytest.fixture(scope="module")
def run(finished: Path) -> OpenRun:
    return anaphora.load(finished)


@pytest.mark.parametrize("words", [WORDS, tuple(WORDS), " ".join(WORDS), "  ".join(WORDS) + "\n"])
def test_tokens_are_merged_to_the_words_that_the_user_gives(run: OpenRun, words: Any) -> None:
    """Weights on the tokens of a word are summed, and their rows are averaged."""
    own, tokens = run.attention(TEXT, words=words), run.attention(TEXT, by="token")
    assert own.words == ("[CLS]", *WORDS)
    places = [
        [n for n, (start, end) in enumerate(tokens.spans) if first <= start < end <= last] for first, last in own.spans
    ]
    places[0] = [0]
    for query, rows in enumerate(places):
        for key, columns in enumerate(places):
            expected = tokens.weights[:, :, rows][..., columns].sum(axis=-1).mean(axis=-1)
            np.testing.assert_allclose(own.weights[:, :, query, key], expected, atol=1e-6)
    np.testing.assert_allclose(own.weights.sum(axis=-1), 1, atol=1e-5)
    np.testing.assert_array_equal(own.row("推了", 0, 0).weights, own.weights[0, 0, 2])


def test_words_may_hold_blanks_and_marks() -> None:
    text = "New York isn't far."
    assert own_word_spans(text, ["New York", "is", "n't", "far."]) == [(0, 8), (9, 11), (11, 14), (15, 19)]
    assert own_word_spans(text, text) == [(0, 3), (4, 8), (9, 14), (15, 19)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["小红", "推", "小明"],
            r"words\[2\] \('小明'\) has '小' where the text has '了小明，因为他很生气。', from its character 3",
        ),
        (["小红", "推了"], r"words: they end before '小明，因为他很生气。', character 4 of the text"),
        ([*WORDS, "！"], r"words\[8\] \('！'\) continues after the end of the text"),
        (["小红", " ", *WORDS[1:]], r"words\[1\] \(' '\) is blank"),
        ("", r"words: they end before '小红推了"),
        ([], r"words: they end before '小红推了"),
        (7, r"words \(7\) must be a list of words, or the text with blanks"),
        (["小红", 3], r"words \(\['小红', 3\]\) must be a list of words"),
    ],
)
def test_words_that_do_not_spell_the_text_are_named_at_the_first_difference(
    run: OpenRun, words: Any, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        run.attention(TEXT, words=words)


def test_a_token_is_never_divided_and_no_word_is_left_without_one() -> None:
    tokens = TokenizedText((1, 7, 8), ((0, 0), (0, 3), (3, 4)), (-1, 0, 1))
    with pytest.raises(UserError, match=r"words\[0\] \('小红'\) and words\[1\] \('推了'\) share the token '小红推'"):
        with_own_words("小红推了", tokens, "小红 推了")
    short = TokenizedText((1, 7), ((0, 0), (0, 3)), (-1, 0))
    with pytest.raises(UserError, match=r"words\[1\] \('了'\) has no token"):
        with_own_words("小红推了", short, "小红推 了")


def test_words_do_not_go_with_tokens(run: OpenRun) -> None:
    with pytest.raises(UserError, match=r"words and by \('token'\) do not go together"):
        run.attention(TEXT, words=WORDS, by="token")

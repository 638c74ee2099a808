"""Assignment of tokens to words."""

from __future__ import annotations

from collections.abc import Sequence

from anaphora.base.language import stands_alone, words_of
from anaphora.data.example import Span


def word_numbers(text: str, spans: Sequence[Span]) -> tuple[int, ...]:
    """Return the word index of every token, with the word boundaries of `words_of`.

    In scripts without blanks, such as Chinese, each token is a word. Tokens that share a character share a word.

    Args:
        text: the text.
        spans: T character spans in text order, empty for special tokens.

    Returns:
        T word indices from 0; -1 for a special token.
    """
    word_of = [0] * len(text)
    for number, (start, stop) in enumerate(words_of(text), start=1):
        word_of[start:stop] = [number] * (stop - start)
    numbers: list[int] = []
    current, word, end = -1, -1, 0
    for start, stop in spans:
        if start == stop:
            numbers.append(-1)
            continue
        apart = word_of[start] != word or word_of[start] == 0 or stands_alone(text[start])
        if apart and start >= end:
            current += 1
        word, end = word_of[start], stop
        numbers.append(current)
    return tuple(numbers)

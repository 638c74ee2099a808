"""The word of every token."""

from __future__ import annotations

from collections.abc import Sequence

from anaphora.base.language import stands_alone, words_of
from anaphora.data.example import Span


def word_numbers(text: str, spans: Sequence[Span]) -> tuple[int, ...]:
    """Return the word of every token, by `words_of`.

    Where a script has no blanks, as in Chinese, each token is a word. Tokens that share a character are one.

    Args:
        text: the sentence.
        spans: T character spans in the order of the text; an empty one marks a special token.

    Returns:
        T word numbers from 0; -1 for a special token.
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

"""What counts as a word: what stands between blanks, punctuation and digits; and the word of every token."""

from __future__ import annotations

import re
from collections.abc import Sequence

from anaphora.base.language import CHINESE_CHARACTER, WORD_PATTERN
from anaphora.data.example import Span

_WORD = re.compile(WORD_PATTERN)


def word_numbers(text: str, spans: Sequence[Span]) -> tuple[int, ...]:
    """The word of every token: what has no blank, punctuation or digit boundary inside is one word.

    Chinese has no blanks: there each token is a word, and tokens that share a character are one.

    Args:
        text: the sentence.
        spans: T character spans in the order of the text; an empty one marks a special token.

    Returns:
        T word numbers from 0; -1 for a special token.
    """
    word_of = [0] * len(text)
    for number, match in enumerate(_WORD.finditer(text), start=1):
        word_of[match.start() : match.end()] = [number] * (match.end() - match.start())
    numbers: list[int] = []
    current, word, end = -1, -1, 0
    for start, stop in spans:
        if start == stop:
            numbers.append(-1)
            continue
        apart = word_of[start] != word or word_of[start] == 0 or CHINESE_CHARACTER.match(text, start) is not None
        if apart and start >= end:
            current += 1
        word, end = word_of[start], stop
        numbers.append(current)
    return tuple(numbers)

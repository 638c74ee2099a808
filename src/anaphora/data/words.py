"""What counts as a word: the pieces of a text between blanks, punctuation and digits, and the word of every token."""

from __future__ import annotations

import re
from collections.abc import Sequence

from anaphora.data.example import Span

# A run of Chinese characters has no blanks: there a word is what a tokenizer makes one.
CHINESE = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
PIECES = rf"[{CHINESE}]+|[^\W\d_{CHINESE}]+(?:[’'-][^\W\d_{CHINESE}]+)*|\d+|[^\w\s]|_"
"""A run of Chinese characters, a word with its apostrophes and hyphens, a number, or a mark."""

_PIECE = re.compile(PIECES)
_IS_CHINESE = re.compile(f"[{CHINESE}]")


def word_numbers(text: str, spans: Sequence[Span]) -> tuple[int, ...]:
    """The word of every token: what has no blank, punctuation or digit boundary inside is one word.

    Chinese has no blanks: there each token is a word, and tokens that share a character are one.

    Args:
        text: the sentence.
        spans: T character spans in the order of the text; an empty one marks a special token.

    Returns:
        T word numbers from 0; -1 for a special token.
    """
    pieces = [0] * len(text)
    for number, match in enumerate(_PIECE.finditer(text), start=1):
        pieces[match.start() : match.end()] = [number] * (match.end() - match.start())
    numbers: list[int] = []
    current, piece, end = -1, -1, 0
    for start, stop in spans:
        if start == stop:
            numbers.append(-1)
            continue
        apart = pieces[start] != piece or pieces[start] == 0 or _IS_CHINESE.match(text, start) is not None
        if apart and start >= end:
            current += 1
        piece, end = pieces[start], stop
        numbers.append(current)
    return tuple(numbers)

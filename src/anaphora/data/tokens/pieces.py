"""Tokens that stand for other characters than a tokenizer says: blanks of their own, and what a vocabulary lacks."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence
from typing import Any

from tokenizers import Tokenizer, decoders

from anaphora.data.example import Span

_BLANK_MARK = "\u2581"
"""How SentencePiece writes a blank."""


class BlankPieces:
    """The tokens of a vocabulary that stand for blanks alone.

    A tokenizer that puts a blank before each text gives this blank the place of the text's first character, if no word
    of its vocabulary begins with both.

    Args:
        backend: the tokenizer; its decoder says what a token stands for.
    """

    def __init__(self, backend: Tokenizer) -> None:
        self._decoder: Any = backend.decoder
        if self._decoder is None and "ByteLevel" in repr(backend.pre_tokenizer):
            self._decoder = decoders.ByteLevel()
        self._known: dict[str, bool] = {}

    def __contains__(self, token: str) -> bool:
        known = self._known.get(token)
        if known is None:
            decoded = token.replace(_BLANK_MARK, " ") if self._decoder is None else self._decoder.decode([token])
            known = self._known[token] = not decoded.strip()
        return known


def unread_stretches(
    text: str, ids: Sequence[int], spans: Sequence[Span], unknown: Collection[int]
) -> tuple[Span, ...]:
    """Return the characters of a text that a vocabulary does not have, as spans in the order of the text.

    Args:
        text: the text.
        ids: T vocabulary numbers.
        spans: T character spans; an empty one marks a special token.
        unknown: the numbers of the token for characters that are not in the vocabulary.

    Returns:
        The spans of these tokens, and the letters and digits that no token covers.
    """
    stretches = [span for number, span in zip(ids, spans, strict=True) if number in unknown and span[0] < span[1]]
    covered = bytearray(len(text))
    for start, end in spans:
        covered[start:end] = b"\x01" * (end - start)
    if covered.count(0):
        stretches += [
            (place, place + 1)
            for place, character in enumerate(text)
            if not covered[place] and unicodedata.category(character)[0] in "LN"
        ]
    return tuple(sorted(set(stretches)))

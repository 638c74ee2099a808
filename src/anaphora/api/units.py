"""The words or tokens of a text: what the axes of its maps stand for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.maps.words import word_columns, word_labels
from anaphora.base.checks import at_least, one_of, whole_number
from anaphora.data.tokens.tokenizer import TokenizedText

UNITS = ("word", "token")


def text_units(
    text: str, tokens: TokenizedText, by: str
) -> tuple[tuple[str, ...], tuple[tuple[int, int], ...], NDArray[np.int64]]:
    """W words or tokens of a text of T tokens as it writes them, their spans, and which of them each token is part of.

    Returns:
        words (W), spans (W), and numbers of words (T,).

    Raises:
        UserError: `by` is neither.
    """
    one_of("by", by, UNITS)
    numbers, spans = list(range(len(tokens.ids))), list(tokens.spans)
    if by == "word":
        numbers, spans = word_columns(tokens.words), _word_spans(tokens.spans, tokens.words)
    return word_labels(text, spans, tokens.special), tuple(spans), np.array(numbers, dtype=np.int64)


def strongest(words: Sequence[str], values: NDArray[np.float32], count: int) -> list[tuple[str, float]]:
    """Return the `count` words of the largest values, largest first; equal values keep the order of the text.

    Raises:
        UserError: the number is negative, or no whole number.
    """
    at_least("count", whole_number("count", count), 0)
    return [(words[place], float(values[place])) for place in np.argsort(-values, kind="stable")[:count]]


def _word_spans(spans: Sequence[tuple[int, int]], words: Sequence[int]) -> list[tuple[int, int]]:
    """The characters of every word; a special token stays one of its own."""
    merged: dict[int, tuple[int, int]] = {}
    for position, (span, word) in enumerate(zip(spans, words, strict=True)):
        key = word if word >= 0 else -1 - position
        merged[key] = (merged[key][0], span[1]) if key in merged else span
    return list(merged.values())

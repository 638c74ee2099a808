"""Checks that user-given offsets cover whole words, and detection of offsets in other units, such as bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import accumulate

from anaphora.base.errors import UserError
from anaphora.base.language import cuts_word, is_inside_word

_Span = tuple[int, int]
_CONTEXT = 40  # characters of the text in a message
_TOKENS_WITHOUT_BLANK = re.compile(
    r"(?<=\w)(?=n['’]t\b)|\b(?:can(?=not\b)|gim(?=me\b)|gon(?=na\b)|got(?=ta\b)|lem(?=me\b)|wan(?=na\b))", re.IGNORECASE
)
"""Boundaries between two Penn Treebank tokens that are written as one word, such as "gon|na"."""


def check_offsets(text: str, spans: Sequence[tuple[str, _Span]], word_parts: Collection[int] = ()) -> None:
    """Check that the spans of a text cover whole words, without spaces at either end.

    In scripts without spaces, such as Chinese, spans may start and end anywhere. Contractions count as two words, as in
    the Penn Treebank: "was" and "n't", or "gon" and "na".

    Args:
        spans: pairs of a name for messages, such as "pronoun", and a span, which must be inside the text.
        word_parts: offsets at which a span may start even if the span starts or ends inside a word.

    Raises:
        UserError: a span starts or ends inside a word or with a space. If the offsets would cover whole words in
            another unit, such as UTF-8 bytes, the message names this unit.
    """
    for field, (start, end) in spans:
        problem = _problem(text, (start, end), word_parts)
        if problem:
            unit = fitting_unit(text, [span for _, span in spans])
            part = "; if a part of a word is meant, list its start in factors.word_parts" if problem == _CUTS else ""
            around = text[max(0, start - _CONTEXT // 2) : end + _CONTEXT // 2]
            raise UserError(
                f"{field}: {[start, end]} covers {text[start:end][:_CONTEXT]!r} in {around!r}, which {problem}; "
                f"offsets are characters (code points) from 0, end exclusive{f'; {unit}' if unit else part}"
            )


def cut_words(text: str, spans: Sequence[_Span]) -> list[int]:
    """Return the starts of the spans that start or end inside a word, in ascending order."""
    cut = [span for span in spans if cuts_word(text, span)]
    return sorted({span[0] for span in cut if _problem(text, span, ()) == _CUTS})


def fitting_unit(text: str, spans: Sequence[_Span]) -> str:
    """Return a clause for an error message that names the units, such as bytes, in which offsets cover whole words.

    It is empty if the offsets cover whole words in characters or in no known unit. Spans may be outside the text.
    """
    if covers_words(text, spans):
        return ""
    units = [name for name, convert in other_units(text) if covers_words(text, [convert(span) for span in spans])]
    return f"these fit as {' or as '.join(units)}" if units else ""


_CUTS = "cuts a word"


def _problem(text: str, span: _Span, word_parts: Collection[int]) -> str:
    """Describe why a span inside the text does not cover whole words; return "" if it does."""
    start, end = span
    if text[start].isspace() or text[end - 1].isspace():
        return "starts or ends at a blank"
    cuts = [place for place in span if is_inside_word(text, place)]
    if not cuts or start in word_parts:
        return ""
    between_tokens = {match.end() for match in _TOKENS_WITHOUT_BLANK.finditer(text)}
    return "" if between_tokens.issuperset(cuts) else _CUTS


def covers_words(text: str, spans: Sequence[_Span]) -> bool:
    """Return whether all spans are inside a text and cover whole words."""
    return all(0 <= start < end <= len(text) and not _problem(text, (start, end), ()) for start, end in spans)


def other_units(text: str) -> Iterator[tuple[str, Callable[[_Span], _Span]]]:
    """Yield (name, conversion function) for each known unit of offsets other than characters from 0 with exclusive end.

    The function converts a span in this unit to characters; an offset that is not the start of a character becomes -1.
    """
    for name, encoding, size in (("UTF-16 code units", "utf-16-le", 2), ("UTF-8 bytes", "utf-8", 1)):
        sizes = [len(character.encode(encoding, "surrogatepass")) // size for character in text]
        places = {before: place for place, before in enumerate(accumulate(sizes, initial=0))}
        yield name, lambda span, places=places: (places.get(span[0], -1), places.get(span[1], -1))  # type: ignore[misc]
    yield "places of the first and the last character", lambda span: (span[0], span[1] + 1)
    yield "characters counted from 1", lambda span: (span[0] - 1, span[1] - 1)
    yield "places of the first and the last character counted from 1", lambda span: (span[0] - 1, span[1])

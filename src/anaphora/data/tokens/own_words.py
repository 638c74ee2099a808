"""Word segmentation given by the user, in place of the tokenizer's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from anaphora.base.errors import UserError
from anaphora.data.example import Span, overlapping
from anaphora.data.tokens.tokenizer import TokenizedText

_SHOWN = 12
"""Number of characters of the text that an error message shows."""


def own_word_spans(text: str, words: str | Sequence[str]) -> list[Span]:
    """Return the character span of each word of a user's segmentation; blanks are ignored.

    Args:
        text: the text.
        words: all words of the text in order, or one string with blanks between the words.

    Raises:
        UserError: the words do not spell the text; the message shows the first difference.
    """
    listed = words.split() if isinstance(words, str) else words
    if not isinstance(listed, Sequence) or not all(isinstance(word, str) for word in listed):
        raise UserError(f"words ({words!r}) must be a list of words, or the text with blanks between its words")
    places = [place for place, character in enumerate(text) if not character.isspace()]
    spans: list[Span] = []
    read = 0
    for number, word in enumerate(listed):
        if not word.strip():
            raise UserError(f"words[{number}] ({word!r}) is blank; every word needs a character")
        first = read
        for character in "".join(word.split()):
            if read == len(places):
                raise UserError(f"words[{number}] ({word!r}) goes on behind the end of the text {text[-_SHOWN:]!r}")
            if text[places[read]] != character:
                rest = text[places[read] :][:_SHOWN]
                raise UserError(
                    f"words[{number}] ({word!r}) has {character!r} where the text has {rest!r}, from its character "
                    f"{places[read]} on; words must spell the text"
                )
            read += 1
        spans.append((places[first], places[read - 1] + 1))
    if read < len(places):
        raise UserError(
            f"words: they end before {text[places[read] :][:_SHOWN]!r}, character {places[read]} of the text; words "
            "must spell the text"
        )
    return spans


def with_own_words(text: str, tokens: TokenizedText, words: str | Sequence[str]) -> TokenizedText:
    """Return a copy of `tokens` with the word indices of the user's segmentation.

    Raises:
        UserError: the words do not spell the text, a token overlaps two words, or a word has no token.
    """
    spans = own_word_spans(text, words)
    numbers: list[int] = []
    for start, end in tokens.spans:
        parts = overlapping(spans, (start, end))
        if len(parts) > 1:
            first, second = (text[slice(*spans[part])] for part in parts[:2])
            raise UserError(
                f"words[{parts[0]}] ({first!r}) and words[{parts[1]}] ({second!r}) share the token "
                f"{text[start:end]!r} of this model; join them into one word, or use by='token'"
            )
        numbers.append(parts[0] if parts else -1)
    for number, span in enumerate(spans):
        if number not in numbers:
            raise UserError(f"words[{number}] ({text[slice(*span)]!r}) has no token: this model does not read it")
    return replace(tokens, words=tuple(numbers))

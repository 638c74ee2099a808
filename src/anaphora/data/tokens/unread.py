"""Words, pronouns and candidates with parts outside a model's vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from anaphora.data.example import Example, Span, overlapping
from anaphora.data.tokens.tokenizer import TokenizedText

_SHOWN = 10
"""Number of words that a one-line list shows."""


@dataclass(frozen=True)
class UnreadMentions:
    """Parts of pronouns and candidates that are outside a vocabulary, over a set of items.

    Attributes:
        items: number of items with such a part.
        of: number of all items.
        words: the different parts, as written in the texts.
    """

    items: int
    of: int
    words: tuple[str, ...]

    @property
    def listed(self) -> str:
        """Return the first words as a comma-separated list, with the number of the others."""
        more = f" ... (+{len(self.words) - _SHOWN})" if len(self.words) > _SHOWN else ""
        return ", ".join(self.words[:_SHOWN]) + more


@dataclass(frozen=True)
class UnknownWords:
    """Out-of-vocabulary words of one text.

    Attributes:
        words: the different words, as written in the text. A word that splits into known subwords is not among them.
        is_readable: whether an answer about the text may be shown, since the pronoun, all candidates and at least two
            thirds of all words are known.
    """

    words: tuple[str, ...]
    is_readable: bool


def unknown_words(text: str, tokens: TokenizedText, example: Example | None = None) -> UnknownWords:
    """Return the out-of-vocabulary words of a text; the mentions of `example`, if given, decide on readability too."""
    extents: dict[int, Span] = {}
    for number, (start, end) in zip(tokens.words, tokens.spans, strict=True):
        if start < end:
            extents[number] = (extents[number][0] if number in extents else start, end)
    spans = [*extents.values(), *(span for span in tokens.unread if not overlapping([*extents.values()], span))]
    words = [span for span in spans if any(map(str.isalnum, text[slice(*span)]))]  # marks are none
    unknown = [span for span in words if overlapping(tokens.unread, span)]
    is_named = any(overlapping(unknown, span) for span in (example.spans if example else ()))
    return UnknownWords(
        words=tuple(dict.fromkeys(text[slice(*span)] for span in sorted(unknown))),
        is_readable=not is_named and 3 * len(unknown) <= len(words),
    )


def unread_mentions(tokenize: Callable[[str], TokenizedText], examples: Sequence[Example]) -> UnreadMentions | None:
    """Return the parts of mentions that are outside a tokenizer's vocabulary; None if there are none."""
    unread_of = {text: tokenize(text).unread for text in {example.text for example in examples}}
    words: dict[str, None] = {}
    items = 0
    for example in examples:
        parts = [
            example.text[slice(*unread)] for unread in unread_of[example.text] if overlapping(example.spans, unread)
        ]
        items += bool(parts)
        words.update(dict.fromkeys(parts))
    return UnreadMentions(items, len(examples), tuple(words)) if items else None

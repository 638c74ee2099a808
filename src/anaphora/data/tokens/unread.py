"""Pronouns and candidates with parts outside a model's vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from anaphora.data.example import Example, Span, overlapping
from anaphora.data.tokens.tokenizer import TokenizedText

_SHOWN = 10
"""How many words a line names."""


@dataclass(frozen=True)
class UnreadMentions:
    """The mentions of some items with parts that are not in a vocabulary.

    Attributes:
        items: how many items have such parts.
        of: how many items there are.
        words: the parts, as the texts write them, each once.
    """

    items: int
    of: int
    words: tuple[str, ...]

    @property
    def listed(self) -> str:
        """Return the first of the words, as one line."""
        more = f" ... (+{len(self.words) - _SHOWN})" if len(self.words) > _SHOWN else ""
        return ", ".join(self.words[:_SHOWN]) + more


@dataclass(frozen=True)
class UnknownWords:
    """The words of one text that a vocabulary does not have.

    Attributes:
        words: the words as the text writes them, each once. A word that splits into known parts is not among them.
        is_readable: whether enough is known for an answer to be shown: the pronoun, each candidate and at least two
            thirds of all words.
    """

    words: tuple[str, ...]
    is_readable: bool


def unknown_words(text: str, tokens: TokenizedText, example: Example | None = None) -> UnknownWords:
    """Return the words of a text that its tokens lack, and whether they leave enough of it to be understood."""
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
    """Return which mentions of some items a tokenizer cannot read; None if it reads all of them."""
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

"""Pronouns and candidates that a model cannot read, because its vocabulary does not have them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from anaphora.data.example import Example
from anaphora.data.tokens.tokenizer import TokenizedText

_SHOWN = 10
"""How many words a line names."""


@dataclass(frozen=True)
class UnreadMentions:
    """Of some items, those with parts of the pronoun or of a candidate that are not in a vocabulary.

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
        """The first of the words, as one line."""
        more = f" ... (+{len(self.words) - _SHOWN})" if len(self.words) > _SHOWN else ""
        return ", ".join(self.words[:_SHOWN]) + more


def unread_mentions(tokenize: Callable[[str], TokenizedText], examples: Sequence[Example]) -> UnreadMentions | None:
    """Return which mentions of some items a tokenizer cannot read; None if it reads all of them."""
    unread_of = {text: tokenize(text).unread for text in {example.text for example in examples}}
    words: dict[str, None] = {}
    items = 0
    for example in examples:
        mentions = [example.pronoun, *(span for spans in example.candidates for span in spans)]
        parts = [
            example.text[start:end]
            for start, end in unread_of[example.text]
            if any(start < last and first < end for first, last in mentions)
        ]
        items += bool(parts)
        words.update(dict.fromkeys(parts))
    return UnreadMentions(items, len(examples), tuple(words)) if items else None

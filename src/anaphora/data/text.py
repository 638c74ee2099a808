"""A text in which no pronoun is asked about: to pre-train on, or with a label of its own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from anaphora.data.example import LANGUAGES
from anaphora.data.words import CHINESE
from anaphora.errors import UserError

UNKNOWN_WORD = "\ufffd"
"""Stands for a word that a source does not tell; no vocabulary holds it."""

_IS_CHINESE = re.compile(f"[{CHINESE}]")
_LOOKED_AT = 1000  # characters from which a text's language is told
_CHINESE_SHARE = 0.2  # of them at least


@dataclass(frozen=True, kw_only=True, slots=True)
class Text:
    """A text, a paragraph a line, and its label where it has one.

    Raises:
        UserError: a field is empty or not allowed; the message names field, value and what is allowed.
    """

    text: str
    language: str
    label: str | None = None
    group: str = ""  # texts that must stay in one split share it; "" stands alone
    title: str = ""

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise UserError("text: it is empty")
        if self.language not in LANGUAGES:
            raise UserError(f"language: {self.language!r} is not one of {', '.join(LANGUAGES)}")
        if self.label == "":
            raise UserError("label: it is empty; leave it out where there is none")


def language_of(text: str) -> str:
    """The language: "zh" where a fifth or more of the first thousand characters are Chinese, else "en"."""
    begin = text[:_LOOKED_AT]
    return "zh" if len(_IS_CHINESE.findall(begin)) >= max(1, _CHINESE_SHARE * len(begin)) else "en"


def thinned(texts: Sequence[Text], most: int | None) -> list[Text]:
    """At most so many texts, evenly spread; all of them for None."""
    if most is None or len(texts) <= most:
        return list(texts)
    return [texts[place * len(texts) // most] for place in range(most)]

"""A text without a pronoun question: to pre-train on, or with a label of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anaphora.base.errors import UserError
from anaphora.base.language import LANGUAGES, NUL

UNKNOWN_WORD = "\ufffd"
"""The substitute for a word that a source leaves out; no vocabulary holds it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Text:
    """A text, with one paragraph per line, and its label if it has one.

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
        if NUL in self.text:
            raise UserError("text: it holds a NUL character, which no text has")
        if self.language not in LANGUAGES:
            raise UserError(f"language: {self.language!r} must be one of {', '.join(LANGUAGES)}")
        if self.label == "":
            raise UserError("label: it is empty; leave it out where there is none")


def evenly_sampled(texts: Sequence[Text], most: int | None) -> list[Text]:
    """Return at most this many texts, evenly spread; all of them for None."""
    if most is None or len(texts) <= most:
        return list(texts)
    return [texts[number * len(texts) // most] for number in range(most)]

"""Texts without annotated pronouns, for pre-training or classification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anaphora.base.errors import UserError
from anaphora.base.language import LANGUAGES, NUL

UNKNOWN_WORD = "\ufffd"  # placeholder for a word that is missing in a source; never part of a vocabulary


@dataclass(frozen=True, kw_only=True, slots=True)
class Text:
    """Text with an optional label.

    Raises:
        UserError: the text is blank or contains a NUL character, the language is unknown, or the label is "".
    """

    text: str  # one paragraph per line
    language: str  # "en" or "zh"
    label: str | None = None  # for classification
    group: str = ""  # shared by texts that must stay in one split; "" for a text on its own
    title: str = ""  # of the page or book; "" if unknown

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise UserError("text: it is empty")
        if NUL in self.text:
            raise UserError("text: it holds a NUL character, which no text has")
        if self.language not in LANGUAGES:
            raise UserError(f"language: {self.language!r} must be one of {', '.join(LANGUAGES)}")
        if self.label == "":
            raise UserError("label: it is empty; leave it out if there is none")


def evenly_sampled(texts: Sequence[Text], most: int | None) -> list[Text]:
    """Return at most `most` evenly spaced texts; all texts if `most` is None."""
    if most is None or len(texts) <= most:
        return list(texts)
    return [texts[number * len(texts) // most] for number in range(most)]

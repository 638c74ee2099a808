"""One sentence of a user's own as an Example."""

from __future__ import annotations

import re

from anaphora.analysis.settings import Analysis
from anaphora.data.example import Example, Span, in_text_order
from anaphora.errors import UserError

_CHINESE = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")


def example_of(asked: Analysis) -> Example:
    """The sentence, pronoun and candidates that a command names.

    Raises:
        UserError: a word is not in the text, a place is outside it, or a candidate overlaps the pronoun.
    """
    assert asked.text is not None
    assert asked.pronoun is not None
    language = asked.language or language_of(asked.text)
    pronoun = find(asked.text, asked.pronoun, "pronoun")
    spans = tuple((find(asked.text, name, "candidates"),) for name in asked.candidates)
    right = () if asked.antecedent is None else (asked.candidates.index(asked.antecedent),)
    candidates, antecedents, _ = in_text_order(spans, right)
    return Example(text=asked.text, language=language, pronoun=pronoun, candidates=candidates, antecedents=antecedents)


def language_of(text: str) -> str:
    """The language that a text's characters tell: Chinese from the first Chinese character on, else English."""
    return "zh" if _CHINESE.search(text) else "en"


def find(text: str, asked: str, setting: str) -> Span:
    """Where a word stands: its first whole occurrence, or the characters that "start:end" names.

    A Chinese word needs no blanks around it. English is found in any case.
    """
    places = re.fullmatch(r"(\d+):(\d+)", asked)
    if places:
        start, end = int(places[1]), int(places[2])
        if not 0 <= start < end <= len(text):
            raise UserError(f"{setting} ({asked}) is outside the text, which has {len(text)} characters")
        return start, end
    edge = "" if _CHINESE.search(asked) else r"\b"
    found = re.search(f"{edge}{re.escape(asked)}{edge}", text, re.IGNORECASE)
    if found is None:
        raise UserError(f"{setting} ({asked!r}) is not in the text {text!r}; give a word of it, or characters as 0:4")
    return found.span()

"""One sentence of a user's own as an Example, and what files about it are called."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence

from anaphora.base.errors import UserError
from anaphora.base.language import CHINESE_CHARACTER, language_of, split_names
from anaphora.data.example import Example, Span, in_text_order

_ACCENTS = "\u0300-\u036f"
"""The characters that put an accent on the letter before them."""


def example_from_query(
    text: str,
    pronoun: str,
    candidates: Sequence[str] = (),
    antecedent: str | None = None,
    language: str | None = None,
) -> Example:
    """A sentence with its pronoun and candidates, each named by a word of it or by its characters as "start:end".

    Args:
        text: the sentence.
        pronoun: the pronoun to resolve; one that stands there several times with its number, as "it:2".
        candidates: what it may refer to; one name of several, if a Chinese comma stands between them.
        antecedent: the right candidate, where that is known.
        language: "en" or "zh"; by default `language_of` decides.

    Raises:
        UserError: a word is not in the text, a span is outside it, a candidate overlaps the pronoun, the antecedent is
            no candidate, or the pronoun stands there several times and no number says which one.
    """
    if (
        isinstance(candidates, str)
        or not isinstance(candidates, Collection)
        or not all(isinstance(one, str) for one in candidates)
    ):
        raise UserError(f"candidates ({candidates!r}) must be a list of words of the text")
    candidates = split_names(candidates)
    same = [unicodedata.normalize("NFC", name) for name in candidates]
    answer = None if antecedent is None else unicodedata.normalize("NFC", str(antecedent))
    if answer is not None and answer not in same:
        raise UserError(f"antecedent ({antecedent!r}) must be one of candidates ({list(candidates)})")
    spans = tuple((find_span(text, name, "candidates"),) for name in candidates)
    right = () if answer is None else (same.index(answer),)
    ordered, antecedents, _ = in_text_order(spans, right)
    return Example(
        text=text,
        language=language or language_of(text),
        pronoun=find_pronoun(text, pronoun),
        candidates=ordered,
        antecedents=antecedents,
    )


def name_of_sentence(text: str, *question: object) -> str:
    """What the files about a sentence are called: its first words, and a digest of it and of what is asked of it."""
    words = re.sub(r"\W+", "_", text)[:24].strip("_")
    return f"{words}_{hashlib.sha256(repr((text, question)).encode()).hexdigest()[:8]}"


def find_pronoun(text: str, pronoun: str) -> Span:
    """The characters of a pronoun: the word, its characters as "start:end", or the word and its number as "it:2".

    Raises:
        UserError: it is not in the text, or stands there several times and no number says which one.
    """
    every = list(occurrences_in_any_case(pronoun, text)) if isinstance(pronoun, str) and pronoun.strip() else []
    if len(every) > 1:
        places = ", ".join(f"{start}:{end}" for start, end in every[:5])
        raise UserError(
            f"pronoun ({pronoun!r}) appears {len(every)} times in the text: write which one you mean as '{pronoun}:2', "
            f"or its characters ({places})"
        )
    return find_span(text, pronoun, "pronoun")


def find_span(text: str, words: str, setting: str) -> Span:
    """The characters of some words in a text: their first whole occurrence, or another that the user numbers.

    "it:2" is the second "it", and "start:end" names characters. Chinese words need no blanks around them. English is
    found in any case.

    Args:
        text: where to look.
        words: as the user wrote them.
        setting: the name of the setting, for the error.

    Raises:
        UserError: the words are no string or not in the text, or the characters lie outside it.
    """
    if not isinstance(words, str):
        raise UserError(f"{setting} ({words!r}) must be a string: a word of the text, or characters as 0:4")
    if not words.strip():
        raise UserError(f"{setting} ({words!r}) is blank; give a word of the text, or characters as 0:4")
    characters = re.fullmatch(r"(\d{1,9}):(\d{1,9})", words)
    if characters:
        start, end = int(characters[1]), int(characters[2])
        if not 0 <= start < end <= len(text):
            raise UserError(f"{setting} ({words}) is outside the text, which has {len(text)} characters")
        return start, end
    occurrence = next(occurrences_in_any_case(words, text), None)
    numbered = re.fullmatch(r"(.*\S.*):([0-9]{1,4})", words, re.DOTALL)
    if occurrence is None and numbered:
        word, number = numbered[1], int(numbered[2])
        every = list(occurrences_in_any_case(word, text))
        if not 1 <= number <= len(every):
            raise UserError(f"{setting} ({words!r}): {word!r} appears {len(every)} times in the text {text!r}")
        return every[number - 1]
    if occurrence is None:
        raise UserError(f"{setting} ({words!r}) is not in the text {text!r}; give a word of it, or characters as 0:4")
    return occurrence


def occurrences_in_any_case(words: str, text: str) -> Iterator[Span]:
    """Wherever some words stand in a text: as whole words in any case in English, anywhere in Chinese.

    A letter with its accent is the same whether it is one character or two, as in file names of a Mac.
    """
    left, right = ("", "") if CHINESE_CHARACTER.search(words) else (r"(?<!\w)", rf"(?![\w{_ACCENTS}])")
    composed = "".join(map(_composed_or_not, unicodedata.normalize("NFC", words)))
    for occurrence in re.finditer(f"{left}(?:{re.escape(words)}|{composed}){right}", text, re.IGNORECASE):
        yield occurrence.span()


def _composed_or_not(character: str) -> str:
    """A pattern for a character as it is, or as its letter with the accents after it."""
    parts = unicodedata.normalize("NFD", character)
    return re.escape(character) if parts == character else f"(?:{re.escape(character)}|{re.escape(parts)})"

"""The languages of the package, their characters, and the rule that decides the language of a text."""

from __future__ import annotations

import re
from collections.abc import Sequence

LANGUAGES = ("en", "zh")

CHINESE_RANGES = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
WORD_PATTERN = rf"[{CHINESE_RANGES}]+|[^\W\d_{CHINESE_RANGES}]+(?:[’'-][^\W\d_{CHINESE_RANGES}]+)*|\d+|[^\w\s]|_"
"""A run of Chinese characters, a word with its apostrophes and hyphens, a number, or a mark.

A run of Chinese characters has no blanks: the tokenizer decides which parts of it are words.
"""

CHINESE_CHARACTER = re.compile(f"[{CHINESE_RANGES}]")
WIDE_RANGES = "\u2e80-\u9fff\uf900-\uffef\U00020000-\U0010ffff"
"""Chinese characters, rare ones too, and full-width punctuation: what needs a Chinese font and no blank beside it."""
WIDE_CHARACTER = re.compile(f"[{WIDE_RANGES}]")

_SPECIAL_WORD = re.compile(r"\[[A-Z]+\]")
_LANGUAGE_SAMPLE = 1000  # characters at the start of a text that decide its language
_CHINESE_SHARE = 0.2  # of them at least


def split_names(names: Sequence[str]) -> list[str]:
    """Names that were typed with a Chinese comma, "，" or "、", between them, which Hydra takes for part of a name."""
    parts = [(name, part.strip()) for name in names for part in re.split("[，、]", name)]
    return [part for name, part in parts if part or name == part]


def language_of(text: str) -> str:
    """The language: "zh" where a fifth or more of the first thousand characters are Chinese, else "en"."""
    sample = text[:_LANGUAGE_SAMPLE]
    return "zh" if len(CHINESE_CHARACTER.findall(sample)) >= max(1, _CHINESE_SHARE * len(sample)) else "en"


def is_contradicted(language: str, text: str) -> bool:
    """Whether every letter of a text is against a language; digits, marks and special words such as [MASK] are not.

    An English text may have Chinese names, and a Chinese one English names; but not nothing else.
    """
    letters = [character for character in _SPECIAL_WORD.sub("", text) if character.isalpha()]
    if language == "zh":
        return bool(letters) and not any(map(WIDE_CHARACTER.match, letters))
    return bool(letters) and all(map(CHINESE_CHARACTER.match, letters))

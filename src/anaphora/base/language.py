"""Supported languages: character ranges, word boundaries and language detection."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache

LANGUAGES = ("en", "zh")
NUL = "\0"  # a character that occurs in binary and damaged files, but in no text

CHINESE_RANGES = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
WORD_PATTERN = rf"[{CHINESE_RANGES}]+|[^\W\d_{CHINESE_RANGES}]+(?:[’'-][^\W\d_{CHINESE_RANGES}]+)*|\d+|[^\w\s]|_"
"""Pattern of a sequence of Chinese characters, a word with its apostrophes and hyphens, a number or a punctuation mark.

The tokenizer splits a sequence of Chinese characters further, by its vocabulary.
"""

CHINESE_CHARACTER = re.compile(f"[{CHINESE_RANGES}]")
WIDE_RANGES = "\u2e80-\u9fff\uf900-\uffef\U00020000-\U0010ffff"
"""Chinese characters, including rare ones, and full-width marks, which need a Chinese font and no spaces around."""
WIDE_CHARACTER = re.compile(f"[{WIDE_RANGES}]")

_WORD = re.compile(WORD_PATTERN)
_SCRIPT = re.compile(
    r"(?!MODIFIER)(?:FULLWIDTH |HALFWIDTH )?([A-Z]+)\b.* "
    r"(?:LETTER|SYLLABLE|SYLLABICS|CHARACTER|LIGATURE|IDEOGRAPH|CHOSEONG|JUNGSEONG|JONGSEONG)\b"
)
"""Pattern for the script in a letter's Unicode name; letters without a script, such as ʻ in "Hawaiʻi", do not match."""
_WITHOUT_BLANKS = ("CJK", "HIRAGANA", "KATAKANA", "BOPOMOFO", "THAI", "LAO", "KHMER", "MYANMAR")
"""Scripts without spaces between words."""
JOINERS = "\u00ad\u200c\u200d\u2060"
"""Soft hyphen, zero-width non-joiner and joiner, and word joiner, which are part of the surrounding word."""
_BEHIND_LETTER = re.compile(r"[^\w\s\x00-\x7f]+")

_UNBREAKABLE = re.compile(
    r"(?:layer|head) \d\S*\s*"
    r"|第 \d+ [层头][，。？！；：、）”’》」』%]*\s*"
    r"|[（“‘《「『]*[\u3400-\u9fff][，。？！；：、）”’》」』%]*\s*"
    r"|[^\s\u3400-\u9fff“‘]+(?: (?:%|\d)[^\s\u3400-\u9fff]*)*\s*"
    r"|\s+"
    r"|."
)
"""Pattern of a text segment without a line break: a word with the numbers after it and their unit, a layer or head with
its number, or a Chinese character, each with its punctuation."""

_OPENING, _CLOSING = {"Ps", "Pi"}, {"Pe", "Pf", "Po"}
"""Unicode categories of punctuation attached to the next word, and to the previous one."""

_FREQUENT = """
    the and that this these those she him his hers himself herself it its itself they them their theirs themselves who
    whom whose which what when where why how because although though while until since before after then than there if
    but not with from into about out would could should did does been you your our said told asked very too more some
    every both each other another
"""
ENGLISH_WORDS = frozenset(_FREQUENT.split())
"""Frequent English words that are rare in other languages in Latin script, unlike "a", "in", "on" and "was"."""
_OTHER_SCRIPTS_OF_EAST_ASIA = re.compile("[\u3040-\u30ff\uac00-\ud7af]")  # kana and Hangul

_BRACKETED_WORD = re.compile(r"\[.*\]|<.*>", re.DOTALL)
_SPECIAL_WORD = re.compile(r"\[[A-Z]+\]")
LANGUAGE_SAMPLE = 1000  # characters at the start of a text that decide its language
CHINESE_SHARE = 0.2  # minimum share of Chinese characters in this sample for a text to count as Chinese


def words_of(text: str) -> Iterator[tuple[int, int]]:
    """Yield the (start, end) offsets of each word of a text: matches of `WORD_PATTERN`, split where the script changes.

    Combining marks, such as accents and vowel signs, and invisible joiners belong to the preceding letter.
    """
    letters = text if text.isascii() else _BEHIND_LETTER.sub(_as_letter_before, text)
    for match in _WORD.finditer(letters):
        start, end = match.span()
        if not (match[0].isascii() or CHINESE_CHARACTER.match(match[0])):
            for place in range(start + 1, end):
                if _changes_script(letters[place - 1], letters[place]):
                    yield start, place
                    start = place
        yield start, end


def is_inside_word(text: str, place: int) -> bool:
    """Return whether a character offset is inside a word or number, like offset 3 of "Berlin".

    Word boundaries are next to every character that is not a letter or digit, even a hyphen; between letters and
    digits; between scripts; and between letters of a script written without spaces, which is not segmented into words.
    An offset between a letter and its combining mark is inside the word, unless the letter is Chinese.
    """
    if not 0 < place < len(text):
        return False
    if text[place - 1] == " " or text[place] == " " or CHINESE_CHARACTER.match(text[place - 1]):
        return False
    if text[place - 1 : place + 1].isascii():
        before, after = text[place - 1], text[place]
        return before.isalnum() and after.isalnum() and before.isdecimal() == after.isdecimal()
    last = place - 1
    while last > 0 and _is_mark(text[last]):
        last -= 1
    before, after = text[last], text[place]
    if _is_mark(after):
        return before.isalnum() and not CHINESE_CHARACTER.match(before)
    if not (before.isalnum() and after.isalnum()) or before.isdecimal() != after.isdecimal():
        return False
    return not (_changes_script(before, after) or _is_without_blanks(before) or _is_without_blanks(after))


def cuts_word(text: str, span: tuple[int, int]) -> bool:
    """Return whether a span starts or ends inside a word or number."""
    return is_inside_word(text, span[0]) or is_inside_word(text, span[1])


def stands_alone(character: str) -> bool:
    """Return whether a character's script has no spaces between words; each token of such a script counts as a word."""
    return CHINESE_CHARACTER.match(character) is not None or _is_without_blanks(character)


def _as_letter_before(match: re.Match[str]) -> str:
    """Replace matched marks and joiners with copies of the preceding letter; keep the rest of the match."""
    letter = match.string[match.start() - 1 : match.start()]
    if not letter.isalnum() or CHINESE_CHARACTER.match(letter):
        return match[0]
    marks = next((number for number, each in enumerate(match[0]) if not _is_mark(each)), len(match[0]))
    return letter * marks + match[0][marks:]


def _is_mark(character: str) -> bool:
    return character > "\x7f" and (character in JOINERS or unicodedata.category(character)[0] == "M")


def _changes_script(before: str, after: str) -> bool:
    scripts = _script_of(before), _script_of(after)
    return "" not in scripts and scripts[0] != scripts[1]


def _is_without_blanks(character: str) -> bool:
    return _script_of(character) in _WITHOUT_BLANKS


@lru_cache(maxsize=4096)
def _script_of(character: str) -> str:
    """Return the script of a letter; "" for other characters and letters without a script."""
    named = _SCRIPT.match(unicodedata.name(character, "")) if character.isalpha() else None
    return named[1] if named else ""


def split_names(names: Sequence[str]) -> list[str]:
    """Split names at the Chinese commas "，" and "、", which Hydra does not recognise as separators."""
    parts = [(name, part.strip()) for name in names for part in re.split("[，、]", name)]
    return [part for name, part in parts if part or name == part]


def language_of(text: str) -> str:
    """Return "zh" if at least a fifth of a text's first 1,000 characters are Chinese, else "en"."""
    sample = text[:LANGUAGE_SAMPLE]
    return "zh" if len(CHINESE_CHARACTER.findall(sample)) >= max(1, CHINESE_SHARE * len(sample)) else "en"


def seems_english_or_chinese(text: str) -> bool:
    """Return whether a text has one of `ENGLISH_WORDS`, or has Chinese characters and neither kana nor Hangul."""
    if CHINESE_CHARACTER.search(text):
        return not _OTHER_SCRIPTS_OF_EAST_ASIA.search(text)
    return any(word.lower() in ENGLISH_WORDS for word in re.findall(r"[^\W\d_]+", text))


def is_contradicted(language: str, text: str) -> bool:
    """Return whether a text's letters rule out `language`: "en" if all are Chinese, "zh" if none is East Asian.

    A text without letters rules out no language; tokens like [MASK] are ignored. An English text may contain Chinese
    names, and a Chinese text English names.
    """
    letters = [character for character in _SPECIAL_WORD.sub("", text) if character.isalpha()]
    if language == "zh":
        return bool(letters) and not any(map(WIDE_CHARACTER.match, letters))
    return bool(letters) and all(map(CHINESE_CHARACTER.match, letters))


def is_right_to_left(words: Iterable[str]) -> bool:
    """Return whether the first letter is of a script written from right to left, such as Arabic or Hebrew.

    Words in square or angle brackets, such as [CLS] and <s>, are ignored.
    """
    letters = "".join(word for word in words if not _BRACKETED_WORD.fullmatch(word))
    directions = (unicodedata.bidirectional(letter) for letter in letters)
    return next((direction for direction in directions if direction in ("L", "R", "AL")), "L") != "L"


def lines_within(text: str, limit: float, width: Callable[[str], float]) -> list[str]:
    """Wrap a text at spaces or between Chinese characters into lines of at most `limit`, as measured by `width`."""
    lines = [""]
    for part in _UNBREAKABLE.findall(text):
        if lines[-1] and width((lines[-1] + part).rstrip()) > limit:
            lines.append("")
        lines[-1] += part
    return [line.rstrip() for line in lines]


def stays_with_previous(words: Sequence[str]) -> list[bool]:
    """Return, for each word, whether it must not begin a line: closing marks, and words after opening marks."""
    kinds = [set(map(unicodedata.category, word)) for word in words]
    after_opening = [False, *(kind <= _OPENING for kind in kinds)]
    return [bool(place) and (after_opening[place] or kind <= _CLOSING) for place, kind in enumerate(kinds)]

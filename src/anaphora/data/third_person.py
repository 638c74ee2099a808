"""Third-person pronouns of English and Chinese, found by a regular expression.

If the user names no pronoun of a sentence, the last one is the query, since the most candidates precede it. The page
that runs without Python uses the same pattern.
"""

from __future__ import annotations

import re

_ENGLISH = """
    he him his himself she her hers herself it its itself they them their theirs themself themselves
"""
_CHINESE = (
    "(?<!(?<!尤)其)(?<!吉(?=他))(?<![维維](?=他命))(?<![马馬]耳(?=他))"  # others, guitar, vitamin, Malta
    "(?:[她它牠祂]|他(?:(?=[们們])|(?![乡鄉](?!下)|人(?:[的之或，。！？、；]|$))))[们們]?"  # nor 他乡 and 他人
)


def pronoun_pattern(letter: str) -> str:
    """Return a regular expression that matches third-person pronouns, in Python or in JavaScript.

    A pronoun inside a longer word does not match, even if a hyphen separates the parts. "IT" in capitals does not match
    either, since it usually means information technology.

    Args:
        letter: pattern of a letter or digit, which Python and JavaScript write differently.
    """
    forms = dict.fromkeys(
        form for word in _ENGLISH.split() for form in (word, word.capitalize(), word.upper()) if form != "IT"
    )
    return f"(?<!{letter})(?<!{letter}-)(?:{'|'.join(forms)})(?!-?{letter})|{_CHINESE}"


SCRIPT_PATTERN = pronoun_pattern(r"[\p{L}\p{N}]")
"""Pattern for JavaScript, with the flag "u"."""
_PATTERN = re.compile(pronoun_pattern(r"[^\W_]"))


def third_person_pronouns(text: str) -> list[tuple[int, int]]:
    """Return the character spans of the third-person pronouns of a text, in order."""
    return [match.span() for match in _PATTERN.finditer(text)]

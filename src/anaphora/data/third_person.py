"""The third-person pronouns of English and Chinese, and their places in a text.

Whoever types a sentence need not name its pronoun: the last one is asked about, since the most candidates stand before
it. The page without Python finds the same ones with the same pattern.
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
    """Return the pattern of a third-person pronoun, for Python and for a script, which write a letter differently.

    A pronoun is no part of a longer word, with or without a hyphen; "IT" in capitals is the trade.

    Args:
        letter: the pattern of a letter or digit.
    """
    forms = dict.fromkeys(
        form for word in _ENGLISH.split() for form in (word, word.capitalize(), word.upper()) if form != "IT"
    )
    return f"(?<!{letter})(?<!{letter}-)(?:{'|'.join(forms)})(?!-?{letter})|{_CHINESE}"


SCRIPT_PATTERN = pronoun_pattern(r"[\p{L}\p{N}]")
"""The pattern for a script of a page, which reads it with the flag "u"."""
_PATTERN = re.compile(pronoun_pattern(r"[^\W_]"))


def third_person_pronouns(text: str) -> list[tuple[int, int]]:
    """Return where the third-person pronouns of a text start and end, in its order."""
    return [match.span() for match in _PATTERN.finditer(text)]

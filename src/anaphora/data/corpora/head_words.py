"""Head words of mentions without an annotated head."""

from __future__ import annotations

import re
from collections.abc import Sequence

from anaphora.data.corpora.word_classes import is_noun

_PREPOSITIONS = (
    "of in on at by for from with without to into upon over under above below behind before after between among near "
    "beside besides against about around across along through toward towards within beyond as like than"
)
_OTHERS = "who whom whose which that where when and or but nor he she they we you i it"
_PUNCTUATION = ", ; : . ! ? ( [ -- – — ..."
_AFTER_HEAD = frozenset(f"{_PREPOSITIONS} {_OTHERS} {_PUNCTUATION} itself himself herself themselves".split())
"""What follows a head begins so: prepositions, relative words, conjunctions, subjects of a bare relative, and more."""
_NO_WORD = re.compile(r"[^\w]+|['’]s?")


def head_word(words: Sequence[str]) -> int:
    """Find a mention's head word without a parse: the last word before a postmodifier.

    What follows a head begins, from the second word on, with a mark such as a comma, a preposition, a relative word, a
    conjunction, a reflexive pronoun or the subject of a bare relative ("the roses she liked"). A final 's or quotation
    mark is not the head.
    """
    end = len(words)
    for place, word in enumerate(words[1:], start=1):
        if word.lower() in _AFTER_HEAD:
            end = place
            break
    while end > 1 and _NO_WORD.fullmatch(words[end - 1]):
        end -= 1
    return end - 1


def unparsed_head(words: Sequence[str], tags: Sequence[Sequence[str]], language: str) -> int:
    """Return the place of a mention's head word without a parse: in Chinese the last noun or pronoun, else the last.

    Args:
        words: of the mention.
        tags: of each word; empty, or unknown, if there are none.
        language: of the words; English has the rule of `head_word`.
    """
    if language != "zh":
        return head_word(words)
    return max((place for place, each in enumerate(tags) if is_noun(each)), default=len(words) - 1)

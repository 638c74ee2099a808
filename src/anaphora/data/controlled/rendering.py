"""Rendering of the sentences of the built-in corpus as text, with the spans of candidates and pronouns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from anaphora.data.controlled.templates import CLOSERS, STOPS
from anaphora.data.example import Span

_WITHOUT_BLANK = ",;:.?!'"  # characters at the start of an English token that has no space before it
CUE = "{cue}"  # slot of the words that determine the antecedent, and differ between the sentences of a group
_NUMBER_OF_CUE = -1


class NounPhrase(NamedTuple):
    """Noun phrase that fills a candidate's slot: the head, whose span represents the candidate, and its determiner."""

    head: str
    determiner: str = ""


class RenderedSentence(NamedTuple):
    """Text with the positions of its candidates and pronouns, as character spans and as word numbers.

    Words are numbered from 1, without punctuation marks.
    """

    text: str
    slot_spans: tuple[tuple[Span, ...], ...]  # of the heads in each numbered slot
    slot_words: tuple[tuple[int, ...], ...]
    pronoun_spans: tuple[Span, ...]  # of each numbered pronoun
    pronoun_words: tuple[int, ...]
    in_order: tuple[int, ...]  # slots in the order of their first mentions


class Sentence:
    """Sentence of fixed tokens and numbered slots, which can be rendered with different words in the slots.

    Chinese tokens are joined without spaces, English ones with spaces except before punctuation; each English sentence
    begins with a capital. The tokens are words, punctuation, and the slots {0}, {1}, ... for the candidates, {p0}, {p1}
    for the pronouns, and {cue} for the words that decide which candidate is meant.
    """

    def __init__(self, tokens: Sequence[str], language: str) -> None:
        self._english = english = language == "en"
        self._gaps: list[tuple[str, int, bool, int, bool]] = []
        """Each slot: the fixed text before it, the number of words in this text, whether the slot is a pronoun's, the
        slot's number, and whether an English sentence starts there."""
        fixed: list[str] = []
        count = 0
        start = english
        for place, token in enumerate(tokens):
            initial = token[0]
            if english and place and initial not in _WITHOUT_BLANK:
                fixed.append(" ")
            if initial == "{":
                is_pronoun = token[1] == "p"
                number = _NUMBER_OF_CUE if token == CUE else int(token[2:-1] if is_pronoun else token[1:-1])
                self._gaps.append(("".join(fixed), count, is_pronoun, number, start))
                fixed, count, start = [], 0, False
                continue
            fixed.append(initial.upper() + token[1:] if start else token)
            if token in CLOSERS:
                start = english and token in STOPS
            else:
                count, start = count + 1, False
        self._end = "".join(fixed)
        slots = [number for _, _, is_pronoun, number, _ in self._gaps if not is_pronoun and number != _NUMBER_OF_CUE]
        self._in_order = tuple(dict.fromkeys(slots))

    def render(
        self, mentions: Sequence[NounPhrase], pronouns: Sequence[str], cue: Sequence[str] = ()
    ) -> RenderedSentence:
        """Render the sentence with `mentions[0]` for {0}, `pronouns[0]` for {p0}, ..., and the words `cue` for {cue}.

        None of these words may be punctuation.
        """
        text, count = "", 0
        slots: list[tuple[Span, ...]] = [()] * len(mentions)
        slot_words: list[tuple[int, ...]] = [()] * len(mentions)
        pronoun_spans: list[Span] = [(0, 0)] * len(pronouns)
        pronoun_words = [0] * len(pronouns)
        for before, words, is_pronoun, number, is_start in self._gaps:
            text += before
            count += words + 1
            if is_pronoun:
                word = pronouns[number]
                if is_start:
                    word = word[0].upper() + word[1:]
                start = len(text)
                text += word
                pronoun_spans[number], pronoun_words[number] = (start, len(text)), count
                continue
            if number == _NUMBER_OF_CUE:
                phrase = (" " if self._english else "").join(cue)
                text += phrase[0].upper() + phrase[1:] if is_start else phrase
                count += len(cue) - 1
                continue
            word, determiner = mentions[number]
            if determiner:
                article, length = _article(determiner, self._english)
                count += length
                text += article[0].upper() + article[1:] if is_start else article
            elif is_start:
                word = word[0].upper() + word[1:]
            start = len(text)
            text += word
            slots[number] += ((start, len(text)),)
            slot_words[number] += (count,)
        return RenderedSentence(
            text + self._end,
            tuple(slots),
            tuple(slot_words),
            tuple(pronoun_spans),
            tuple(pronoun_words),
            self._in_order,
        )


@cache
def _article(determiner: str, is_english: bool) -> tuple[str, int]:
    """Return the text of a determiner before its noun, and the number of its words."""
    words = determiner.split()
    return " ".join(words) + " " if is_english else "".join(words), len(words)

"""Assignment of tokens to words, a user's own word segmentation, and out-of-vocabulary words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from anaphora.base.errors import UserError
from anaphora.base.language import seems_english_or_chinese, stands_alone, words_of
from anaphora.base.translation import pgettext
from anaphora.data.example import Example, Span, overlapping
from anaphora.data.own_sentence import third_person_pronouns

if TYPE_CHECKING:
    from anaphora.data.tokens.tokenizer import TokenizedText

_SHOWN = 12  # characters of the text in an error message
_SHOWN_WORDS = 10  # words of a one-line list


def word_numbers(text: str, spans: Sequence[Span]) -> tuple[int, ...]:
    """Return the word index of each of T tokens, (T,), with the word boundaries of `words_of`; -1 for a special token.

    In scripts without spaces, such as Chinese, each token is a word. Tokens that share a character share a word.
    `spans` are character spans in text order, empty for special tokens.
    """
    word_of = [0] * len(text)
    for number, (start, stop) in enumerate(words_of(text), start=1):
        word_of[start:stop] = [number] * (stop - start)
    numbers: list[int] = []
    current, word, end = -1, -1, 0
    for start, stop in spans:
        if start == stop:
            numbers.append(-1)
            continue
        apart = word_of[start] != word or word_of[start] == 0 or stands_alone(text[start])
        if apart and start >= end:
            current += 1
        word, end = word_of[start], stop
        numbers.append(current)
    return tuple(numbers)


def own_word_spans(text: str, words: str | Sequence[str]) -> list[Span]:
    """Return the character span of each word of a user's segmentation, a list or a string with spaces between words.

    Raises:
        UserError: the words, joined, differ from the text without its spaces; the message shows the first difference.
    """
    listed = words.split() if isinstance(words, str) else words
    if not isinstance(listed, Sequence) or not all(isinstance(word, str) for word in listed):
        raise UserError(f"words ({words!r}) must be a list of words, or the text with blanks between its words")
    places = [place for place, character in enumerate(text) if not character.isspace()]
    spans: list[Span] = []
    read = 0
    for number, word in enumerate(listed):
        if not word.strip():
            raise UserError(f"words[{number}] ({word!r}) is blank; every word needs a character")
        first = read
        for character in "".join(word.split()):
            if read == len(places):
                raise UserError(f"words[{number}] ({word!r}) continues after the end of the text {text[-_SHOWN:]!r}")
            if text[places[read]] != character:
                rest = text[places[read] :][:_SHOWN]
                raise UserError(
                    f"words[{number}] ({word!r}) has {character!r} where the text has {rest!r}, from its character "
                    f"{places[read]} on; words must spell the text"
                )
            read += 1
        spans.append((places[first], places[read - 1] + 1))
    if read < len(places):
        raise UserError(
            f"words: they end before {text[places[read] :][:_SHOWN]!r}, character {places[read]} of the text; words "
            "must spell the text"
        )
    return spans


def with_own_words(text: str, tokens: TokenizedText, words: str | Sequence[str]) -> TokenizedText:
    """Return a copy of the tokens of a text with the word indices that a user's segmentation gives them.

    Raises:
        UserError: the words, joined, are not the text, a token overlaps two words, or a word has no token.
    """
    spans = own_word_spans(text, words)
    numbers: list[int] = []
    for start, end in tokens.spans:
        parts = overlapping(spans, (start, end))
        if len(parts) > 1:
            first, second = (text[slice(*spans[part])] for part in parts[:2])
            raise UserError(
                f"words[{parts[0]}] ({first!r}) and words[{parts[1]}] ({second!r}) share the token "
                f"{text[start:end]!r} of this model; join them into one word, or use by='token'"
            )
        numbers.append(parts[0] if parts else -1)
    for number, span in enumerate(spans):
        if number not in numbers:
            raise UserError(f"words[{number}] ({text[slice(*span)]!r}) has no token: this model does not read it")
    return replace(tokens, words=tuple(numbers))


@dataclass(frozen=True)
class UnreadMentions:
    """Out-of-vocabulary parts of the pronouns and candidates in a set of items."""

    items: int  # number of items with such a part
    of: int  # number of all items
    words: tuple[str, ...]  # distinct parts, as written in the texts

    @property
    def listed(self) -> str:
        """Return the first ten words, joined in the interface language, and "... (+5)" if there are five more."""
        more = f" ... (+{len(self.words) - _SHOWN_WORDS})" if len(self.words) > _SHOWN_WORDS else ""
        return pgettext("list", ", ").join(self.words[:_SHOWN_WORDS]) + more


@dataclass(frozen=True)
class UnknownWords:
    """Out-of-vocabulary words of one text; a word that splits into known subwords is known.

    The model's answers are shown only if the text is readable: at least two thirds of its words, and all words of a
    given pronoun and its candidates, are known.
    """

    words: tuple[str, ...]  # distinct, as written in the text
    is_readable: bool
    foreign: tuple[str, ...] = ()  # in a text that seems to be in another language: words that are not one known token


def unknown_words(text: str, tokens: TokenizedText, example: Example | None = None) -> UnknownWords:
    """Return the out-of-vocabulary words of a text.

    If `example` is given, the text is readable only if the words of the example's pronoun and candidates are known. The
    result then also lists the words in `foreign` if the text seems to be in a language other than those of the
    vocabulary. This is so under three conditions: `seems_english_or_chinese` is false, the pronoun is not an English or
    Chinese third-person pronoun, and more than half of the words are split or unknown (more than a third if the pronoun
    is one of them).
    """
    extents: dict[int, Span] = {}
    split: set[int] = set()
    for number, (start, end) in zip(tokens.words, tokens.spans, strict=True):
        if start < end:
            if number in extents:
                split.add(number)
            extents[number] = (extents[number][0] if number in extents else start, end)
    spans = [*extents.values(), *(span for span in tokens.unread if not overlapping([*extents.values()], span))]
    words = [span for span in spans if any(map(str.isalnum, text[slice(*span)]))]  # punctuation marks are no words
    unknown = [span for span in words if overlapping(tokens.unread, span)]
    is_named = any(overlapping(unknown, span) for span in (example.spans if example else ()))
    foreign: list[Span] = []
    if example is not None and not third_person_pronouns(text[slice(*example.pronoun)]):
        in_pieces = {extents[number] for number in split}
        foreign = [span for span in words if span in in_pieces or span in unknown]
        most = 3 if overlapping(foreign, example.pronoun) else 2
        if most * len(foreign) <= len(words) or seems_english_or_chinese(text):
            foreign = []
    return UnknownWords(
        words=tuple(dict.fromkeys(text[slice(*span)] for span in sorted(unknown))),
        is_readable=not is_named and 3 * len(unknown) <= len(words),
        foreign=tuple(dict.fromkeys(text[slice(*span)] for span in sorted(foreign))),
    )


def unread_mentions(tokenize: Callable[[str], TokenizedText], examples: Sequence[Example]) -> UnreadMentions | None:
    """Return the out-of-vocabulary parts of the pronouns and candidates in `examples`; None if there are none."""
    unread_of = {text: tokenize(text).unread for text in {example.text for example in examples}}
    words: dict[str, None] = {}
    items = 0
    for example in examples:
        parts = [
            example.text[slice(*unread)] for unread in unread_of[example.text] if overlapping(example.spans, unread)
        ]
        items += bool(parts)
        words.update(dict.fromkeys(parts))
    return UnreadMentions(items, len(examples), tuple(words)) if items else None

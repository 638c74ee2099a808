"""Pronoun questions for language models: scores of candidates in place of the pronoun.

A masked language model reads the sentence with the pronoun masked, by as many masks as a candidate has tokens, and
scores the candidate there: the mean of its tokens' log-probabilities (Kocijan et al. 2019, section 3). A decoder reads
the sentence, then a prompt that the candidate completes, and scores it alike. T tokens of the item, S of a reading.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.causal.language_models.model import LanguageModel
from anaphora.base.errors import UserError
from anaphora.data.example import Example, Span
from anaphora.data.tokens.tokenizer import TokenizedText

PROMPTS = {"en": ' The word "{pronoun}" refers to ', "zh": "这里的“{pronoun}”指的是"}
"""What a decoder reads behind the sentence, by language; the candidate stands behind it."""
_DETERMINERS = frozenset(
    (
        *("the", "a", "an", "this", "that", "these", "those", "my", "your", "his", "her", "its", "our", "their"),
        *("some", "every", "each", "no", "both", "one", "two"),
    )
)
"""English words that begin a mention and have a capital at the beginning of a sentence alone."""


class Target(NamedTuple):
    """A candidate's tokens: the positions at which they are predicted, and their ids."""

    candidate: int
    positions: tuple[int, ...]
    ids: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Reading:
    """A text that the model reads to score some candidates of an item.

    Attributes:
        item: its number.
        tokens: S tokens.
        places: for each token of the item, the corresponding tokens here.
        targets: the scored candidates.
    """

    item: int
    tokens: TokenizedText
    places: tuple[tuple[int, ...], ...]
    targets: tuple[Target, ...]

    def shares(self) -> NDArray[np.float32]:
        """Return the distribution of each item token's weight over the tokens here: (T, S), rows sum to 1."""
        shares = np.zeros((len(self.places), len(self.tokens.ids)), dtype=np.float32)
        for token, places in enumerate(self.places):
            shares[token, list(places)] = 1 / len(places)
        return shares


@dataclass(frozen=True, eq=False)
class Question:
    """An item with all texts that the model reads about it.

    Attributes:
        example: the item.
        tokens: T tokens whose maps are used; for a masked language model the pronoun's are masks.
        readings: each candidate is in one of them.
    """

    example: Example
    tokens: TokenizedText
    readings: tuple[Reading, ...]


def answerable_questions(model: LanguageModel, examples: Sequence[Example]) -> list[Question]:
    """Return the items that a model can answer, in their order.

    Left out are items whose text with the answer does not fit the model or is cut into other tokens and, where the
    pronoun is masked, those whose cue is the pronoun: without it the item has no answer.
    """
    pronouns: defaultdict[str, set[str]] = defaultdict(set)
    for example in examples:
        pronouns[example.minimal_pair].add(_pronoun(example))
    questions: list[Question] = []
    for example in examples:
        own = model.tokenize(example.text)
        pronoun = own.covering(example.pronoun)
        is_cue = bool(example.minimal_pair) and len(pronouns[example.minimal_pair]) > 1
        is_cue |= example.factors.get("cue", "").lower() == _pronoun(example)
        if not pronoun or (is_cue and not model.is_decoder):
            continue
        own = _without_end(own) if model.is_decoder else _masked(model, own, pronoun)
        readings = _readings(model, example, own, pronoun, len(questions))
        if readings is not None:
            questions.append(Question(example, own, readings))
    return questions


def _readings(
    model: LanguageModel, example: Example, tokens: TokenizedText, pronoun: Sequence[int], item: int
) -> tuple[Reading, ...] | None:
    """Return one text per candidate, or one for all candidates of as many masks; None if a text does not fit."""
    readings: dict[tuple[int, ...], Reading] = {}
    for candidate in range(len(example.candidates)):
        text, span = _completed(example, candidate) if model.is_decoder else _filled(example, candidate)
        try:
            whole = model.tokenize(text)
        except UserError:  # the sentence fits, but is too long with the answer
            return None
        covering = whole.covering(span)
        ids = tuple(whole.ids[token] for token in covering)
        if model.is_decoder:
            if whole.ids[: len(tokens.ids)] != tokens.ids:
                return None
            places: list[tuple[int, ...]] = [(token,) for token in range(len(tokens.ids))]
            target = Target(candidate, tuple(token - 1 for token in covering), ids)
        else:
            whole = _masked(model, whole, covering)
            first, behind = pronoun[0], len(tokens.ids) - pronoun[-1] - 1
            same_end = whole.ids[len(whole.ids) - behind :] == tokens.ids[len(tokens.ids) - behind :]
            if covering[0] != first or whole.ids[:first] != tokens.ids[:first] or not same_end:
                return None
            if len(whole.ids) != first + len(covering) + behind:
                return None
            places = list(_mask_places(len(tokens.ids), pronoun, covering))
            target = Target(candidate, tuple(covering), ids)
        before = readings.get(whole.ids)
        targets = (*before.targets, target) if before else (target,)
        readings[whole.ids] = Reading(item, whole, tuple(places), targets)
    return tuple(readings.values())


def _mask_places(tokens: int, pronoun: Sequence[int], masks: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for token in range(tokens):
        if token < pronoun[0]:
            yield (token,)
        elif token > pronoun[-1]:
            yield (token + len(masks) - len(pronoun),)
        else:
            yield (masks[token - pronoun[0]],) if len(masks) == len(pronoun) else tuple(masks)


def _completed(example: Example, candidate: int) -> tuple[str, Span]:
    """Return the sentence, the prompt and a candidate after it, and the candidate's span."""
    start, end = example.pronoun
    prompt = example.text + PROMPTS[example.language].format(pronoun=example.text[start:end])
    words = _inside_a_sentence(example.words(candidate), example.language)
    return prompt + words, (len(prompt), len(prompt) + len(words))


def _filled(example: Example, candidate: int) -> tuple[str, Span]:
    """Return the sentence with a candidate in place of the pronoun, and the candidate's span."""
    start, end = example.pronoun
    words = _inside_a_sentence(example.words(candidate), example.language)
    if example.text[start].isupper():
        words = words[0].upper() + words[1:]
    return example.text[:start] + words + example.text[end:], (start, start + len(words))


def _pronoun(example: Example) -> str:
    start, end = example.pronoun
    return example.text[start:end].lower()


def _inside_a_sentence(words: str, language: str) -> str:
    """Return a mention without a capital letter that is due only to the start of a sentence."""
    if language == "en" and words.split()[0].lower() in _DETERMINERS:
        return words[0].lower() + words[1:]
    return words


def _masked(model: LanguageModel, tokens: TokenizedText, places: Sequence[int]) -> TokenizedText:
    ids = list(tokens.ids)
    for place in places:
        ids[place] = model.mask
    return TokenizedText(tuple(ids), tokens.spans, tokens.words)


def _without_end(tokens: TokenizedText) -> TokenizedText:
    """Return the tokens without the special tokens after the text, so that a decoder's prompt can follow."""
    last = max(token for token, (start, end) in enumerate(tokens.spans) if start < end) + 1
    return TokenizedText(tokens.ids[:last], tokens.spans[:last], tokens.words[:last])

"""Similarity of a sentence to the training sentences of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anaphora.api import OpenRun
from anaphora.data.example import Example, Span
from anaphora.data.tokens.tokenizer import TokenizedText
from anaphora.runs.items import corpus_of

_CANDIDATE, _PRONOUN, _NOTHING = -1, -2, -3
"""Ids in a masked sentence for a candidate, for the pronoun, and for padding."""


@dataclass(frozen=True, eq=False)
class TrainingText:
    """Training sentences of a run in one language.

    Attributes:
        tokens: ids of the tokens that occur.
        masked: (N, T) token ids of the different sentences, with candidates and pronoun masked, padded at the end.
        lengths: (N,) number of tokens of each sentence.
        first: (N,) share of each sentence's occurrences in which the first mention is the antecedent.
    """

    tokens: frozenset[int]
    masked: NDArray[np.int32]
    lengths: NDArray[np.int64]
    first: NDArray[np.float64]

    def nearest(self, sentence: Sequence[int]) -> tuple[float, float]:
        """Return the nearness of the nearest sentences, and the share in which the first mention is the antecedent.

        Nearness is 1 - edits / words of the longer sentence, and so 1 for a training sentence. An edit inserts, deletes
        or replaces one word (Levenshtein distance).
        """
        columns = self.masked.T
        edits = np.repeat(np.arange(len(columns) + 1, dtype=np.int16)[:, None], len(self.masked), axis=1)  # (T + 1, N)
        for position, word in enumerate(sentence, start=1):
            kept_or_replaced = edits[:-1] + (columns != word)
            edits[1:] = np.minimum(kept_or_replaced, edits[1:] + 1)
            edits[0] = position
            for column in range(1, len(edits)):
                np.minimum(edits[column], edits[column - 1] + 1, out=edits[column])
        fewest = edits[self.lengths, np.arange(len(self.lengths))]
        nearness = 1 - fewest / np.maximum(self.lengths, len(sentence))
        return float(nearness.max()), float(self.first[nearness == nearness.max()].mean())


_TRAINING: dict[str, TrainingText] = {}


def training_text(run: OpenRun, language: str) -> TrainingText:
    """Return the training sentences of a run in one language, cached for runs with the same data."""
    name = f"{language} {run.run.config.data} {run.run.config.vocabulary}"
    if name not in _TRAINING:
        shown = [each for each in corpus_of(run.run).examples("train") if each.language == language]
        texts = run.run.tokenizer.encode_batch([each.text for each in shown])
        meant: dict[tuple[int, ...], list[bool]] = {}
        for each, tokens in zip(shown, texts, strict=True):
            meant.setdefault(tuple(masked(each, tokens)), []).append(means_first(each))
        sentences = sorted(meant)
        lengths = np.array([len(sentence) for sentence in sentences])
        filled = np.full((len(sentences), lengths.max()), _NOTHING, dtype=np.int32)
        for number, sentence in enumerate(sentences):
            filled[number, : len(sentence)] = sentence
        first = np.array([np.mean(meant[sentence]) for sentence in sentences])
        _TRAINING[name] = TrainingText(frozenset(one for text in texts for one in text.ids), filled, lengths, first)
    return _TRAINING[name]


def means_first(example: Example) -> bool:
    """Return whether the first mention in the text is the antecedent."""
    first = min(range(len(example.candidates)), key=lambda number: example.candidates[number][0])
    return first in example.antecedents


def masked(example: Example, tokens: TokenizedText) -> list[int]:
    """Return a sentence's token ids, with each candidate and the pronoun replaced by one mask."""
    mentions = [span for spans in example.candidates for span in spans]
    numbers: list[int] = []
    for number, span in zip(tokens.ids, tokens.spans, strict=True):
        if span == (0, 0):
            continue
        mask = _CANDIDATE if any(overlap(span, one) for one in mentions) else None
        mask = _PRONOUN if overlap(span, example.pronoun) else mask
        if mask is None or not numbers or numbers[-1] != mask:
            numbers.append(number if mask is None else mask)
    return numbers


def overlap(one: Span, other: Span) -> bool:
    """Return whether two spans share a character."""
    return one[0] < other[1] and other[0] < one[1]

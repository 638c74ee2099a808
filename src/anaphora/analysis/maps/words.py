"""Conversion of attention maps over tokens to maps over words, as in Clark et al. 2019, section 4.1.

Weights are summed over a word's tokens as keys and averaged over them as queries, so that the sum of a row stays the
same. Axes are L (layers), H (heads), T (tokens), W (words) and M (candidates).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anaphora.data.example import Example, Span, overlapping

if TYPE_CHECKING:
    from anaphora.analysis.maps.record import AttentionRecord

SPECIAL = "[special]"
"""Label of a special token whose name is unknown; its span is (0, 0)."""


@dataclass(frozen=True, eq=False)
class WordRow:
    """Attention rows of the pronoun over the words of its sentence."""

    words: tuple[str, ...]  # the W words as written in the text, and special tokens by name, such as [CLS]
    spans: tuple[Span, ...]  # character spans of the words; (0, 0) marks a special token
    weights: NDArray[np.float32]  # attention rows over words, (L, H, W), each with the same sum as over tokens


def attending_layers(weights: NDArray[np.float32]) -> list[int]:
    """Return the indices of the layers with a weight above 0 in `weights`, (L, ...); other layers have no attention."""
    return [number for number, layer in enumerate(weights) if layer.any()]


def word_weights(record: AttentionRecord) -> WordRow:
    """Sum a record's attention weights over the tokens of each word; each special token has a column of its own."""
    columns = word_columns(record.words)
    spans = word_spans(record.spans, columns)
    labels = word_labels(record.example.text, spans, record.special)
    return WordRow(labels, tuple(spans), record.weights @ _membership_matrix(columns, record.weights))


def word_spans(spans: Sequence[Span], columns: Sequence[int]) -> list[Span]:
    """Return the character span of each column of a word map; (0, 0) for a special token.

    `spans` and `columns` hold the span and the column (`word_columns`) of each token.
    """
    merged: list[Span] = [(0, 0)] * (max(columns, default=-1) + 1)
    for column, (start, end) in zip(columns, spans, strict=True):
        if start < end:
            left, right = merged[column]
            merged[column] = (min(left, start), max(right, end)) if right else (start, end)
    return merged


def word_labels(text: str, spans: Sequence[Span], special: Sequence[str]) -> tuple[str, ...]:
    """Return the text of each span; empty spans are labelled with the names in `special`, in order, then `SPECIAL`."""
    names = iter(special)
    return tuple(text[start:end] if start < end else next(names, SPECIAL) for start, end in spans)


def word_roles(example: Example, words: Sequence[Span]) -> tuple[list[int], list[list[int]], list[list[int]]]:
    """Return the word indices of the pronoun, of each antecedent, and of each other candidate."""
    pronoun = overlapping(words, example.pronoun)
    named = [[word for span in spans for word in overlapping(words, span)] for spans in example.candidates]
    antecedents = [words for index, words in enumerate(named) if index in example.antecedents]
    distractors = [words for index, words in enumerate(named) if index not in example.antecedents]
    return pronoun, antecedents, distractors


def word_map(weights: NDArray[np.float32], words: Sequence[int]) -> NDArray[np.float32]:
    """Convert maps over tokens to maps over words: sum over a word's tokens as keys, mean over its tokens as queries.

    Args:
        weights: attention maps, (L, H, T, T), queries before keys.
        words: word indices of the T tokens; -1 marks a special token, which keeps its own row and column.

    Returns:
        (L, H, W, W), in the order of `word_weights`.

    Raises:
        ValueError: `weights` has another shape.
    """
    if weights.ndim != 4 or weights.shape[2:] != (len(words), len(words)):
        raise ValueError(
            f"weights must be (L, H, {len(words)}, {len(words)}) for {len(words)} words, not {weights.shape}"
        )
    belongs = _membership_matrix(word_columns(words), weights)
    return np.asarray((belongs / belongs.sum(axis=0)).T @ (weights @ belongs))


def mention_mass(record: AttentionRecord) -> NDArray[np.float32]:
    """Return the pronoun's attention weight on each candidate, summed over its mentions: (L, H, M).

    A token of several mentions counts once. The weight on a token that overlaps two candidates is divided between them
    in proportion to the overlap in characters.
    """
    listed = [(*span, index) for index, spans in enumerate(record.example.candidates) for span in spans]
    spans, tokens = np.array(listed, dtype=np.int64), np.array(record.spans, dtype=np.int64).reshape(-1, 2)
    shares = token_shares(tokens, np.zeros(len(spans), np.int64), np.full(len(spans), len(tokens)), spans)
    matrix = np.zeros((len(tokens), len(record.example.candidates)), dtype=np.float32)
    matrix[shares.token, shares.mention] = shares.share
    return np.asarray(record.weights @ matrix)


class TokenShares(NamedTuple):
    """Sparse matrix (tokens, mentions) with the share of each token that belongs to each mention.

    Entries are sorted by mention, then by token.
    """

    token: NDArray[np.int64]  # row of each matrix entry
    mention: NDArray[np.int64]  # column of each matrix entry
    share: NDArray[np.float64]  # value of each matrix entry; a token's shares sum to 1


def token_shares(
    tokens: NDArray[np.int64], first: NDArray[np.int64], count: NDArray[np.int64], spans: NDArray[np.int64]
) -> TokenShares:
    """Divide tokens between the mentions that overlap them, for many concatenated sentences at once.

    A token's shares are proportional to the overlap in characters and sum to 1.

    Args:
        tokens: character spans of all K tokens, (K, 2).
        first, count: index of the first token and number of tokens in each span's sentence, (S,).
        spans: start, end and mention index of each of S spans, (S, 3); a mention may have more than one span.
    """
    total = int(count.sum())
    row = np.repeat(np.arange(len(spans)), count)
    token = np.arange(total) + np.repeat(first - (np.cumsum(count) - count), count)
    overlap = np.minimum(tokens[token, 1], spans[row, 1]) - np.maximum(tokens[token, 0], spans[row, 0])
    hit = np.flatnonzero(overlap > 0)
    # One entry per token and mention, even if the token touches two spans of the mention.
    keys, entry = np.unique(spans[row[hit], 2] * len(tokens) + token[hit], return_inverse=True)
    summed = np.bincount(entry, weights=overlap[hit], minlength=len(keys))
    mention, touched = np.divmod(keys, max(len(tokens), 1))
    token_totals = np.bincount(touched, weights=summed, minlength=len(tokens))
    return TokenShares(touched, mention, summed / token_totals[touched])


def word_columns(words: Sequence[int]) -> list[int]:
    """Return each token's column in a word map, whose columns are words and special tokens in order of occurrence.

    `words` holds the word index of each token; -1 marks a special token.
    """
    columns: dict[int, int] = {}
    # Each special token has a key of its own, so that special tokens do not merge.
    return [
        columns.setdefault(word if word >= 0 else -1 - position, len(columns)) for position, word in enumerate(words)
    ]


def word_tokens(words: Sequence[int]) -> list[list[int]]:
    """Return the token indices of each column of a word map (`word_columns`)."""
    columns = word_columns(words)
    tokens: list[list[int]] = [[] for _ in range(max(columns, default=-1) + 1)]
    for position, column in enumerate(columns):
        tokens[column].append(position)
    return tokens


def _membership_matrix(columns: Sequence[int], like: NDArray[np.float32]) -> NDArray[np.float32]:
    belongs = np.zeros((len(columns), max(columns, default=-1) + 1), dtype=like.dtype)
    belongs[np.arange(len(columns)), columns] = 1
    return belongs

"""Merging of tokens to words and mentions: weights are summed over attended and averaged over attending tokens.

L layers, H heads, T tokens, W words, M mentions. The rule of Clark et al. 2019, section 4.1: rows keep their sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from anaphora.analysis.maps.record import AttentionRecord
    from anaphora.data.example import Span

SPECIAL = "[special]"
"""The label of a token that stands for no text, where nobody said its name; its span is (0, 0)."""


@dataclass(frozen=True, eq=False)
class WordRow:
    """The pronoun's attention over the words of its sentence.

    Attributes:
        words: W words as the text writes them; a special token by its name, such as [CLS].
        spans: W character spans; (0, 0) for a special token.
        weights: (L, H, W), each row with the sum it had over tokens.
    """

    words: tuple[str, ...]
    spans: tuple[Span, ...]
    weights: NDArray[np.float32]


def attending_layers(weights: NDArray[np.float32]) -> list[int]:
    """Return the numbers of the layers that have attention: in the others all weights, (L, ...), are 0."""
    return [number for number, layer in enumerate(weights) if layer.any()]


def word_weights(record: AttentionRecord) -> WordRow:
    """Return a record's rows with the tokens of each word summed; special tokens stay columns of their own."""
    columns = word_columns(record.words)
    spans: list[Span] = [(0, 0)] * (max(columns) + 1)
    for column, (start, end) in zip(columns, record.spans, strict=True):
        if start < end:
            left, right = spans[column]
            spans[column] = (min(left, start), max(right, end)) if right else (start, end)
    labels = word_labels(record.example.text, spans, record.special)
    return WordRow(labels, tuple(spans), record.weights @ _membership_matrix(columns, record.weights))


def word_labels(text: str, spans: Sequence[Span], special: Sequence[str]) -> tuple[str, ...]:
    """Return words or tokens as written in the text; special ones by name in order, or `SPECIAL` without a name."""
    names = iter(special)
    return tuple(text[start:end] if start < end else next(names, SPECIAL) for start, end in spans)


def word_map(weights: NDArray[np.float32], words: Sequence[int]) -> NDArray[np.float32]:
    """Return a whole map with tokens merged to words: the sum over attended tokens, the mean over attending ones.

    Args:
        weights: (L, H, T, T), attending token first.
        words: T word numbers; -1 for a special token, which stays a row and a column of its own.

    Returns:
        (L, H, W, W), in the order of `word_weights`.
    """
    if weights.ndim != 4 or weights.shape[2:] != (len(words), len(words)):
        raise ValueError(
            f"weights must be (L, H, {len(words)}, {len(words)}) for {len(words)} words, not {weights.shape}"
        )
    belongs = _membership_matrix(word_columns(words), weights)
    merged: NDArray[np.float32] = (belongs / belongs.sum(axis=0)).T @ (weights @ belongs)
    return merged


def mention_mass(record: AttentionRecord) -> NDArray[np.float32]:
    """Return the weight on each candidate: (L, H, M), summed over the tokens of all its mentions, each token once.

    A token that covers part of two candidates is shared between them by overlap in characters.
    """
    mass: NDArray[np.float32] = record.weights @ _share_matrix(record).astype(np.float32)
    return mass


class TokenShares(NamedTuple):
    """The tokens of each mention as a sparse matrix, ordered by mention and then by token.

    Attributes:
        token, mention: the row and the column of each entry.
        share: the part of the token that belongs to the mention, in (0, 1]; a token's shares sum to 1.
    """

    token: NDArray[np.int64]
    mention: NDArray[np.int64]
    share: NDArray[np.float64]


def token_shares(
    tokens: NDArray[np.int64], first: NDArray[np.int64], count: NDArray[np.int64], spans: NDArray[np.int64]
) -> TokenShares:
    """Return the shares of mentions in the tokens of many concatenated sentences.

    Args:
        tokens: (K, 2) character spans of all tokens.
        first: (S,) for each mention span its sentence's first token.
        count: (S,) and the number of tokens there.
        spans: (S, 3) start, end and mention of each span; spans of one mention share its number.
    """
    total = int(count.sum())
    row = np.repeat(np.arange(len(spans)), count)
    token = np.arange(total) + np.repeat(first - (np.cumsum(count) - count), count)
    overlap = np.minimum(tokens[token, 1], spans[row, 1]) - np.maximum(tokens[token, 0], spans[row, 0])
    hit = np.flatnonzero(overlap > 0)
    # One entry a pair, however many spans of the mention the token touches: it counts once.
    keys, entry = np.unique(spans[row[hit], 2] * len(tokens) + token[hit], return_inverse=True)
    summed = np.bincount(entry, weights=overlap[hit], minlength=len(keys))
    mention, touched = np.divmod(keys, max(len(tokens), 1))
    token_totals = np.bincount(touched, weights=summed, minlength=len(tokens))
    return TokenShares(touched, mention, summed / token_totals[touched])


def _share_matrix(record: AttentionRecord) -> NDArray[np.float64]:
    listed = [(*span, index) for index, spans in enumerate(record.example.candidates) for span in spans]
    spans, tokens = np.array(listed, dtype=np.int64), np.array(record.spans, dtype=np.int64).reshape(-1, 2)
    shares = token_shares(tokens, np.zeros(len(spans), np.int64), np.full(len(spans), len(tokens)), spans)
    matrix = np.zeros((len(tokens), len(record.example.candidates)))
    matrix[shares.token, shares.mention] = shares.share
    return matrix


def word_columns(words: Sequence[int]) -> list[int]:
    """Return the column of every token: words and special tokens numbered in the order in which they first appear."""
    columns: dict[int, int] = {}
    # A special token's key is unique to it, so that no two of them merge.
    return [
        columns.setdefault(word if word >= 0 else -1 - position, len(columns)) for position, word in enumerate(words)
    ]


def word_tokens(words: Sequence[int]) -> list[list[int]]:
    """Return the tokens of every column of `word_columns`."""
    columns = word_columns(words)
    tokens: list[list[int]] = [[] for _ in range(max(columns, default=-1) + 1)]
    for position, column in enumerate(columns):
        tokens[column].append(position)
    return tokens


def _membership_matrix(columns: Sequence[int], like: NDArray[np.float32]) -> NDArray[np.float32]:
    belongs = np.zeros((len(columns), max(columns, default=-1) + 1), dtype=like.dtype)
    belongs[np.arange(len(columns)), columns] = 1
    return belongs

"""Chunks of texts that fit the model's length, with the words whose attention is extracted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from anaphora.base.errors import UserError
from anaphora.data.batches.encoded import EncodedSplit, Indices, RaggedArray
from anaphora.data.batches.texts import chunk_bounds
from anaphora.data.example import Span
from anaphora.data.own_sentence import occurrences_in_any_case
from anaphora.data.tokens.tokenizer import TokenizedText, Tokenizer


@dataclass(frozen=True)
class QueriedChunk:
    """Chunk of a text with its query words.

    Attributes:
        text: index of the text.
        tokens: tokens of the chunk, with special tokens at its ends; spans are characters of the whole text.
        queries: character spans of the Q query words.
        query_tokens: indices of the tokens of each query word in the chunk.
    """

    text: int
    tokens: TokenizedText
    queries: tuple[Span, ...]
    query_tokens: tuple[tuple[int, ...], ...]

    @property
    def weights(self) -> int:
        """Return the number of attention weights per head in the rows of the query words: Q * T."""
        return len(self.queries) * len(self.tokens.ids)


class EncodedChunks(EncodedSplit):
    """Chunks as flat arrays; `queries` are the positions of the tokens of all query words.

    Attributes:
        query_words: index of each query token's word among the chunk's query words.
        word_counts: (N,) number of query words of each chunk.
    """

    query_words: RaggedArray
    word_counts: Indices

    def __init__(self, chunks: Sequence[QueriedChunk], vocabulary: int) -> None:
        self.examples = []
        self.tokens = [chunk.tokens for chunk in chunks]
        self.vocabulary = vocabulary
        self.ids = RaggedArray([chunk.tokens.ids for chunk in chunks])
        self.words = RaggedArray([chunk.tokens.words for chunk in chunks])
        self.queries = RaggedArray([[token for word in chunk.query_tokens for token in word] for chunk in chunks])
        self.query_words = RaggedArray(
            [[number for number, word in enumerate(chunk.query_tokens) for _ in word] for chunk in chunks]
        )
        self.word_counts = np.array([len(chunk.queries) for chunk in chunks], dtype=np.int64)
        self.candidates = self.names = RaggedArray([()] * len(chunks))
        self.max_candidates = 1
        self.present = self.gold = np.zeros((len(chunks), 1), dtype=bool)


def queried_chunks(
    texts: Sequence[str], tokenizer: Tokenizer, longest: int, words: Sequence[str] = ()
) -> list[QueriedChunk]:
    """Split texts into chunks, and return those with at least one query word.

    Args:
        texts: the texts.
        tokenizer: tokenizer of the model.
        longest: largest number of tokens of a chunk, special tokens included; texts are split between words if
            possible.
        words: words and phrases whose occurrences are the queries; () for every word. A phrase across two chunks is a
            query in the first one.

    Raises:
        UserError: `longest` leaves no room for a token besides the special tokens.
    """
    least = sum(map(len, tokenizer.surrounding_tokens())) + 1
    if longest < least:
        raise UserError(f"chunk_tokens ({longest}) must be at least {least}, special tokens included")
    chunks = []
    for number, (text, tokens) in enumerate(zip(texts, tokenizer.encode_batch(texts), strict=True)):
        mentions = sorted({span for word in words for span in occurrences_in_any_case(word, text)})
        for chunk in _chunks(tokens, tokenizer, longest):
            named = _mentions(chunk, mentions) if words else _every_word(chunk)
            mentions = [span for span in mentions if span not in named]
            if named:
                chunks.append(QueriedChunk(number, chunk, tuple(named), tuple(named.values())))
    return chunks


def _chunks(tokens: TokenizedText, tokenizer: Tokenizer, longest: int) -> Iterator[TokenizedText]:
    """Split the tokens of a text into chunks, and surround each with special tokens."""
    opening, closing = tokenizer.surrounding_tokens()
    special = len(opening) + len(closing)
    inner = range(len(opening), len(tokens.ids) - len(closing))
    words = np.array([tokens.words[token] for token in inner], dtype=np.int64)
    starts = np.flatnonzero(np.diff(words, prepend=-2))
    for first, last in chunk_bounds(starts, len(inner), longest - special):
        kept = inner[first:last]
        yield TokenizedText(
            (*opening, *(tokens.ids[token] for token in kept), *closing),
            (*[(0, 0)] * len(opening), *(tokens.spans[token] for token in kept), *[(0, 0)] * len(closing)),
            (*[-1] * len(opening), *(tokens.words[token] for token in kept), *[-1] * len(closing)),
        )


def _every_word(chunk: TokenizedText) -> dict[Span, tuple[int, ...]]:
    """Return the token indices of every word of a chunk, by character span."""
    tokens: dict[int, list[int]] = {}
    for token, word in enumerate(chunk.words):
        if word >= 0:
            tokens.setdefault(word, []).append(token)
    return {(chunk.spans[own[0]][0], chunk.spans[own[-1]][1]): tuple(own) for own in tokens.values()}


def _mentions(chunk: TokenizedText, mentions: Sequence[Span]) -> dict[Span, tuple[int, ...]]:
    """Return the token indices of each mention that overlaps a chunk, by character span."""
    covering = {span: tuple(chunk.covering(span)) for span in mentions}
    return {span: tokens for span, tokens in covering.items() if tokens}

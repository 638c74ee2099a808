"""Texts in chunks of the model's length, with the attending words of each."""

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
    """A chunk of a text with its attending words.

    Attributes:
        text: number of its text.
        tokens: of the chunk, special ones at its ends; spans are characters of the whole text.
        queries: the characters of each of Q words that attend.
        query_tokens: the tokens of each.
    """

    text: int
    tokens: TokenizedText
    queries: tuple[Span, ...]
    query_tokens: tuple[tuple[int, ...], ...]

    @property
    def weights(self) -> int:
        """Return the number of weights per head in the rows of these words."""
        return len(self.queries) * len(self.tokens.ids)


class EncodedChunks(EncodedSplit):
    """Chunks as flat arrays. Their queries are the tokens of all words that attend, word by word.

    Attributes:
        query_words: which of its chunk's words each query token belongs to.
        word_counts: how many words attend in each chunk.
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
    """Return the chunks of some texts in which a word attends.

    Args:
        texts: numbered from 0.
        tokenizer: of the model.
        longest: tokens of a chunk at most, special ones included; texts are cut between words where they can be.
        words: those that attend, wherever they stand; without them every word does. A mention of several words that is
            cut attends where it begins.

    Raises:
        UserError: a chunk has room for special tokens alone.
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
    """Split a text's tokens into chunks, each between special tokens."""
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
    """Return the tokens of every word of a chunk, by its characters."""
    tokens: dict[int, list[int]] = {}
    for token, word in enumerate(chunk.words):
        if word >= 0:
            tokens.setdefault(word, []).append(token)
    return {(chunk.spans[own[0]][0], chunk.spans[own[-1]][1]): tuple(own) for own in tokens.values()}


def _mentions(chunk: TokenizedText, mentions: Sequence[Span]) -> dict[Span, tuple[int, ...]]:
    """Return the tokens of those mentions that begin in a chunk."""
    covering = {span: tuple(chunk.covering(span)) for span in mentions}
    return {span: tokens for span, tokens in covering.items() if tokens}

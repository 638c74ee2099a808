"""Texts encoded in chunks, for pre-training, classification, or extraction of attention weights.

Chunks have at most `longest` tokens, including the special tokens at both ends, and end between words if possible.
Since tokenizing ten million words takes long, token ids are cached on disk. Those of random tokenizers
(`Tokenizer.is_random`) are not cached.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anaphora.base.checks import one_among
from anaphora.base.code import code_digest
from anaphora.base.errors import UserError
from anaphora.base.files import check_writable
from anaphora.base.tensors import read_arrays, write_arrays
from anaphora.data.batches.encoded import EncodedSplit, Indices, RaggedArray
from anaphora.data.example import Span
from anaphora.data.own_sentence import occurrences_in_any_case
from anaphora.data.store import cache_advice, cache_folder
from anaphora.data.text import Text
from anaphora.data.tokens.tokenizer import TokenizedText, Tokenizer, independent_segments

_SEGMENTS_PER_CALL = 20_000  # the backend needs a kilobyte for each


class EncodedTexts(EncodedSplit):
    """N chunks of the texts of a split as flat arrays.

    In classification, labels take the place of candidates: `present` is true for all labels, `gold` for the label of
    the text, and `texts` has the text of each chunk.
    """

    def __init__(
        self, texts: Sequence[Text], tokenizer: Tokenizer, longest: int, labels: Sequence[str] = (), cached: bool = True
    ) -> None:
        """Encode the texts of a split as chunks.

        Args:
            longest: largest number of tokens of a chunk, special tokens included.
            labels: allowed labels if texts are to be classified; only the first chunk of each text is then encoded.
                Without labels, all chunks of each text are encoded.
            cached: whether to use the cache of tokens. Tokens of a random tokenizer (`Tokenizer.is_random`), which may
                differ each time, are never cached.

        Raises:
            UserError: a text has none of the labels, `longest` leaves no room for a token besides the special tokens,
                or the cache is damaged or cannot be written.
        """
        _check_room("batching.row_tokens", longest, tokenizer, " for texts")
        self.examples, self.tokens = [], []
        self.texts, self.labels = list(texts) if labels else [], list(labels)
        self.vocabulary = tokenizer.size
        tokens_of = _stored_chunks if cached and not tokenizer.is_random else _encode
        stored = tokens_of([text.text for text in texts], tokenizer, longest, bool(labels))
        lengths = stored["lengths"].astype(np.int64)
        self.ids, self.words = (RaggedArray(stored[name], lengths) for name in ("ids", "words"))
        self.queries = self.candidates = self.names = RaggedArray.of_lists([()] * len(self))
        self.max_candidates = max(1, len(labels))
        self.share_nothing()
        self.present = np.full((len(self), self.max_candidates), bool(labels))
        self.gold = np.zeros_like(self.present)
        for number, text in enumerate(texts if labels else ()):
            if text.label not in labels:
                raise UserError(f"label: {text.label!r} of {text.text[:60]!r} must be {one_among(labels)}")
            self.gold[number, labels.index(text.label)] = True

    def subsample(self, most: int) -> None:
        """Keep at most `most` evenly spaced chunks."""
        if len(self) <= most:
            return
        kept = np.arange(most) * len(self) // most
        lengths = self.ids.lengths[kept]
        self.ids, self.words = (RaggedArray(each.take(kept)[0], lengths) for each in (self.ids, self.words))
        self.queries = self.candidates = self.names = RaggedArray.of_lists([()] * most)
        self.share_nothing()
        self.present, self.gold = self.present[kept], self.gold[kept]
        self.texts = [self.texts[number] for number in kept] if self.texts else []


def _check_room(setting: str, longest: int, tokenizer: Tokenizer, purpose: str = "") -> None:
    least = sum(map(len, tokenizer.surrounding_tokens())) + 1
    if longest < least:
        raise UserError(f"{setting} ({longest}) must be at least {least}{purpose}, special tokens included")


def _stored_chunks(
    texts: Sequence[str], tokenizer: Tokenizer, longest: int, first_only: bool
) -> Mapping[str, NDArray[Any]]:
    """Return the result of `_encode` from the cache; encode the texts first if the cache lacks it."""
    path = cache_folder() / f"tokens-{_fingerprint(texts, tokenizer, longest, first_only)}.safetensors"
    try:
        stored, _ = read_arrays(path)
    except FileNotFoundError:
        with cache_advice():
            check_writable(path)
        stored = _encode(texts, tokenizer, longest, first_only)
        with cache_advice():
            write_arrays(path, stored)
    except UserError as error:
        reason = str(error).removeprefix(f"{path}: ")
        raise UserError(
            f"{path}: the cache is damaged ({reason}); delete this file and it will be made again"
        ) from None
    return stored


def _fingerprint(texts: Sequence[str], tokenizer: Tokenizer, longest: int, first_only: bool) -> str:
    total = hashlib.sha256(f"{longest} {first_only} {tokenizer.dumps()}".encode())
    total.update(code_digest(__name__).encode())
    for text in texts:
        total.update(f"{len(text)} {text}".encode("utf-8", "surrogatepass"))
    return total.hexdigest()[:16]


def _encode(texts: Sequence[str], tokenizer: Tokenizer, longest: int, first_only: bool) -> dict[str, NDArray[np.int32]]:
    """Encode texts; return `ids` and `words` of all chunks, concatenated, and `lengths` of the chunks."""
    opening, closing = (np.array(special, np.int32) for special in tokenizer.surrounding_tokens())
    alone = tokenizer.splits_at_blanks() and not tokenizer.is_random  # a random tokenizer draws once per text
    numbers: dict[str, int] = {}
    segments_of = []
    for text in texts:
        segments = independent_segments(text) if alone else [text]
        segments_of.append(segments)
        numbers.update(zip([new for new in dict.fromkeys(segments) if new not in numbers], count(len(numbers))))
    ids, begins = _tokenize_each(list(numbers), tokenizer)
    every_id, every_word, lengths = [], [], []
    for segments in segments_of:
        chosen = np.fromiter(map(numbers.__getitem__, segments), dtype=np.int64, count=len(segments))
        tokens, starts = ids.take(chosen)[0], begins.take(chosen)[0]
        words = np.where(starts < 0, -1, np.cumsum(starts == 1, dtype=np.int32) - 1).astype(np.int32)
        special = len(opening) + len(closing)
        for first, last in chunk_bounds(np.flatnonzero(starts), len(tokens), longest - special):
            every_id += [opening, tokens[first:last], closing]
            every_word += [np.full_like(opening, -1), words[first:last], np.full_like(closing, -1)]
            lengths.append(last - first + special)
            if first_only:
                break
    nothing = np.empty(0, np.int32)
    return {
        "ids": np.concatenate([nothing, *every_id]),
        "words": np.concatenate([nothing, *every_word]),
        "lengths": np.array(lengths, dtype=np.int32),
    }


def _tokenize_each(different: list[str], tokenizer: Tokenizer) -> tuple[RaggedArray, RaggedArray]:
    """Tokenize each string; return token ids, and whether each token begins a word.

    The latter is 1 if the token begins a word, 0 inside a word, and -1 if the token is in no word.
    """
    parts = []
    opening, closing = map(len, tokenizer.surrounding_tokens())
    for begin in range(0, len(different), _SEGMENTS_PER_CALL):
        encoded = tokenizer.encode_batch(different[begin : begin + _SEGMENTS_PER_CALL])
        inner = [slice(opening, len(tokens.ids) - closing) for tokens in encoded]
        ids = RaggedArray.of_lists([tokens.ids[part] for tokens, part in zip(encoded, inner, strict=True)])
        words = RaggedArray.of_lists([tokens.words[part] for tokens, part in zip(encoded, inner, strict=True)])
        parts.append((ids, words))
    ids, words = (RaggedArray.concatenated([part[number] for part in parts]) for number in range(2))
    word = words.flat
    begins = np.ones(len(word), dtype=np.int8)
    begins[1:] = word[1:] != word[:-1]
    begins[ids.starts[ids.lengths > 0]] = 1  # the last word of the previous segment may have the same index
    begins[word < 0] = -1
    return ids, RaggedArray(begins, ids.lengths)


def chunk_bounds(starts: Indices, total: int, longest: int) -> Iterator[tuple[int, int]]:
    """Yield the token span of each chunk, end exclusive.

    If there are no tokens, one empty span is yielded.

    Args:
        starts: ascending indices of the tokens that begin a word, where chunks are split if possible.
        total, longest: number of tokens of the text, and maximum number of tokens of a chunk.
    """
    first = 0
    while total - first > longest:
        # A word that the end of a chunk would cut is moved to the next chunk, unless it begins the chunk.
        begin = int(starts[np.searchsorted(starts, first + longest, side="right") - 1])
        last = begin if begin > first else first + longest
        yield first, last
        first = last
    yield first, total


@dataclass(frozen=True)
class QueriedChunk:
    """Chunk of a text with Q query words, whose attention weights to all tokens of the chunk are read."""

    text: int  # index of the text
    tokens: TokenizedText  # with special tokens at the ends; spans are characters of the whole text
    queries: tuple[Span, ...]  # character spans of the query words
    query_tokens: tuple[tuple[int, ...], ...]  # indices of the tokens of each query word in the chunk

    @property
    def weights(self) -> int:
        """Return the number of attention weights per head from all query words to all tokens of the chunk."""
        return len(self.queries) * len(self.tokens.ids)


class EncodedChunks(EncodedSplit):
    """N chunks as flat arrays; `queries` has the positions of the tokens of all query words.

    Attributes:
        query_words: for each token in `queries`, the index of its word among the chunk's query words.
        word_counts: (N,) number of query words of each chunk.
    """

    query_words: RaggedArray
    word_counts: Indices

    def __init__(self, chunks: Sequence[QueriedChunk], vocabulary: int) -> None:
        self.examples = []
        self.tokens = [chunk.tokens for chunk in chunks]
        self.vocabulary = vocabulary
        self.ids = RaggedArray.of_lists([chunk.tokens.ids for chunk in chunks])
        self.words = RaggedArray.of_lists([chunk.tokens.words for chunk in chunks])
        self.queries = RaggedArray.of_lists(
            [[token for word in chunk.query_tokens for token in word] for chunk in chunks]
        )
        self.query_words = RaggedArray.of_lists(
            [[number for number, word in enumerate(chunk.query_tokens) for _ in word] for chunk in chunks]
        )
        self.word_counts = np.array([len(chunk.queries) for chunk in chunks], dtype=np.int64)
        self.candidates = self.names = RaggedArray.of_lists([()] * len(chunks))
        self.max_candidates = 1
        self.share_nothing()
        self.present = self.gold = np.zeros((len(chunks), 1), dtype=bool)


def queried_chunks(
    texts: Sequence[str], tokenizer: Tokenizer, longest: int, words: Sequence[str] = ()
) -> list[QueriedChunk]:
    """Split texts into chunks, and return those with at least one query word.

    Args:
        longest: largest number of tokens of a chunk, special tokens included.
        words: words and phrases whose occurrences are the queries; () for every word. A phrase that extends over
            two chunks is a query in the first chunk only.

    Raises:
        UserError: `longest` leaves no room for a token besides the special tokens.
    """
    _check_room("chunk_tokens", longest, tokenizer)
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
    before, after = len(opening), len(closing)
    words = np.array(tokens.words[before : len(tokens.words) - after], dtype=np.int64)
    starts = np.flatnonzero(np.diff(words, prepend=-2))
    for first, last in chunk_bounds(starts, len(words), longest - before - after):
        kept = slice(before + first, before + last)
        yield TokenizedText(
            (*opening, *tokens.ids[kept], *closing),
            ((0, 0),) * before + tokens.spans[kept] + ((0, 0),) * after,
            (-1,) * before + tokens.words[kept] + (-1,) * after,
        )


def _every_word(chunk: TokenizedText) -> dict[Span, tuple[int, ...]]:
    """Return the token indices of every word of a chunk, keyed by character span."""
    tokens: dict[int, list[int]] = {}
    for token, word in enumerate(chunk.words):
        if word >= 0:
            tokens.setdefault(word, []).append(token)
    return {(chunk.spans[own[0]][0], chunk.spans[own[-1]][1]): tuple(own) for own in tokens.values()}


def _mentions(chunk: TokenizedText, mentions: Sequence[Span]) -> dict[Span, tuple[int, ...]]:
    """Return the token indices of each mention that overlaps a chunk, keyed by character span."""
    covering = {span: tuple(chunk.covering(span)) for span in mentions}
    return {span: tokens for span, tokens in covering.items() if tokens}

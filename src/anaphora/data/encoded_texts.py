"""Texts as flat arrays of tokens: all of a text in pieces to pre-train on, or its beginning with its label.

N pieces, at most `longest` tokens each, special ones at the ends; cut between words where they can be. What is encoded
is kept in the cache, since ten million words take a while.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import chain, count
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from anaphora.data.batch import Encoded, Indices, Ragged
from anaphora.data.store import cache
from anaphora.data.text import Text
from anaphora.data.tokenizer import Tokenizer, stretches
from anaphora.errors import UserError
from anaphora.files import whole

_AT_ONCE = 20_000  # stretches: the backend holds a kilobyte for each


class EncodedTexts(Encoded):
    """A split of texts as flat arrays; nothing is asked at any token.

    Where labels are given they stand in the candidates' place, the same for every text, and the text's own is gold;
    `texts` then holds the text of every piece.
    """

    def __init__(self, texts: Sequence[Text], tokenizer: Tokenizer, longest: int, labels: Sequence[str] = ()) -> None:
        """Encode a split.

        Args:
            texts: the split.
            tokenizer: cuts them into tokens.
            longest: tokens of a piece at most, special ones included.
            labels: those that a text may have; without them every piece of a text counts, else the first one.

        Raises:
            UserError: a text has none of the labels, or a piece has room for special tokens alone.
        """
        least = sum(map(len, tokenizer.frame())) + 1
        if longest < least:
            raise UserError(
                f"batching.row_tokens ({longest}) must be at least {least} for texts, special tokens included"
            )
        self.examples, self.tokens = [], []
        self.texts, self.labels = list(texts) if labels else [], list(labels)
        self.vocabulary = tokenizer.size
        self.ids, self.words = _pieces([one.text for one in texts], tokenizer, longest, bool(labels))
        nothing = Ragged.joined(np.empty(0, dtype=np.int64), np.zeros(len(self), dtype=np.int64))
        self.queries = self.candidates = self.names = nothing
        self.most = max(1, len(labels))
        self.present = np.full((len(self), self.most), bool(labels))
        self.gold = np.zeros_like(self.present)
        for number, one in enumerate(texts if labels else ()):
            if one.label not in labels:
                raise UserError(f"label: {one.label!r} of {one.text[:60]!r} must be one of {', '.join(labels)}")
            self.gold[number, labels.index(one.label)] = True

    def keep(self, most: int) -> None:
        """Keep at most so many pieces, evenly spread."""
        if len(self) <= most:
            return
        kept = np.arange(most) * len(self) // most
        lengths = self.ids.lengths[kept]
        self.ids, self.words = (Ragged.joined(one.take(kept)[0], lengths) for one in (self.ids, self.words))
        self.queries = self.candidates = self.names = Ragged.joined(np.empty(0, np.int64), np.zeros(most, np.int64))
        self.present, self.gold = self.present[kept], self.gold[kept]
        self.texts = [self.texts[place] for place in kept] if self.texts else []


def _pieces(texts: Sequence[str], tokenizer: Tokenizer, longest: int, first_only: bool) -> tuple[Ragged, Ragged]:
    """Token ids and word numbers of every piece, from the cache or put there."""
    path = cache() / f"tokens-{_fingerprint(texts, tokenizer, longest, first_only)}.safetensors"
    try:
        stored = load_file(path)
    except FileNotFoundError:
        stored = _encode(texts, tokenizer, longest, first_only)
        try:
            with whole(path) as draft:
                save_file(stored, draft)
        except OSError as error:
            raise UserError(f"{path}: cannot write the cache ({error.strerror}); set ANAPHORA_CACHE") from None
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path}: the cache is damaged ({error}); delete this file") from None
    lengths = stored["lengths"].astype(np.int64)
    return Ragged.joined(stored["ids"], lengths), Ragged.joined(stored["words"], lengths)


def _fingerprint(texts: Sequence[str], tokenizer: Tokenizer, longest: int, first_only: bool) -> str:
    total = hashlib.sha256(f"{longest} {first_only} {tokenizer.dumps()}".encode())
    here = Path(__file__)
    for path in (here, here.parent / "tokenizer.py", here.parent / "words.py"):
        total.update(path.read_bytes())
    for text in texts:
        total.update(f"{len(text)} {text}".encode("utf-8", "surrogatepass"))
    return total.hexdigest()[:16]


def _encode(texts: Sequence[str], tokenizer: Tokenizer, longest: int, first_only: bool) -> dict[str, NDArray[np.int32]]:
    """Arrays as they are stored: ids and words of all pieces one after the other, and the pieces' lengths."""
    opening, closing = (np.array(each, np.int32) for each in tokenizer.frame())
    alone = tokenizer.cuts_stretches_alone()
    numbers: dict[str, int] = {}
    listed = []
    for text in texts:
        found = stretches(text) if alone else [text]
        listed.append(found)
        numbers.update(zip([one for one in dict.fromkeys(found) if one not in numbers], count(len(numbers))))
    ids, begins = _cut_each(list(numbers), tokenizer)
    every_id, every_word, lengths = [], [], []
    for found in listed:
        places = np.fromiter(map(numbers.__getitem__, found), dtype=np.int64, count=len(found))
        tokens, starts = ids.take(places)[0], begins.take(places)[0]
        words = np.where(starts < 0, -1, np.cumsum(starts == 1, dtype=np.int32) - 1).astype(np.int32)
        special = len(opening) + len(closing)
        for first, last in _bounds(np.flatnonzero(starts), len(tokens), longest - special):
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


def _cut_each(different: list[str], tokenizer: Tokenizer) -> tuple[Ragged, Ragged]:
    """The token ids of each stretch; for each token 1 where a word begins, 0 inside one and -1 where there is none."""
    ids: list[NDArray[np.int32]] = []
    words: list[NDArray[np.int32]] = []
    lengths: list[int] = []
    opening, closing = map(len, tokenizer.frame())
    for begin in range(0, len(different), _AT_ONCE):
        found = [
            (one.ids[opening : len(one.ids) - closing], one.words[opening : len(one.ids) - closing])
            for one in tokenizer.encode_batch(different[begin : begin + _AT_ONCE])
        ]
        ids.append(np.fromiter(chain.from_iterable(each for each, _ in found), dtype=np.int32))
        words.append(np.fromiter(chain.from_iterable(each for _, each in found), dtype=np.int32))
        lengths += [len(each) for each, _ in found]
    sizes = np.array(lengths, dtype=np.int64)
    flat, word = (np.concatenate([np.empty(0, np.int32), *parts]) for parts in (ids, words))
    begins = np.ones(len(flat), dtype=np.int8)
    begins[1:] = word[1:] != word[:-1]
    firsts = (sizes.cumsum() - sizes)[sizes > 0]
    begins[firsts] = 1  # the word before may have had the same number
    begins[word < 0] = -1
    return Ragged.joined(flat, sizes), Ragged.joined(begins, sizes)


def _bounds(starts: Indices, total: int, longest: int) -> Iterator[tuple[int, int]]:
    """First and past-the-last token of each piece; at least one, which is empty where there is no token."""
    first = 0
    while total - first > longest:
        # The last word that begins in the piece stands whole in the next one, unless it fills a piece alone.
        begin = int(starts[np.searchsorted(starts, first + longest, side="right") - 1])
        last = begin if begin > first else first + longest
        yield first, last
        first = last
    yield first, total

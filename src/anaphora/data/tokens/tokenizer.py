"""Tokenizers that return token ids with the character span and word index of every token."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Encoding, decoders, models, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend

from anaphora.base.errors import UserError
from anaphora.base.language import CHINESE_RANGES, WORD_PATTERN
from anaphora.data.example import Span, overlapping
from anaphora.data.tokens.words import word_numbers
from anaphora.settings.vocabulary import CLS, MASK, SPECIAL_TOKENS, UNKNOWN

BETWEEN_TEXTS = " "  # separator of the two texts of a pair when they are joined into one string
_BLANK_MARK = "\u2581"  # SentencePiece's symbol for a space
_BLANK_BYTE = "Ġ"  # symbol of byte-level tokenizers for a space
_NONCHARACTER = "\U0010ffff"  # a code point that is no character, and therefore in no vocabulary
_PLAIN_TEXT = re.compile("[ -Za-z\u4e00-\u9fff，。！？；：、]*")
"""Text whose characters, apart from spaces, are visible and composed, and in which no special token is written."""
_SEGMENTS_KEPT = 8192
_SEGMENT = re.compile(rf"[{CHINESE_RANGES}]+|[^ \t\n\r\u00a0\u3000{CHINESE_RANGES}]+")


def independent_segments(text: str) -> list[str]:
    """Split a text into segments: sequences of Chinese characters, and other text between spaces.

    If `Tokenizer.splits_at_blanks`, segments can be tokenized independently. Equal segments, which are frequent in long
    texts, then need to be tokenized only once.
    """
    return _SEGMENT.findall(text)


def readable_backend(path: Path, content: str, text: str = f"a {_NONCHARACTER}") -> Backend:
    """Build a backend from the content of a tokenizer file, and try it on a text.

    Raises:
        UserError: the content is no tokenizer, or one that gives the text no tokens or unknown ones.
    """
    try:
        backend = Backend.from_str(content)
        encoding = backend.encode(text)
    except BaseException as error:  # a broken file makes the backend raise a bare Exception, or panic
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise UserError(f"{path}: not a readable tokenizer ({error})") from None
    names = [backend.id_to_token(number) for number in encoding.ids]
    if None in names or len(names) != len(encoding.tokens):
        raise UserError(f"{path}: not a readable tokenizer (a text gets tokens that are not in its vocabulary)")
    if text and all(encoding.special_tokens_mask):
        raise UserError(f"{path}: not a readable tokenizer (a text gets no tokens)")
    return backend


@dataclass(frozen=True)
class TokenizedText:
    """Tokens of a text, with the special tokens around it, such as [CLS] and [SEP].

    All tokens without visible characters, such as spaces, count as special tokens.
    """

    ids: tuple[int, ...]  # (T,)
    spans: tuple[Span, ...]  # (T,) characters without spaces at the ends, end exclusive; (0, 0) for a special token
    words: tuple[int, ...]  # (T,) word indices; -1 for a special token
    special: tuple[str, ...] = ()  # names of the special tokens in the vocabulary, in text order; () if unknown
    unread: tuple[Span, ...] = ()  # characters outside the vocabulary, for which the model gets [UNK] or no token
    types: tuple[int, ...] = ()  # (T,) token type ids; () if there are none, or for a single text if all are 0

    def covering(self, span: tuple[int, int]) -> list[int]:
        """Return the indices of the tokens that share a character with a span."""
        return overlapping(self.spans, span)


class Tokenizer:
    """Tokenizer with a vocabulary learned by `anaphora.data.tokens.vocabulary`, or imported by `read_tokenizer`.

    The subwords of a word share a word index; each Chinese token is a word. Unless `keeps_segments` is False, a cache
    of a few megabytes has the tokens of frequent segments (`independent_segments`).
    """

    is_random: bool = False  # whether the same text may get different tokens each time

    def __init__(self, backend: Backend, *, keeps_segments: bool = True) -> None:
        if backend.post_processor is None:
            opening = [(SPECIAL_TOKENS[CLS], CLS)]
            backend.post_processor = processors.TemplateProcessing(f"{SPECIAL_TOKENS[CLS]} $A", special_tokens=opening)
        # [MASK] is the only special token that a text may contain; unregistered, it would be split at its brackets.
        backend.add_special_tokens([AddedToken(SPECIAL_TOKENS[MASK], special=True, normalized=False)])
        self._backend = backend
        self._blanks, self._check_pieces = BlankPieces(backend), PieceCheck(backend)
        self._splits_into_words = backend.decoder is None and WORD_PATTERN in repr(backend.pre_tokenizer)
        self._keeps_segments = keeps_segments and self._splits_into_words and backend.encode("").ids == [CLS]
        self._segments: dict[str, list[tuple[int, int, int, bool]]] = {}  # unlike an lru_cache, it can be pickled

    @classmethod
    def load(cls, path: Path) -> Tokenizer:
        """Load a tokenizer from a file written with `dumps`.

        Raises:
            UserError: the file is missing or damaged, or its vocabulary does not begin with `SPECIAL_TOKENS`.
        """
        try:
            backend = readable_backend(path, path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise UserError(f"{path}: there is no tokenizer here") from None
        except UnicodeDecodeError as error:
            raise UserError(f"{path}: not a readable tokenizer ({error})") from None
        if [backend.id_to_token(number) for number in range(len(SPECIAL_TOKENS))] != list(SPECIAL_TOKENS):
            raise UserError(f"{path}: the vocabulary must begin with {' '.join(SPECIAL_TOKENS)}")
        return cls(backend)

    def dumps(self) -> str:
        """Serialize the tokenizer to JSON."""
        return self._backend.to_str(pretty=False)

    @property
    def size(self) -> int:
        return self._backend.get_vocab_size()

    def token(self, number: int) -> str:
        return str(self._backend.id_to_token(number))

    def surrounding_tokens(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the ids of the special tokens before every text ([CLS]), and of those after it ([SEP] or none)."""
        encoding = self._backend.encode("a")
        special = encoding.special_tokens_mask
        opening = special.index(0)
        closing = len(special) - special[::-1].index(0)
        return tuple(encoding.ids[:opening]), tuple(encoding.ids[closing:])

    def splits_at_blanks(self) -> bool:
        """Return whether each of the `independent_segments` of a text has the same tokens alone as in the text."""
        splitter = json.dumps(json.loads(self.dumps())["pre_tokenizer"])
        return "ByteLevel" not in splitter and "Metaspace" not in splitter

    def encode(self, text: str) -> TokenizedText:
        """Tokenize one text."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[TokenizedText]:
        """Tokenize many texts.

        Raises:
            UserError: the tokenizer of a published model drops an unknown character, and wrong offsets result; or its
                vocabulary lacks the token for unknown characters.
        """
        others = [text for text in texts if not (self._keeps_segments and _PLAIN_TEXT.fullmatch(text))]
        try:
            encodings = dict(zip(others, self._backend.encode_batch(others), strict=True))
        except Exception as error:  # the backend raises bare Exception
            raise UserError(
                f"a text has characters that the tokenizer does not know ({error}); its vocabulary needs a "
                "token for them"
            ) from None
        return [self._tokenized(text, encodings[text]) if text in encodings else self._joined(text) for text in texts]

    def _tokenized(self, text: str, encoding: Encoding) -> TokenizedText:
        if self._splits_into_words and _PLAIN_TEXT.fullmatch(text):
            return self._plain(text, encoding)
        offsets, special, tokens = encoding.offsets, encoding.special_tokens_mask, encoding.tokens
        self._check_pieces(text, tokens, offsets)
        if not unicodedata.is_normalized("NFC", text):
            offsets = _with_composed_characters(text, offsets, special)
        spans = tuple(
            (0, 0) if is_special or token in self._blanks else _without_blanks(text, *span)
            for token, is_special, span in zip(tokens, special, offsets, strict=True)
        )
        ids = tuple(encoding.ids)
        names = tuple(self.token(number) for number, (start, end) in zip(ids, spans, strict=True) if start == end)
        unread = unread_spans(text, ids, spans, (UNKNOWN,))
        return TokenizedText(ids, spans, word_numbers(text, spans), names, unread)

    def _plain(self, text: str, encoding: Encoding) -> TokenizedText:
        """Return the result of `_tokenized` for a text that matches `_PLAIN_TEXT`, five times as fast.

        It is faster because the `tokenizers` library determines the word boundaries.
        """
        ids, spans = tuple(encoding.ids), tuple(encoding.offsets)
        words: list[int] = []
        current, last = -1, None
        for word, (start, end) in zip(encoding.word_ids, spans, strict=True):
            if start < end and (word != last or text[start] > "\x7f"):  # each Chinese token is a word
                current, last = current + 1, word
            words.append(current if start < end else -1)
        names = tuple([self.token(number) for number, (start, end) in zip(ids, spans, strict=True) if start == end])
        unread = unread_spans(text, ids, spans, (UNKNOWN,)) if UNKNOWN in ids else ()
        return TokenizedText(ids, spans, tuple(words), names, unread)

    def _joined(self, text: str) -> TokenizedText:
        """Return the result of `_tokenized` for a text that matches `_PLAIN_TEXT`, from cached tokens of its segments.

        Segments that are not in the cache are tokenized and added.
        """
        ids, spans, words, word = [CLS], [(0, 0)], [-1], -1
        for match in _SEGMENT.finditer(text):
            offset = match.start()
            for number, start, end, begins_word in self._segments.get(match[0]) or self._encode_segment(match[0]):
                word += begins_word
                ids.append(number)
                spans.append((start + offset, end + offset))
                words.append(word)
        unread = unread_spans(text, ids, spans, (UNKNOWN,)) if UNKNOWN in ids else ()
        return TokenizedText(tuple(ids), tuple(spans), tuple(words), (SPECIAL_TOKENS[CLS],), unread)

    def _encode_segment(self, segment: str) -> list[tuple[int, int, int, bool]]:
        """Return (token id, start, end, whether it begins a word) for each token of a segment, and cache the result.

        Start and end are characters of the segment, which must match `_PLAIN_TEXT`.
        """
        tokens = self._plain(segment, self._backend.encode(segment))
        begins = [word != before for before, word in pairwise(tokens.words)]  # without [CLS]
        each = zip(tokens.ids[1:], tokens.spans[1:], begins, strict=True)
        encoded = [(number, start, end, begins_word) for number, (start, end), begins_word in each]
        if len(self._segments) == _SEGMENTS_KEPT:
            self._segments.clear()
        self._segments[segment] = encoded
        return encoded


class BlankPieces:
    """Set of the tokens of a vocabulary that represent only spaces, for tests such as `token in BlankPieces(backend)`.

    A tokenizer that inserts a space before a text may report a token for this space at the offset of the first
    character.
    """

    def __init__(self, backend: Backend) -> None:
        self._decoder: Any = backend.decoder
        if self._decoder is None and "ByteLevel" in repr(backend.pre_tokenizer):
            self._decoder = decoders.ByteLevel()
        self._known: dict[str, bool] = {}

    def __contains__(self, token: str) -> bool:
        if token not in self._known:
            decoded = token.replace(_BLANK_MARK, " ") if self._decoder is None else self._decoder.decode([token])
            self._known[token] = not decoded.strip()
        return self._known[token]


class PieceCheck:
    """Check that each token matches the characters in the span that a tokenizer reports for it.

    A BPE tokenizer without an unknown token drops unknown characters and bytes, and the `tokenizers` library then
    reports wrong offsets for the other tokens of the same word.
    """

    def __init__(self, backend: Backend) -> None:
        model: Any = backend.model
        self._backend: Any = backend
        self._drops = isinstance(model, models.BPE) and model.unk_token is None and not _knows_every_byte(backend)
        self._added = {added.content for added in backend.get_added_tokens_decoder().values()}

    def __call__(self, text: str, tokens: Sequence[str], spans: Sequence[Span]) -> None:
        """Check T tokens of a text and their T spans, which may include spaces at the ends.

        Tokenizers that drop no characters are not checked.

        Raises:
            UserError: a token differs from the characters in its span.
        """
        if not self._drops:
            return
        for token, (start, end) in zip(tokens, spans, strict=True):
            if start < end and token not in self._added and self._letters(token) not in self._spelling(text[start:end]):
                raise UserError(
                    f"text ({text[:40]!r}): the tokenizer drops a character that it does not know and gives the token "
                    f"{token!r} the place of {text[start:end]!r}; its vocabulary needs a token for unknown characters"
                )

    def _letters(self, token: str) -> str:
        """Return the characters of a token without markers of its position in a word, such as "##" or "</w>"."""
        model = self._backend.model
        prefix, suffix = model.continuing_subword_prefix or "", model.end_of_word_suffix or ""
        return str(token.removeprefix(prefix).removesuffix(suffix).strip(_BLANK_MARK + _BLANK_BYTE))

    def _spelling(self, characters: str) -> str:
        """Return characters as tokens spell them: normalised, and in byte-level BPE with one symbol for each byte."""
        backend = self._backend
        if backend.normalizer is not None:
            characters = backend.normalizer.normalize_str(characters)
        if backend.pre_tokenizer is not None:
            characters = "".join(part for part, _ in backend.pre_tokenizer.pre_tokenize_str(characters))
        return characters


def unknown_ids(backend: Backend) -> frozenset[int]:
    """Return the id of a tokenizer's unknown token, such as [UNK], in a set; the set is empty if it has none."""
    try:
        tokens = backend.model.tokenize(_NONCHARACTER)
    except Exception:  # the backend raises bare Exception if its unknown token is missing
        return frozenset()
    return frozenset(token.id for token in tokens) if len(tokens) == 1 else frozenset()


def _knows_every_byte(backend: Backend) -> bool:
    """Return whether the vocabulary has a token for each of the 256 bytes, so that no character is unknown.

    These tokens are "<0x00>" to "<0xFF>" with byte fallback, and single symbols in byte-level BPE. Other tokenizers
    give False.
    """
    model: Any = backend.model
    if model.byte_fallback:
        every = [f"<0x{number:02X}>" for number in range(256)]
    elif "ByteLevel" in f"{backend.pre_tokenizer!r} {backend.normalizer!r}":
        every = pre_tokenizers.ByteLevel.alphabet()
    else:
        return False
    return all(backend.token_to_id(byte) is not None for byte in every)


def unread_spans(text: str, ids: Sequence[int], spans: Sequence[Span], unknown: Collection[int]) -> tuple[Span, ...]:
    """Return the spans of unknown tokens, and of letters and digits that no token covers, in text order.

    Args:
        ids, spans: ids and spans of T tokens; the span of a special token is empty.
        unknown: ids of the tokens that stand for unknown characters.
    """
    segments = [span for number, span in zip(ids, spans, strict=True) if number in unknown and span[0] < span[1]]
    covered = bytearray(len(text))
    for start, end in spans:
        covered[start:end] = b"\x01" * (end - start)
    if covered.count(0):
        segments += [
            (place, place + 1)
            for place, character in enumerate(text)
            if not covered[place] and unicodedata.category(character)[0] in "LN"
        ]
    return tuple(sorted(set(segments)))


def _without_blanks(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a span without the spaces at its ends, which byte-level tokens include; (0, 0) if nothing is left."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return (start, end) if start < end else (0, 0)


def _with_composed_characters(text: str, spans: list[tuple[int, int]], special: list[int]) -> list[tuple[int, int]]:
    """Extend token spans to include all code points of decomposed characters, such as a letter with combining accents.

    The spans that the `tokenizers` library reports cover only the first code point. Every other character except spaces
    is in a token, so the uncovered code points after a token belong to it.
    """
    composed = []
    following = len(text)
    for (start, end), is_special in zip(reversed(spans), reversed(special), strict=True):
        if not is_special:
            while end < following and not text[end].isspace():
                end += 1
            following = start
        composed.append((start, end))
    return composed[::-1]

"""Detection of space tokens, of wrong token offsets, and of characters outside a vocabulary."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from anaphora.base.errors import UserError
from anaphora.data.example import Span

_BLANK_MARK = "\u2581"
"""SentencePiece's symbol for a space."""
_BLANK_BYTE = "Ġ"
"""Symbol of byte-level tokenizers for a space."""
_NONCHARACTER = "\U0010ffff"
"""A code point that is no character, and therefore in no vocabulary."""


class BlankPieces:
    """Set of the tokens that represent only spaces, used as `token in BlankPieces(backend)`.

    A tokenizer that inserts a blank before a text may report a token for this blank at the offset of the text's first
    character.

    Args:
        backend: the tokenizer, whose decoder gives the text of a token.
    """

    def __init__(self, backend: Tokenizer) -> None:
        self._decoder: Any = backend.decoder
        if self._decoder is None and "ByteLevel" in repr(backend.pre_tokenizer):
            self._decoder = decoders.ByteLevel()
        self._known: dict[str, bool] = {}

    def __contains__(self, token: str) -> bool:
        known = self._known.get(token)
        if known is None:
            decoded = token.replace(_BLANK_MARK, " ") if self._decoder is None else self._decoder.decode([token])
            known = self._known[token] = not decoded.strip()
        return known


class PieceCheck:
    """Checker of token offsets, for tokenizers that report wrong ones: a token must match the characters in its span.

    A BPE vocabulary without an unknown token drops the characters and bytes that it does not know. The `tokenizers`
    library then reports wrong offsets for the other tokens of the same word.

    Args:
        backend: the tokenizer.
    """

    def __init__(self, backend: Tokenizer) -> None:
        model: Any = backend.model
        self._backend: Any = backend
        self._drops = isinstance(model, models.BPE) and model.unk_token is None and not _knows_every_byte(backend)
        self._added = {added.content for added in backend.get_added_tokens_decoder().values()}

    def __call__(self, text: str, tokens: Sequence[str], spans: Sequence[Span]) -> None:
        """Check the T tokens of a text against their T spans, which may include spaces.

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
        """Return the characters of a token without affixes that mark its position in a word."""
        model = self._backend.model
        prefix, suffix = model.continuing_subword_prefix or "", model.end_of_word_suffix or ""
        return str(token.removeprefix(prefix).removesuffix(suffix).strip(_BLANK_MARK + _BLANK_BYTE))

    def _spelling(self, characters: str) -> str:
        """Return characters as the vocabulary spells them, for instance with one letter for each byte."""
        backend = self._backend
        if backend.normalizer is not None:
            characters = backend.normalizer.normalize_str(characters)
        if backend.pre_tokenizer is not None:
            characters = "".join(part for part, _ in backend.pre_tokenizer.pre_tokenize_str(characters))
        return characters


def unknown_ids(backend: Tokenizer) -> frozenset[int]:
    """Return the id of the token that a tokenizer uses for unknown characters; an empty set if it has none."""
    try:
        tokens = backend.model.tokenize(_NONCHARACTER)
    except Exception:  # the backend raises bare Exception if its unknown token is missing
        return frozenset()
    return frozenset(token.id for token in tokens) if len(tokens) == 1 else frozenset()


def _knows_every_byte(backend: Tokenizer) -> bool:
    """Return whether the vocabulary has all bytes of UTF-8 in the form in which the tokenizer looks for them."""
    model: Any = backend.model
    if model.byte_fallback:
        every = [f"<0x{number:02X}>" for number in range(256)]
    elif "ByteLevel" in f"{backend.pre_tokenizer!r} {backend.normalizer!r}":
        every = pre_tokenizers.ByteLevel.alphabet()
    else:
        return False
    return all(backend.token_to_id(byte) is not None for byte in every)


def unread_spans(text: str, ids: Sequence[int], spans: Sequence[Span], unknown: Collection[int]) -> tuple[Span, ...]:
    """Return the spans of a text that are outside a vocabulary, in text order.

    Args:
        text: the text.
        ids: T token ids.
        spans: T character spans, empty for special tokens.
        unknown: ids of the unknown token.

    Returns:
        The spans of unknown tokens, and of letters and digits that no token covers.
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

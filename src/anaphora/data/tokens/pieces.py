"""Detection of blank tokens, of wrong token offsets, and of characters outside a vocabulary."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence
from typing import Any

from tokenizers import Tokenizer, decoders, models

from anaphora.base.errors import UserError
from anaphora.data.example import Span

_BLANK_MARK = "\u2581"
"""SentencePiece's symbol for a blank."""


class BlankPieces:
    """Set of the tokens that represent only blanks, used as `token in BlankPieces(backend)`.

    Needed because a tokenizer that inserts a blank before a text may report a token for this blank at the offset of
    the text's first character.

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
    """Check that tokens match the characters at their offsets, for tokenizers that report wrong offsets.

    A BPE vocabulary with neither an unknown token nor byte fallback drops unknown characters. The `tokenizers` library
    then reports wrong offsets for the following tokens of the same word.

    Args:
        backend: the tokenizer.
    """

    def __init__(self, backend: Tokenizer) -> None:
        model: Any = backend.model
        has_bytes = "ByteLevel" in f"{backend.pre_tokenizer!r} {backend.normalizer!r}"
        self._normalizer: Any = backend.normalizer
        self._model: Any = None
        if isinstance(model, models.BPE) and model.unk_token is None and not (model.byte_fallback or has_bytes):
            self._model = model

    def __call__(self, text: str, tokens: Sequence[str], spans: Sequence[Span]) -> None:
        """Check the T tokens of a text against their T spans.

        Raises:
            UserError: a token differs from the characters in its span.
        """
        if self._model is None:
            return
        for token, (start, end) in zip(tokens, spans, strict=True):
            written = text[start:end]
            if self._normalizer is not None:
                written = self._normalizer.normalize_str(written)
            if start < end and self._letters(token) not in written:
                raise UserError(
                    f"text ({text[:40]!r}): the tokenizer drops a character that it does not know and gives the token "
                    f"{token!r} the place of {text[start:end]!r}; its vocabulary needs a token for unknown characters"
                )

    def _letters(self, token: str) -> str:
        """Return the characters of a token without affixes that mark its position in a word."""
        prefix, suffix = self._model.continuing_subword_prefix or "", self._model.end_of_word_suffix or ""
        return token.removeprefix(prefix).removesuffix(suffix).strip(_BLANK_MARK)


def unread_stretches(
    text: str, ids: Sequence[int], spans: Sequence[Span], unknown: Collection[int]
) -> tuple[Span, ...]:
    """Return the spans of a text that are outside a vocabulary, in text order.

    Args:
        text: the text.
        ids: T token ids.
        spans: T character spans, empty for special tokens.
        unknown: ids of the unknown token.

    Returns:
        The spans of unknown tokens, and of letters and digits that no token covers.
    """
    stretches = [span for number, span in zip(ids, spans, strict=True) if number in unknown and span[0] < span[1]]
    covered = bytearray(len(text))
    for start, end in spans:
        covered[start:end] = b"\x01" * (end - start)
    if covered.count(0):
        stretches += [
            (place, place + 1)
            for place, character in enumerate(text)
            if not covered[place] and unicodedata.category(character)[0] in "LN"
        ]
    return tuple(sorted(set(stretches)))

"""Text -> token ids, with the character span and the word of every token."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers import AddedToken, Encoding, processors
from tokenizers import Tokenizer as Backend

from anaphora.base.errors import UserError
from anaphora.base.language import CHINESE_RANGES
from anaphora.base.special_tokens import CLS, MASK, SPECIAL_TOKENS, UNKNOWN
from anaphora.data.example import overlapping
from anaphora.data.tokens.pieces import BlankPieces, unread_stretches
from anaphora.data.tokens.words import word_numbers

BETWEEN_TEXTS = " "
"""What stands between the two texts of a pair, where they are one string."""
_STRETCH = re.compile(rf"[{CHINESE_RANGES}]+|[^ \t\n\r\u00a0\u3000{CHINESE_RANGES}]+")


def independent_stretches(text: str) -> list[str]:
    """Return the stretches of a text that are tokenized independently: runs of Chinese, and text between blanks.

    Long texts repeat them, so that each needs to be tokenized once.
    """
    return _STRETCH.findall(text)


@dataclass(frozen=True)
class TokenizedText:
    """A text as the encoder reads it; the first token is [CLS].

    A token without visible text is special: [CLS], the [SEP] with which some models end, a blank of its own.

    Attributes:
        ids: T vocabulary numbers.
        spans: T character spans without blanks at their ends, end exclusive; (0, 0) for a special token.
        words: T word numbers; -1 for a special token.
        special: what the vocabulary calls the special tokens, in their order; () if unknown.
        unread: the character spans that the vocabulary does not have; the model reads [UNK] there, or nothing.
        types: of a pair of texts, T numbers that tell the model which of them a token is of; () if it gets none.
    """

    ids: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    words: tuple[int, ...]
    special: tuple[str, ...] = ()
    unread: tuple[tuple[int, int], ...] = ()
    types: tuple[int, ...] = ()

    def covering(self, span: tuple[int, int]) -> list[int]:
        """Return the tokens that share a character with a span."""
        return overlapping(self.spans, span)


class Tokenizer:
    """Text -> words and subwords, English and Chinese in one; `anaphora.data.tokens.vocabulary` learns them.

    A Chinese token is a word of its own; the subwords of a blank-separated word share one.
    """

    def __init__(self, backend: Backend) -> None:
        if backend.post_processor is None:
            opening = [(SPECIAL_TOKENS[CLS], CLS)]
            backend.post_processor = processors.TemplateProcessing(f"{SPECIAL_TOKENS[CLS]} $A", special_tokens=opening)
        # Of the special tokens a text may write this one alone; without a word here it would be cut at its brackets.
        backend.add_special_tokens([AddedToken(SPECIAL_TOKENS[MASK], special=True, normalized=False)])
        self._backend = backend
        self._blanks = BlankPieces(backend)

    @classmethod
    def load(cls, path: Path) -> Tokenizer:
        """Read a stored tokenizer.

        Raises:
            UserError: the file is missing, broken or not one of ours.
        """
        try:
            backend = Backend.from_str(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise UserError(f"{path}: there is no tokenizer here") from None
        except Exception as error:  # the backend raises bare Exception for a broken file
            raise UserError(f"{path}: not a readable tokenizer ({error})") from None
        if [backend.id_to_token(number) for number in range(len(SPECIAL_TOKENS))] != list(SPECIAL_TOKENS):
            raise UserError(f"{path}: the vocabulary must begin with {' '.join(SPECIAL_TOKENS)}")
        return cls(backend)

    def dumps(self) -> str:
        """Return the tokenizer as JSON text."""
        return self._backend.to_str(pretty=False)

    @property
    def size(self) -> int:
        """Return the number of tokens."""
        return self._backend.get_vocab_size()

    def token(self, number: int) -> str:
        """Return the text of one token."""
        return str(self._backend.id_to_token(number))

    def surrounding_tokens(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the special tokens before and after every text: [CLS], and the [SEP] with which some models end."""
        encoding = self._backend.encode("a")
        special = encoding.special_tokens_mask
        opening = special.index(0)
        closing = len(special) - special[::-1].index(0)
        return tuple(encoding.ids[:opening]), tuple(encoding.ids[closing:])

    @property
    def is_random(self) -> bool:
        """Check whether the same text may be tokenized differently next time."""
        return False

    def splits_at_blanks(self) -> bool:
        """Check whether a stretch of text has the same tokens alone as in its text."""
        splitter = json.dumps(json.loads(self.dumps())["pre_tokenizer"])
        return "ByteLevel" not in splitter and "Metaspace" not in splitter

    def encode(self, text: str) -> TokenizedText:
        """Tokenize one text."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[TokenizedText]:
        """Tokenize many texts."""
        encodings = self._backend.encode_batch(list(texts))
        return [self._tokenized(text, encoding) for text, encoding in zip(texts, encodings, strict=True)]

    def _tokenized(self, text: str, encoding: Encoding) -> TokenizedText:
        offsets, special = encoding.offsets, encoding.special_tokens_mask
        if not unicodedata.is_normalized("NFC", text):
            offsets = _with_composed_characters(text, offsets, special)
        spans = tuple(
            (0, 0) if is_special or token in self._blanks else _without_blanks(text, *span)
            for token, is_special, span in zip(encoding.tokens, special, offsets, strict=True)
        )
        ids = tuple(encoding.ids)
        names = tuple(self.token(number) for number, (start, end) in zip(ids, spans, strict=True) if start == end)
        unread = unread_stretches(text, ids, spans, (UNKNOWN,))
        return TokenizedText(ids, spans, word_numbers(text, spans), names, unread)


def _without_blanks(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a span without blanks at its ends, as byte-level tokens begin with one; (0, 0) if nothing is left."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return (start, end) if start < end else (0, 0)


def _with_composed_characters(text: str, spans: list[tuple[int, int]], special: list[int]) -> list[tuple[int, int]]:
    """Extend spans to the end of a composed character: a letter with its marks, the parts of a syllable.

    The backend's span is the first of the composed characters alone. All else but blanks is in a token, so the
    uncovered characters behind it are the rest.
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

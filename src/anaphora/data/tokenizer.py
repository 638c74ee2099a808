"""Text -> token ids, with the character span and the word of every token."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Encoding, Regex, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend

from anaphora.data.words import CHINESE, PIECES, word_numbers
from anaphora.errors import UserError
from anaphora.specials import CLS, SPECIALS, UNKNOWN


@dataclass(frozen=True)
class Tokens:
    """A text as the encoder reads it; the first token is [CLS].

    A token that stands for no visible text is special: [CLS], the [SEP] with which some models end, a blank of its own.

    Attributes:
        ids: T vocabulary numbers.
        spans: T character spans without blanks at their ends, end exclusive; (0, 0) for a special token.
        words: T word numbers; -1 for a special token.
    """

    ids: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    words: tuple[int, ...]

    def covering(self, span: tuple[int, int]) -> list[int]:
        """The tokens that share a character with a span."""
        start, end = span
        return [place for place, (left, right) in enumerate(self.spans) if left < end and start < right]


class Tokenizer:
    """Words where the training text had them, their longest known pieces elsewhere; English and Chinese in one.

    A run of characters is cut into the fewest known pieces, a unigram model (Kudo 2018) with one price for all; what
    stays unknown is one [UNK]. A Chinese token is a word of its own; the pieces of a blank-separated word share one.
    """

    def __init__(self, backend: Backend) -> None:
        if backend.post_processor is None:
            opening = [(SPECIALS[CLS], CLS)]
            backend.post_processor = processors.TemplateProcessing(f"{SPECIALS[CLS]} $A", special_tokens=opening)
        self._backend = backend

    @classmethod
    def train(cls, texts: Iterable[str], words: Iterable[str] = (), min_count: int = 2) -> Tokenizer:
        """Build the vocabulary of a training split.

        Args:
            texts: the training texts.
            words: words known beforehand, such as the corpus's own Chinese segmentation.
            min_count: a word that occurs less often is cut into known pieces.
        """
        normalizer, splitter = _normalizer(), _splitter()
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(piece for piece, _ in splitter.pre_tokenize_str(normalizer.normalize_str(text)))
        is_chinese = re.compile(f"[{CHINESE}]")
        known = {piece for piece, count in counts.items() if count >= min_count and not is_chinese.match(piece)}
        known |= {normalizer.normalize_str(word) for word in words}
        characters = {character for piece in (*counts, *known) for character in piece}
        vocabulary = [*SPECIALS, *sorted((known | characters) - {"", *SPECIALS})]
        total = sum(counts.values()) + len(vocabulary)
        # Every token costs the same large amount, so the fewest pieces win; frequency only breaks ties.
        costs = [(piece, -100.0 + math.log((counts[piece] + 1) / total)) for piece in vocabulary]
        backend = Backend(models.Unigram(costs, unk_id=UNKNOWN, byte_fallback=False))
        backend.normalizer = normalizer
        backend.pre_tokenizer = splitter
        return cls(backend)

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
        if [backend.id_to_token(number) for number in range(len(SPECIALS))] != list(SPECIALS):
            raise UserError(f"{path}: the vocabulary must begin with {' '.join(SPECIALS)}")
        return cls(backend)

    def dumps(self) -> str:
        """The tokenizer as JSON text."""
        return self._backend.to_str(pretty=False)

    @property
    def size(self) -> int:
        """How many tokens there are."""
        return self._backend.get_vocab_size()

    def token(self, number: int) -> str:
        """The text of one token."""
        return str(self._backend.id_to_token(number))

    def encode(self, text: str) -> Tokens:
        """One text as tokens."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[Tokens]:
        """Many texts as tokens."""
        encodings = self._backend.encode_batch(list(texts))
        return [_tokens(text, encoding) for text, encoding in zip(texts, encodings, strict=True)]


def _tokens(text: str, encoding: Encoding) -> Tokens:
    spans = tuple(
        (0, 0) if special else _visible(text, *span)
        for special, span in zip(encoding.special_tokens_mask, encoding.offsets, strict=True)
    )
    return Tokens(tuple(encoding.ids), spans, word_numbers(text, spans))


def _visible(text: str, start: int, end: int) -> tuple[int, int]:
    """A span without blanks at its ends; (0, 0) where nothing is left. Byte-level tokens begin with a blank."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return (start, end) if start < end else (0, 0)


def _normalizer() -> normalizers.Normalizer:
    # Canonical composition only: compatibility forms would move character offsets of full-width punctuation.
    return normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])


def _splitter() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Split(Regex(PIECES), behavior="removed", invert=True)

"""Text -> token ids, with the character span and the word of every token."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Encoding, Regex, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Backend

from anaphora.errors import UserError
from anaphora.specials import CLS, SPECIALS, UNKNOWN

# A run of Chinese characters has no blanks: the model cuts it into the fewest known words.
_CHINESE = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_PIECES = rf"[{_CHINESE}]+|[^\W\d_{_CHINESE}]+(?:[’'-][^\W\d_{_CHINESE}]+)*|\d+|[^\w\s]|_"


@dataclass(frozen=True)
class Tokens:
    """A text as the encoder reads it; the first token is [CLS].

    Attributes:
        ids: T vocabulary numbers.
        spans: T character spans, end exclusive; (0, 0) for [CLS].
        words: T word numbers; -1 for [CLS].
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
        self._backend = backend
        self._chinese = re.compile(f"[{_CHINESE}]")

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
        is_chinese = re.compile(f"[{_CHINESE}]")
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
        encodings = self._backend.encode_batch(list(texts), add_special_tokens=False)
        return [self._tokens(text, encoding) for text, encoding in zip(texts, encodings, strict=True)]

    def _tokens(self, text: str, encoding: Encoding) -> Tokens:
        ids, spans, within = encoding.ids, encoding.offsets, encoding.word_ids
        words: list[int] = []
        previous = None
        for span, word in zip(spans, within, strict=True):
            starts = word != previous or self._chinese.match(text[span[0] : span[1]])
            words.append((words[-1] if words else -1) + (1 if starts else 0))
            previous = word
        return Tokens((CLS, *ids), ((0, 0), *spans), (-1, *words))


def _normalizer() -> normalizers.Normalizer:
    # Canonical composition only: compatibility forms would move character offsets of full-width punctuation.
    return normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])


def _splitter() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Split(Regex(_PIECES), behavior="removed", invert=True)

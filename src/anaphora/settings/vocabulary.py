"""Settings of the vocabulary, which consists of words, characters or learned subwords, and the special tokens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omegaconf import MISSING

from anaphora.base import checks
from anaphora.base.errors import UserError

if TYPE_CHECKING:
    from anaphora.data.tokens.tokenizer import Tokenizer

PADDING, UNKNOWN, CLS, MASK, NONE = range(5)
SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[MASK]", "[NONE]")
"""Special tokens at the start of every vocabulary, whatever its variant."""


@dataclass(kw_only=True)
class Vocabulary:
    """Settings of a vocabulary learned from the training split; each subclass that defines a `kind` is a variant."""

    kind: str = MISSING

    def build(self, texts: Iterable[str], words: Iterable[str] = ()) -> Tokenizer:
        """Learn the vocabulary from the training texts, and return its tokenizer.

        A word vocabulary also contains `words`, for instance Chinese words, which no spaces separate in the texts; the
        other vocabularies ignore them.
        """
        raise UserError(f"vocabulary.kind ({self.kind!r}) is not one that can be built")


@dataclass(kw_only=True)
class WordVocabulary(Vocabulary):
    """Whole words as tokens; rare words are split into known subwords, and Chinese text into known words."""

    kind: str = "word"
    min_count: int = 2  # words that occur less often are split into known subwords
    # Share of the rarer words that are split into subwords in each training text, as unknown words are. The model thus
    # learns these subwords. Above 0, the vocabulary has only words that occur in training texts.
    dropout: float = 0.0

    def __post_init__(self) -> None:
        checks.at_least("vocabulary.min_count", self.min_count, 1)
        checks.between("vocabulary.dropout", self.dropout, 0, 1)

    def build(self, texts: Iterable[str], words: Iterable[str] = ()) -> Tokenizer:
        from anaphora.data.tokens.vocabulary import word_vocabulary

        return word_vocabulary(texts, words, self.min_count, only_seen=self.dropout > 0)


@dataclass(kw_only=True)
class CharacterVocabulary(Vocabulary):
    """Single characters as tokens."""

    kind: str = "character"
    min_count: int = 2  # characters that occur less often are unknown

    def __post_init__(self) -> None:
        checks.at_least("vocabulary.min_count", self.min_count, 1)

    def build(self, texts: Iterable[str], words: Iterable[str] = ()) -> Tokenizer:
        from anaphora.data.tokens.vocabulary import character_vocabulary

        return character_vocabulary(texts, self.min_count)


@dataclass(kw_only=True)
class SubwordVocabulary(Vocabulary):
    """Settings of a subword vocabulary of at most `size` tokens; each subclass is a variant.

    The vocabulary contains the most frequent characters of the texts, but at most `size` / 2 of them.
    """

    size: int = 8000  # number of tokens, special tokens included; fewer if the texts yield fewer
    # Share of all characters of the texts that become tokens, the most frequent ones first (Kudo and Richardson 2018);
    # below 1, frequent words replace rare Chinese characters.
    coverage: float = 1.0

    def __post_init__(self) -> None:
        checks.between("vocabulary.size", self.size, 16, 10**7)
        if not 0 < self.coverage <= 1:
            raise ValueError(f"vocabulary.coverage ({self.coverage}) must be above 0 and at most 1")


@dataclass(kw_only=True)
class WordPiece(SubwordVocabulary):
    """WordPiece (Devlin et al. 2019): "##" marks a subword inside a word; every Chinese character is a token."""

    kind: str = "wordpiece"

    def build(self, texts: Iterable[str], words: Iterable[str] = ()) -> Tokenizer:
        from anaphora.data.tokens.vocabulary import wordpiece_vocabulary

        return wordpiece_vocabulary(texts, self.size, self.coverage)


@dataclass(kw_only=True)
class Bpe(SubwordVocabulary):
    """Byte-pair encoding (Sennrich et al. 2016) over characters; in Chinese, merges ignore word boundaries."""

    kind: str = "bpe"

    def build(self, texts: Iterable[str], words: Iterable[str] = ()) -> Tokenizer:
        from anaphora.data.tokens.vocabulary import bpe_vocabulary

        return bpe_vocabulary(texts, self.size, self.coverage)

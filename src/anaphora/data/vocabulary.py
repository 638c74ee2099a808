"""Learning a vocabulary from the training split: words, characters, or pieces of words.

Every kind cuts text into the same words, keeps the special tokens at 0 to 4 and gives spans in code points of the text
as it was written.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from tokenizers import Regex, models, normalizers, pre_tokenizers, trainers
from tokenizers import Tokenizer as Backend

from anaphora.data import settings
from anaphora.data.text import UNKNOWN_WORD
from anaphora.data.tokenizer import Tokenizer, stretches
from anaphora.data.words import CHINESE, PIECES
from anaphora.errors import UserError
from anaphora.parts import extensible
from anaphora.specials import SPECIALS, UNKNOWN

_UNKNOWN_TOKEN = SPECIALS[UNKNOWN]


@extensible(Tokenizer)
def build(chosen: settings.Vocabulary, texts: Iterable[str], words: Iterable[str] = ()) -> Tokenizer:
    """The vocabulary of a training split, as the settings ask for it.

    Args:
        chosen: its kind and size.
        texts: the training texts.
        words: words known beforehand, such as the corpus's own Chinese segmentation.
    """
    match chosen:
        case settings.WordVocabulary(min_count=min_count):
            return of_words(texts, words, min_count)
        case settings.CharacterVocabulary(min_count=min_count):
            return of_characters(texts, min_count)
        case settings.WordPiece(size=size):
            return word_piece(texts, size)
        case settings.Bpe(size=size):
            return byte_pairs(texts, size)
    raise UserError(f"vocabulary.kind ({chosen.kind!r}) is not one that can be built")


def of_words(texts: Iterable[str], words: Iterable[str] = (), min_count: int = 2) -> Tokenizer:
    """Words where the training text had them, their longest known pieces elsewhere.

    A run of characters is cut into the fewest known pieces, a unigram model (Kudo 2018) with one price for all; what
    stays unknown is one [UNK].

    Args:
        texts: the training texts.
        words: words known beforehand.
        min_count: a word that occurs less often is cut into known pieces.
    """
    normalizer = _normalizer()
    counts = _counts(texts, _splitter())
    known = {piece for piece, count in counts.items() if count >= min_count and not _is_chinese(piece)}
    known |= {normalizer.normalize_str(word) for word in words}
    characters = {character for piece in (*counts, *known) for character in piece}
    vocabulary = [*SPECIALS, *sorted((known | characters) - {"", *SPECIALS})]
    total = sum(counts.values()) + len(vocabulary)
    # Every token costs the same large amount, so the fewest pieces win; frequency only breaks ties.
    costs = [(piece, -100.0 + math.log((counts[piece] + 1) / total)) for piece in vocabulary]
    return _tokenizer(models.Unigram(costs, unk_id=UNKNOWN, byte_fallback=False), _splitter())


def of_characters(texts: Iterable[str], min_count: int = 2) -> Tokenizer:
    """Single characters; one that occurs less than `min_count` times is [UNK]."""
    counts = _characters(_counts(texts, _splitter()))
    known = sorted(character for character, count in counts.items() if count >= min_count)
    numbers = {token: number for number, token in enumerate([*SPECIALS, *known])}
    return _tokenizer(models.BPE(vocab=numbers, merges=[], unk_token=_UNKNOWN_TOKEN), _splitter())


def word_piece(texts: Iterable[str], size: int) -> Tokenizer:
    """WordPiece (Devlin et al. 2019), by merging the most frequent pairs; each Chinese character stands alone."""
    splitter = pre_tokenizers.Sequence([_splitter(), pre_tokenizers.Split(Regex(f"[{CHINESE}]"), behavior="isolated")])
    counts = _counts(texts, splitter)
    alphabet = _alphabet(counts, size)
    # The library numbers marked characters in the order of a hash table, another one in every process, and the numbers
    # break ties between pairs: listed beforehand, they have an order.
    inside = {character for piece in counts for character in piece[1:]}
    marked = [f"##{character}" for character in alphabet if character in inside]
    trainer = trainers.WordPieceTrainer(**_training(size, alphabet, marked))
    return _learned(Backend(models.WordPiece(unk_token=_UNKNOWN_TOKEN)), trainer, counts, splitter)


def byte_pairs(texts: Iterable[str], size: int) -> Tokenizer:
    """Byte-pair encoding (Sennrich et al. 2016, section 3.2) over characters, within words and within Chinese runs."""
    counts = _counts(texts, _splitter())
    trainer = trainers.BpeTrainer(**_training(size, _alphabet(counts, size), []))
    return _learned(Backend(models.BPE(unk_token=_UNKNOWN_TOKEN)), trainer, counts, _splitter())


def _alphabet(counts: Counter[str], size: int) -> list[str]:
    """The most frequent characters; so many that each may stand twice, as the start of a word and inside it."""
    characters = _characters(counts)
    frequent = sorted(characters, key=lambda character: (-characters[character], character))
    return sorted(frequent[: (size - len(SPECIALS)) // 2])


def _training(size: int, alphabet: list[str], first: list[str]) -> dict[str, Any]:
    return {
        "vocab_size": size,
        "initial_alphabet": alphabet,
        "limit_alphabet": len(alphabet),
        "special_tokens": [*SPECIALS, *first],
        "min_frequency": 2,
        "show_progress": False,
    }


def _learned(
    backend: Backend, trainer: trainers.Trainer, counts: Counter[str], splitter: pre_tokenizers.PreTokenizer
) -> Tokenizer:
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.train_from_iterator(_written_out(counts), trainer)
    return _tokenizer(backend.model, splitter)


def _tokenizer(model: models.Model, splitter: pre_tokenizers.PreTokenizer) -> Tokenizer:
    backend = Backend(model)
    backend.normalizer = _normalizer()
    backend.pre_tokenizer = splitter
    return Tokenizer(backend)


def _normalizer() -> normalizers.Normalizer:
    # Canonical composition only: compatibility forms would move character offsets of full-width punctuation.
    return normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])


def _splitter() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Split(Regex(PIECES), behavior="removed", invert=True)


def _counts(texts: Iterable[str], splitter: pre_tokenizers.PreTokenizer) -> Counter[str]:
    """How often each piece stands in the texts; every different stretch of them is cut once."""
    normalizer = _normalizer()
    seen: Counter[str] = Counter()
    for text in texts:
        seen.update(stretches(text))
    counts: Counter[str] = Counter()
    for stretch, count in seen.items():
        for piece, _ in splitter.pre_tokenize_str(normalizer.normalize_str(stretch)):
            counts[piece] += count
    del counts[UNKNOWN_WORD]  # a word that the source does not tell is [UNK]
    return counts


def _characters(counts: Counter[str]) -> Counter[str]:
    characters: Counter[str] = Counter()
    for piece, count in counts.items():
        for character in piece:
            characters[character] += count
    return characters


def _written_out(counts: Counter[str]) -> Iterator[str]:
    """Every piece as often as it was counted, in an order of its own."""
    for piece, count in sorted(counts.items()):
        yield f"{piece} " * count


def _is_chinese(piece: str) -> bool:
    return re.match(f"[{CHINESE}]", piece) is not None

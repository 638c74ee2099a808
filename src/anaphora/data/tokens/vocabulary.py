"""Learning of vocabularies of words, characters or subwords from texts, and import of published vocabularies.

Tokenizers with learned vocabularies split text into the same words, except that WordPiece also separates Chinese
characters. All vocabularies have `SPECIAL_TOKENS` at ids 0 to 4. Spans are in code points of the original text.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Regex, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers import Tokenizer as Backend

from anaphora.base.errors import UserError
from anaphora.base.files import read_json
from anaphora.base.language import CHINESE_CHARACTER, CHINESE_RANGES, WORD_PATTERN
from anaphora.data.text import UNKNOWN_WORD
from anaphora.data.tokens.tokenizer import TokenizedText, Tokenizer, independent_segments, readable_backend
from anaphora.settings.vocabulary import CLS, SPECIAL_TOKENS, UNKNOWN

_UNKNOWN_TOKEN = SPECIAL_TOKENS[UNKNOWN]
_TOKEN_SCORE = -100.0
_VERSIONS = 64  # number of vocabularies with different removed words; one is drawn for each text
_WHOLE = 0.5
"""Share of the training tokens covered by the words that are never split: the most frequent ones, such as pronouns."""
_LAST_CHOICE = -1e6  # score of a removed word, so low that any other segmentation is preferred

TOKENIZER, VOCABULARY = "tokenizer.json", "vocab.txt"
SEPARATOR = "[SEP]"
_ROBERTA = {"[PAD]": "<pad>", "[UNK]": "<unk>", "[CLS]": "<s>", "[MASK]": "<mask>", SEPARATOR: "</s>"}


def word_vocabulary(
    texts: Iterable[str], words: Iterable[str] = (), min_count: int = 2, *, only_seen: bool = False
) -> Tokenizer:
    """Learn a vocabulary of words; other words are split into as few known words and characters as possible.

    The only words that begin with a Chinese character are those in `words`, which are included even if they are rare.
    The model is a unigram model (Kudo 2018) in which all tokens have nearly the same score. Consecutive unknown
    characters become one [UNK].

    Args:
        min_count: minimum count, in the training texts, of a word in the vocabulary.
        only_seen: whether to drop words that never become tokens of the training texts, since their embeddings would
            not be trained; single characters are kept.
    """
    normalizer = _normalizer()
    segments = _segment_counts(texts)
    counts = _word_counts(segments, _splitter())
    known = {word for word, count in counts.items() if count >= min_count and not CHINESE_CHARACTER.match(word)}
    known |= {normalizer.normalize_str(word) for word in words}
    characters = {character for word in (*counts, *known) for character in word}
    tokenizer = _fewest_subwords(known | characters, counts)
    if not only_seen:
        return tokenizer
    counts = _token_counts(tokenizer, segments)
    return _fewest_subwords((known & counts.keys()) | characters, counts)


def _fewest_subwords(tokens: set[str], counts: Counter[str]) -> Tokenizer:
    vocabulary = [*SPECIAL_TOKENS, *sorted(tokens - {"", *SPECIAL_TOKENS})]
    total = sum(counts.values()) + len(vocabulary)
    # Every token costs the same large amount, so the fewest tokens win; frequency only breaks ties.
    scores = [(token, _TOKEN_SCORE + math.log((counts[token] + 1) / total)) for token in vocabulary]
    return _tokenizer(models.Unigram(scores, unk_id=UNKNOWN, byte_fallback=False), _splitter())


def character_vocabulary(texts: Iterable[str], min_count: int = 2) -> Tokenizer:
    """Learn a vocabulary of single characters; characters with fewer than `min_count` occurrences become [UNK]."""
    counts = _character_counts(_word_counts(_segment_counts(texts), _splitter()))
    known = sorted(character for character, count in counts.items() if count >= min_count)
    numbers = {token: number for number, token in enumerate([*SPECIAL_TOKENS, *known])}
    return _tokenizer(models.BPE(vocab=numbers, merges=[], unk_token=_UNKNOWN_TOKEN), _splitter())


def wordpiece_vocabulary(texts: Iterable[str], size: int, coverage: float = 1.0) -> Tokenizer:
    """Learn a WordPiece vocabulary (Devlin et al. 2019) of at most `size` tokens; Chinese characters stay separate."""
    splitter = pre_tokenizers.Sequence(
        [_splitter(), pre_tokenizers.Split(Regex(f"[{CHINESE_RANGES}]"), behavior="isolated")]
    )
    counts = _word_counts(_segment_counts(texts), splitter)
    alphabet = _alphabet(counts, size, coverage)
    # The library numbers the characters with "##" in the order of a hash table, which differs between processes, and
    # these numbers break ties between pairs. Listing them as special tokens fixes their order.
    inside = {character for word in counts for character in word[1:]}
    marked = [f"##{character}" for character in alphabet if character in inside]
    trainer = trainers.WordPieceTrainer(**_trainer_options(size, alphabet, marked))
    return _trained(Backend(models.WordPiece(unk_token=_UNKNOWN_TOKEN)), trainer, counts, splitter)


def bpe_vocabulary(texts: Iterable[str], size: int, coverage: float = 1.0) -> Tokenizer:
    """Learn a byte-pair encoding (BPE) of at most `size` tokens, Sennrich et al. 2016, section 3.2.

    Tokens are merged only inside words and sequences of Chinese characters.
    """
    counts = _word_counts(_segment_counts(texts), _splitter())
    trainer = trainers.BpeTrainer(**_trainer_options(size, _alphabet(counts, size, coverage), []))
    return _trained(Backend(models.BPE(unk_token=_UNKNOWN_TOKEN)), trainer, counts, _splitter())


def _alphabet(counts: Counter[str], size: int, coverage: float) -> list[str]:
    """Return the most frequent characters that together make up the share `coverage` of the texts, at most `size` / 2.

    WordPiece needs two tokens per character: one at the start of a word, and one inside.
    """
    characters = _character_counts(counts)
    frequent = sorted(characters, key=lambda character: (-characters[character], character))
    covered = list(accumulate(characters[character] for character in frequent))
    enough = bisect_left(covered, coverage * characters.total()) + 1
    return sorted(frequent[: min(enough, (size - len(SPECIAL_TOKENS)) // 2)])


def _trainer_options(size: int, alphabet: list[str], first: list[str]) -> dict[str, Any]:
    return {
        "vocab_size": size,
        "initial_alphabet": alphabet,
        "limit_alphabet": len(alphabet),
        "special_tokens": [*SPECIAL_TOKENS, *first],
        "min_frequency": 2,
        "show_progress": False,
    }


def _trained(
    backend: Backend, trainer: trainers.Trainer, counts: Counter[str], splitter: pre_tokenizers.PreTokenizer
) -> Tokenizer:
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.train_from_iterator((f"{word} " * count for word, count in sorted(counts.items())), trainer)
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
    return pre_tokenizers.Split(Regex(WORD_PATTERN), behavior="removed", invert=True)


def _segment_counts(texts: Iterable[str]) -> Counter[str]:
    return Counter(chain.from_iterable(map(independent_segments, texts)))


def _token_counts(tokenizer: Tokenizer, segments: Counter[str]) -> Counter[str]:
    """Count the tokens of texts, without special tokens, from the counts of their segments (`independent_segments`)."""
    counts: Counter[str] = Counter()
    for tokens, count in zip(tokenizer.encode_batch(list(segments)), segments.values(), strict=True):
        for number in tokens.ids:
            counts[tokenizer.token(number)] += count
    for token in SPECIAL_TOKENS:  # each segment is encoded alone, with a [CLS] of its own
        del counts[token]
    return counts


def _word_counts(segments: Counter[str], splitter: pre_tokenizers.PreTokenizer) -> Counter[str]:
    """Count the words of texts from the counts of their segments (`independent_segments`)."""
    normalizer = _normalizer()
    counts: Counter[str] = Counter()
    for segment, count in segments.items():
        for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(segment)):
            counts[word] += count
    del counts[UNKNOWN_WORD]  # a word that the source leaves out is [UNK]
    return counts


def _character_counts(counts: Counter[str]) -> Counter[str]:
    characters: Counter[str] = Counter()
    for word, count in counts.items():
        for character in word:
            characters[character] += count
    return characters


class DroppingTokenizer(Tokenizer):
    """Tokenizer with a word vocabulary that splits a random share of its rarer words into subwords in each text.

    A word vocabulary contains nearly every English training word, so that without dropout a model hardly sees subwords
    in training. This is a variant of BPE-dropout (Provilkov et al. 2020, section 3) for whole words. Ids do not change.

    Args:
        tokenizer: result of `word_vocabulary`.
        share: share of the rarer words that are split in each text, from 0 to 1.
        seed: seed for the random choice of the words that each of 64 vocabularies lacks, and of the vocabulary for each
            text.
    """

    is_random = True

    def __init__(self, tokenizer: Tokenizer, share: float, seed: int) -> None:
        whole = tokenizer.dumps()
        super().__init__(Backend.from_str(whole))
        self._draw = np.random.default_rng(seed)
        content = json.loads(whole)
        tokens: list[tuple[str, float]] = content["model"]["vocab"]
        by_frequency = sorted(tokens, key=lambda token: -token[1])
        # A score becomes a share of the training tokens.
        covered = np.cumsum([math.exp(score - _TOKEN_SCORE) for _, score in by_frequency])
        rarer = [word for word, _ in by_frequency[int(np.searchsorted(covered, _WHOLE)) + 1 :] if len(word) > 1]
        self._versions = []
        for _ in range(_VERSIONS):
            left_out = set(self._draw.permutation(rarer)[: round(share * len(rarer))].tolist())
            content["model"]["vocab"] = [[word, _LAST_CHOICE if word in left_out else score] for word, score in tokens]
            self._versions.append(Tokenizer(Backend.from_str(json.dumps(content)), keeps_segments=False))

    def encode_batch(self, texts: Sequence[str]) -> list[TokenizedText]:
        """Tokenize texts, each with a vocabulary drawn at random."""
        version = self._draw.integers(len(self._versions), size=len(texts))
        encoded: dict[int, TokenizedText] = {}
        for number, tokenizer in enumerate(self._versions):
            chosen = np.flatnonzero(version == number).tolist()
            encoded.update(zip(chosen, tokenizer.encode_batch([texts[one] for one in chosen]), strict=True))
        return [encoded[number] for number in range(len(texts))]


@dataclass(frozen=True)
class ImportedTokenizer:
    """Tokenizer of a published model, converted to this package's special tokens."""

    tokenizer: Tokenizer  # its vocabulary begins with our special tokens; the other tokens keep their order
    rows: tuple[int | None, ...]  # id of each token in the published vocabulary; None for one that is missing there


def read_tokenizer(folder: Path) -> ImportedTokenizer:
    """Read the tokenizer of a folder with pretrained weights: tokenizer.json, or the vocab.txt of a BERT model.

    Raises:
        UserError: both files are missing, the file is damaged, the vocabulary lacks a required special token or has two
            names for one, the tokenizer puts unsupported special tokens around a text, or the token ids cannot be
            changed so that `SPECIAL_TOKENS` come first.
    """
    path = folder / TOKENIZER
    if path.exists():
        try:
            written = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise UserError(f"{path}: not a readable tokenizer ({error})") from None
        readable_backend(path, json.dumps(written), text="")  # it may have no unknown token
    elif (folder / VOCABULARY).exists():
        path = folder / VOCABULARY
        written = json.loads(_bert_tokenizer(path, _lower_case(folder)).to_str())
    else:
        raise UserError(f"{folder} has neither {TOKENIZER} nor {VOCABULARY}")
    return _renumbered(written, path)


def _bert_tokenizer(path: Path, lower_case: bool) -> Backend:
    """Build a BERT tokenizer from a vocab.txt (Devlin et al. 2019)."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: byte {error.start} is not UTF-8") from None
    vocabulary = {line.rstrip("\r"): number for number, line in enumerate(lines) if line.rstrip("\r")}
    if _UNKNOWN_TOKEN not in vocabulary:
        raise UserError(f"{path}: {_UNKNOWN_TOKEN} is missing; it needs one subword on each line")
    backend = Backend(models.WordPiece(vocabulary, unk_token=_UNKNOWN_TOKEN, max_input_chars_per_word=100))
    backend.normalizer = normalizers.BertNormalizer(lowercase=lower_case)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return backend


def _lower_case(folder: Path) -> bool:
    """Return the setting `do_lower_case` of tokenizer_config.json; True if the file or the setting is missing."""
    try:
        return bool(read_json(folder / "tokenizer_config.json", dict).get("do_lower_case", True))
    except FileNotFoundError:
        return True


def _renumbered(written: dict[str, Any], path: Path) -> ImportedTokenizer:
    model = written["model"]
    listed = model.get("vocab")
    as_list = isinstance(listed, list)  # a unigram model lists its tokens with their scores
    known = {token: number for number, (token, _) in enumerate(listed)} if as_list else dict(listed or {})
    scores = dict(listed) if as_list else {}
    for added in written.get("added_tokens", []):
        known.setdefault(added["content"], added["id"])
    theirs = _special_token_names(known, path)
    has_separator = SEPARATOR in theirs and _ends_with_separator(written, theirs, path)
    ours = {name: own for own, name in theirs.items()}
    opening = [theirs.get(own) for own in SPECIAL_TOKENS]
    rest = sorted((token for token in known if token not in opening), key=known.__getitem__)
    order = [*opening, *rest]
    tokens = [SPECIAL_TOKENS[place] if token is None else ours.get(token, token) for place, token in enumerate(order)]
    if len(set(tokens)) < len(tokens):
        twice = next(token for token in tokens if tokens.count(token) > 1)
        raise UserError(f"{path}: the vocabulary has both {twice} and a special token with the same meaning")
    if as_list:
        least = min(scores.values(), default=0.0)
        model["vocab"] = [[token, scores.get(source or "", least)] for token, source in zip(tokens, order, strict=True)]
        model["unk_id"] = UNKNOWN
    else:
        model["vocab"] = {token: number for number, token in enumerate(tokens)}
        if model.get("unk_token") is not None:
            model["unk_token"] = ours.get(model["unk_token"], model["unk_token"])
    special = set(theirs.values())
    # Special tokens cannot be written in a text, so the tokenizer does not search for them.
    kept = [added for added in written.get("added_tokens", []) if added["content"] not in special]
    numbers = {token: number for number, token in enumerate(tokens)}
    written["added_tokens"] = [{**added, "id": numbers[added["content"]]} for added in kept]
    written["truncation"] = written["padding"] = written["post_processor"] = None
    try:
        backend = Backend.from_str(json.dumps(written))
    except Exception as error:  # the backend raises bare Exception
        raise UserError(f"{path}: cannot be renumbered ({error})") from None
    if has_separator:
        backend.post_processor = processors.TemplateProcessing(
            single=f"{SPECIAL_TOKENS[CLS]} $A {SEPARATOR}",
            special_tokens=[(SPECIAL_TOKENS[CLS], CLS), (SEPARATOR, numbers[SEPARATOR])],
        )
    return ImportedTokenizer(Tokenizer(backend), tuple(None if token is None else known[token] for token in order))


def _ends_with_separator(written: Mapping[str, Any], theirs: Mapping[str, str], path: Path) -> bool:
    """Return whether a published tokenizer puts [SEP] after a text.

    The result is also True if the file describes no special tokens around a text, as for many RoBERTa tokenizers, since
    the tokenizer class in `transformers` adds them.

    Raises:
        UserError: the special tokens around a text are neither [CLS] alone nor [CLS] and [SEP].
    """
    # Without a normalizer or pre-tokenizer, the empty text has no token that the model might not know.
    unset = dict.fromkeys(("normalizer", "pre_tokenizer", "truncation", "padding"))
    encoding = Backend.from_str(json.dumps({**written, **unset})).encode("")
    around = [token for token, added in zip(encoding.tokens, encoding.special_tokens_mask, strict=True) if added]
    cls, separator = theirs[SPECIAL_TOKENS[CLS]], theirs[SEPARATOR]
    if around not in ([], [cls], [cls, separator]):
        raise UserError(
            f"{path}: it puts {' '.join(around)} around a text; this encoder reads {cls} before a text and {separator} "
            "after it, or the former alone"
        )
    return around != [cls]


def _special_token_names(known: Mapping[str, int], path: Path) -> dict[str, str]:
    """Map this package's special tokens, and [SEP], to their names in a published vocabulary, if it has them."""
    style = {name: name for name in (*SPECIAL_TOKENS, SEPARATOR)} if SPECIAL_TOKENS[CLS] in known else _ROBERTA
    if style[SPECIAL_TOKENS[CLS]] not in known:
        raise UserError(f"{path}: the vocabulary has neither {SPECIAL_TOKENS[CLS]} nor {_ROBERTA[SPECIAL_TOKENS[CLS]]}")
    return {own: name for own, name in style.items() if name in known}

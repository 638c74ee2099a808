"""Vocabulary dropout: random words of the training texts are split into subwords, as unknown words are at test time.

A word vocabulary contains every training word, so that without dropout a model never sees subwords in training. A
variant of BPE-dropout (Provilkov et al. 2020, section 3) for whole words.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
from tokenizers import Tokenizer as Backend

from anaphora.data.tokens.tokenizer import TokenizedText, Tokenizer
from anaphora.data.tokens.vocabulary import share_of_tokens

_VERSIONS = 64
"""Number of vocabularies with different missing words; one is drawn for each text."""
_WHOLE = 0.5
"""Share of the training tokens whose words are never split: the most frequent ones, function words and pronouns."""
_LAST_CHOICE = -1e6
"""Score of a missing word, so low that any other segmentation is preferred."""


class DroppingTokenizer(Tokenizer):
    """Tokenizer with a word vocabulary that splits a random part of its rarer words; token ids do not change.

    Args:
        tokenizer: result of `word_vocabulary`.
        share: share of the rarer words that is missing for each text, from 0 to 1.
        seed: random seed of the missing words, and of the vocabulary drawn for each text.
    """

    def __init__(self, tokenizer: Tokenizer, share: float, seed: int) -> None:
        whole = tokenizer.dumps()
        super().__init__(Backend.from_str(whole))
        self._draw = np.random.default_rng(seed)
        content = json.loads(whole)
        tokens: list[tuple[str, float]] = content["model"]["vocab"]
        by_frequency = sorted(tokens, key=lambda token: -token[1])
        covered = np.cumsum([share_of_tokens(score) for _, score in by_frequency])
        rarer = [word for word, _ in by_frequency[int(np.searchsorted(covered, _WHOLE)) + 1 :] if len(word) > 1]
        self._versions = []
        for _ in range(_VERSIONS):
            left_out = set(self._draw.permutation(rarer)[: round(share * len(rarer))].tolist())
            content["model"]["vocab"] = [[word, _LAST_CHOICE if word in left_out else score] for word, score in tokens]
            self._versions.append(Tokenizer(Backend.from_str(json.dumps(content))))

    @property
    def is_random(self) -> bool:
        return True

    def encode_batch(self, texts: Sequence[str]) -> list[TokenizedText]:
        """Tokenize texts, each with a vocabulary drawn at random."""
        version = self._draw.integers(len(self._versions), size=len(texts))
        encoded: dict[int, TokenizedText] = {}
        for number, tokenizer in enumerate(self._versions):
            chosen = np.flatnonzero(version == number).tolist()
            encoded.update(zip(chosen, tokenizer.encode_batch([texts[one] for one in chosen]), strict=True))
        return [encoded[number] for number in range(len(texts))]

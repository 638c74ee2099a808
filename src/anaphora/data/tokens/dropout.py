"""Vocabulary dropout: training texts with some words split into subwords, as unknown words are later.

A word vocabulary knows every word that it was learned from, so that without it nothing trains a model to read a word in
subwords. After BPE-dropout (Provilkov et al. 2020, section 3), for words.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
from tokenizers import Tokenizer as Backend

from anaphora.data.tokens.tokenizer import TokenizedText, Tokenizer
from anaphora.data.tokens.vocabulary import share_of_tokens

_VERSIONS = 64
"""Vocabularies that each lack other words; a text is read with one of them."""
_WHOLE = 0.5
"""The most frequent tokens, which make up so much of the training texts, stay whole: function words and pronouns."""
_LAST_CHOICE = -1e6
"""The score of a word that is left out: any other way to cut a text is taken before it."""


class DroppingTokenizer(Tokenizer):
    """A word vocabulary that reads each text without some of its rarer words; ids are those of the vocabulary.

    Args:
        tokenizer: of words, as `word_vocabulary` makes it.
        share: of the rarer words, that a text is read without.
        seed: draws the words, and the texts.
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
        """Tokenize texts, each without some of the words."""
        version = self._draw.integers(len(self._versions), size=len(texts))
        encoded: dict[int, TokenizedText] = {}
        for number, tokenizer in enumerate(self._versions):
            chosen = np.flatnonzero(version == number).tolist()
            encoded.update(zip(chosen, tokenizer.encode_batch([texts[one] for one in chosen]), strict=True))
        return [encoded[number] for number in range(len(texts))]

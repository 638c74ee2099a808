"""Choice of words for the output layer: masked words and visible ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from anaphora.base.batch import Batch
from anaphora.base.special_tokens import MASK, SPECIAL_TOKENS


def mask_words(batch: Batch, share: float, vocabulary: int, draw: np.random.Generator) -> Batch:
    """Mask words for a masked-language-model loss: 80 % [MASK], 10 % random, 10 % kept (Devlin et al. 2019, 3.1).

    A word is masked with all its subwords (whole-word masking), each replaced on its own. Special tokens, padding,
    unknown words and pronouns are never masked.
    """
    ids = batch.ids.flatten().numpy()
    word_of, chosen = _drawn_words(batch, share, draw)
    fate = draw.random(len(chosen))
    masked = np.flatnonzero(chosen[word_of])
    fates = fate[word_of[masked]]
    random_tokens = draw.integers(len(SPECIAL_TOKENS), vocabulary, len(masked))
    inputs = ids.copy()
    inputs[masked] = np.where(fates < 0.8, MASK, np.where(fates < 0.9, random_tokens, ids[masked]))
    return replace(batch, inputs=torch.from_numpy(inputs).view_as(batch.ids), masked_positions=torch.from_numpy(masked))


def draw_own_words(batch: Batch, share: float, draw: np.random.Generator) -> Batch:
    """Choose visible words, with all their subwords, whose own tokens the output layer predicts.

    Masked words, special tokens, padding, unknown words and pronouns are never chosen.
    """
    word_of, chosen = _drawn_words(batch, share, draw)
    chosen[word_of[batch.masked_positions.numpy()]] = False
    return replace(batch, own_positions=torch.from_numpy(np.flatnonzero(chosen[word_of])))


def _drawn_words(batch: Batch, share: float, draw: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the number of each token's word (R * T,), counted over the batch, and which words are drawn."""
    ids, words = batch.ids.flatten().numpy(), batch.words.flatten().numpy()
    begins = np.ones(len(words), dtype=np.bool_)
    begins[1:] = words[1:] != words[:-1]  # [CLS], which is no word, stands between two sentences
    word_of = begins.cumsum() - 1
    free = np.ones(int(begins.sum()), dtype=np.bool_)
    free[word_of[(ids < len(SPECIAL_TOKENS)) | (words < 0)]] = False
    free[word_of[batch.query_positions.numpy()]] = False
    return word_of, free & (draw.random(len(free)) < share)


def masked_for_evaluation(batches: Iterable[Batch], share: float, vocabulary: int) -> Iterator[Batch]:
    """Return batches whose words are masked as by `mask_words`, the same ones every time."""
    for number, batch in enumerate(batches):
        yield mask_words(batch, share, vocabulary, np.random.default_rng([number, 4]))

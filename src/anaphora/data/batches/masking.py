"""Random choice of the words that the output layer predicts: masked words and visible ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from anaphora.base.batch import Batch
from anaphora.base.special_tokens import MASK, SPECIAL_TOKENS


def mask_words(batch: Batch, share: float, vocabulary: int, draw: np.random.Generator) -> Batch:
    """Mask words for a masked-language-model loss: 80% [MASK], 10% random, 10% unchanged (Devlin et al. 2019, 3.1).

    All subwords of a word are masked together (whole-word masking); random tokens are drawn for each subword. Special
    tokens, padding, unknown words and pronouns are never masked.

    Args:
        batch: batch to mask.
        share: probability that a word is masked, from 0 to 1.
        vocabulary: vocabulary size.
        draw: random generator.
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
    """Return the batch with `own_positions`: visible words to predict, each drawn with probability `share`.

    All subwords of a word are chosen together. Masked words, special tokens, padding, unknown words and pronouns are
    never chosen.
    """
    word_of, chosen = _drawn_words(batch, share, draw)
    chosen[word_of[batch.masked_positions.numpy()]] = False
    return replace(batch, own_positions=torch.from_numpy(np.flatnonzero(chosen[word_of])))


def _drawn_words(batch: Batch, share: float, draw: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Draw words of a batch of R rows; special tokens, unknown words and pronouns are never drawn.

    Returns:
        (R * T,) index of each token's word in the batch; and for each of these words whether it is drawn.
    """
    ids, words = batch.ids.flatten().numpy(), batch.words.flatten().numpy()
    begins = np.ones(len(words), dtype=np.bool_)
    begins[1:] = words[1:] != words[:-1]  # [CLS], which is no word, stands between two sentences
    word_of = begins.cumsum() - 1
    free = np.ones(int(begins.sum()), dtype=np.bool_)
    free[word_of[(ids < len(SPECIAL_TOKENS)) | (words < 0)]] = False
    free[word_of[batch.query_positions.numpy()]] = False
    return word_of, free & (draw.random(len(free)) < share)


def masked_for_evaluation(batches: Iterable[Batch], share: float, vocabulary: int) -> Iterator[Batch]:
    """Yield batches masked by `mask_words` with a fixed seed, so that evaluations are comparable."""
    for number, batch in enumerate(batches):
        yield mask_words(batch, share, vocabulary, np.random.default_rng([number, 4]))

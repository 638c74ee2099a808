"""Importance of each token by blank-out (masking it), and attention of [CLS] to it by raw weights, rollout and flow.

Axes are N (items), L (layers) and T (tokens of one item: [CLS] and its words).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from torch.nn import functional

from anaphora.analysis.maps.rollout_and_flow import flow_of_states, rollout_of_states
from anaphora.base.batch import EncoderInput
from anaphora.data.batches.batching import evaluation_batches
from anaphora.data.batches.texts import EncodedTexts
from anaphora.model.pronoun_model import PronounModel
from anaphora.settings.training import Batching
from anaphora.settings.vocabulary import MASK

Floats = NDArray[np.float64]

MAPS = ("raw", "rollout", "flow")
TOKEN_SETS = {"all": 0, "words": 1}
"""Index of the first ranked token for each token set: with [CLS], or the words only.

The paper includes [CLS]: its correlations of raw weights and rollout differ at layer 1 (0.69 and 0.32), where the
residual connection changes only the weight of [CLS].
"""
_BATCHING = Batching(kind="buckets", row_tokens=1)


def correct_probability(model: PronounModel, data: EncodedTexts) -> Floats:
    """Return the probability of the correct number for each sentence: (N,).

    In double precision: a confident model's probabilities differ in the eighth place, and ties would spoil the ranks.
    """
    probabilities = np.zeros(len(data))
    for batch in evaluation_batches(data, _BATCHING, slots=0):
        with torch.inference_mode():
            on_device = batch.to(model.device)
            scores = model.prediction_head.scores(model(on_device), on_device).double()
            gold = functional.pad(on_device.gold, (0, 1))  # no text has no label
            probabilities[batch.items.numpy()] = (scores.softmax(dim=-1) * gold).sum(dim=1).cpu().numpy()
    return probabilities


def blank_out_importance(model: PronounModel, data: EncodedTexts) -> list[Floats]:
    """Return the absolute change in the probability of the correct number when a token is replaced by [MASK].

    The measure is that of Abnar and Zuidema 2020, section 2, with absolute values as in the authors' code. [CLS] is
    replaced too.

    Returns:
        N arrays of (T,).
    """
    whole = correct_probability(model, data)
    sentences = token_ids(data)
    importance = [np.zeros(len(ids)) for ids in sentences]
    for position in range(data.max_tokens()):
        items = [item for item, ids in enumerate(sentences) if position < len(ids)]
        blanked = [list(ids) for ids in sentences]
        for item in items:
            blanked[item][position] = MASK
        without = correct_probability(model, data.with_ids(blanked))
        for item in items:
            importance[item][position] = abs(without[item] - whole[item])
    return importance


def token_ids(data: EncodedTexts) -> list[list[int]]:
    """Return the token ids of each sentence, with [CLS] first."""
    return [data.ids.take(np.array([item]))[0].tolist() for item in range(len(data))]


def cls_attention_maps(model: PronounModel, ids: Sequence[int]) -> dict[str, Floats]:
    """Return the attention weights of [CLS] in one sentence after each layer: (L, T) for each map in `MAPS`.

    Heads are averaged, Abnar and Zuidema 2020, section 3.
    """
    tokens = torch.tensor([list(ids)], device=model.device)
    sentence = EncoderInput(tokens, torch.arange(len(ids), device=model.device)[None], torch.zeros_like(tokens))
    with torch.inference_mode():
        means = [maps[0].cpu().double().mean(dim=0) for maps in model.encoder.maps(sentence)]
        maps = torch.stack(means)  # (L, T, T)
        rollout = rollout_of_states(maps)
    return {"raw": maps[:, 0].numpy(), "rollout": rollout[:, 0].numpy(), "flow": flow_of_states(maps.numpy(), 0)}


def spearman(first: ArrayLike, second: ArrayLike) -> Floats:
    """Return Spearman's rank correlation along the last axis, with mean ranks for ties; 0 if one input is constant."""
    ranks = [rankdata(np.asarray(values, dtype=np.float64), axis=-1) for values in (first, second)]
    left, right = (rank - rank.mean(axis=-1, keepdims=True) for rank in ranks)
    scale = np.sqrt((left**2).sum(axis=-1) * (right**2).sum(axis=-1))
    products = (left * right).sum(axis=-1)
    rho: Floats = np.divide(products, scale, out=np.zeros_like(products), where=scale > 0)
    return rho


def rank_correlations(
    model: PronounModel, data: EncodedTexts, importance: Sequence[Floats], after_item: Callable[[], object]
) -> dict[tuple[str, str], Floats]:
    """Return the rank correlation of each map with blank-out importance, for every item and layer.

    Args:
        model: the model.
        data: the items.
        importance: results of `blank_out_importance` for the items.
        after_item: callback after each item.

    Returns:
        (N, L) for each pair of a token set in `TOKEN_SETS` and a map in `MAPS`.
    """
    rows: dict[tuple[str, str], list[Floats]] = {(tokens, name): [] for tokens in TOKEN_SETS for name in MAPS}
    for ids, of_tokens in zip(token_ids(data), importance, strict=True):
        for name, weights in cls_attention_maps(model, ids).items():
            for tokens, first in TOKEN_SETS.items():
                target = np.broadcast_to(of_tokens, weights.shape)
                rows[tokens, name].append(spearman(weights[:, first:], target[:, first:]))
        after_item()
    return {key: np.stack(of_items) for key, of_items in rows.items()}

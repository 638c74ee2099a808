"""Which words an answer rests on, by taking them away one by one, and which the maps of [CLS] point at.

N items, L layers, T tokens of one item: [CLS] and its words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from anaphora.analysis.mixing import flow_of_states, passes, rollout_of_states
from anaphora.replication.classifier import Coded, NumberClassifier, rows_of
from anaphora.specials import UNKNOWN

Floats = NDArray[np.float64]

MAPS = ("raw", "rollout", "flow")
TOKENS = {"all": 0, "words": 1}
"""Which tokens are ranked, and the first of them: [CLS] too, or the words alone.

The paper counts [CLS]: its raw weights and its rollout differ at layer 1 (0.69 and 0.32), where the residual branch
adds to the column of [CLS] alone.
"""
_AT_ONCE = 256  # sentences in one pass


def right_probability(model: NumberClassifier, ids: Sequence[Sequence[int]], plural: ArrayLike) -> Floats:
    """The probability of the right number for each sentence: (N,).

    In double precision: a sure model's probabilities differ in the eighth place, and ties would spoil the ranks.
    """
    wanted = np.asarray(plural, dtype=np.int64)
    found = []
    with torch.inference_mode():
        for start in range(0, len(ids), _AT_ONCE):
            logits = model(rows_of(ids[start : start + _AT_ONCE])).cpu().double()
            answers = torch.from_numpy(wanted[start : start + _AT_ONCE])
            found.append(logits.softmax(dim=-1).gather(1, answers.unsqueeze(1)).squeeze(1).numpy())
    return np.concatenate(found)


def importance(model: NumberClassifier, data: Coded) -> list[Floats]:
    """How far the probability of the right number moves when a token becomes [UNK]: Abnar and Zuidema 2020, section 2.

    Up or down alike, as in the authors' code. [CLS] is blanked as well.

    Returns:
        N arrays of (T,).
    """
    whole = right_probability(model, data.ids, data.plural)
    tokens = [len(ids) for ids in data.ids]
    blanked = [(*ids[:place], UNKNOWN, *ids[place + 1 :]) for ids in data.ids for place in range(len(ids))]
    without = right_probability(model, blanked, np.repeat(np.asarray(data.plural), tokens))
    parts = np.split(without, np.cumsum(tokens)[:-1])
    return [np.abs(one - before) for one, before in zip(parts, whole, strict=True)]


def maps_of_cls(model: NumberClassifier, ids: Sequence[int]) -> dict[str, Floats]:
    """What each map gives the tokens of one sentence in the row of [CLS], after each layer: (L, T) for each of `MAPS`.

    Heads are averaged, Abnar and Zuidema 2020, section 3.
    """
    rows = rows_of([ids]).to(model.device)
    with torch.inference_mode():
        context = model.encoder.begin(rows.ids, rows.places, rows.segments)
        means = [layer.maps()[0].cpu().double().mean(dim=0) for layer in passes(model.encoder, context)]
        maps = torch.stack(means)  # (L, T, T)
        rolled = rollout_of_states(maps)
    return {"raw": maps[:, 0].numpy(), "rollout": rolled[:, 0].numpy(), "flow": flow_of_states(maps.numpy(), 0)}


def spearman(first: ArrayLike, second: ArrayLike) -> Floats:
    """Spearman's rank correlation along the last axis, ties at their mean rank; 0 where either side is all alike."""
    ranks = [rankdata(np.asarray(one, dtype=np.float64), axis=-1) for one in (first, second)]
    one, other = (rank - rank.mean(axis=-1, keepdims=True) for rank in ranks)
    scale = np.sqrt((one**2).sum(axis=-1) * (other**2).sum(axis=-1))
    together = (one * other).sum(axis=-1)
    rho: Floats = np.divide(together, scale, out=np.zeros_like(together), where=scale > 0)
    return rho


def correlations(
    model: NumberClassifier, data: Coded, blanked: Sequence[Floats], after_item: Callable[[], object]
) -> dict[tuple[str, str], Floats]:
    """How each map ranks the tokens against blank-out, for every item and layer.

    Args:
        model: the model.
        data: its items.
        blanked: their `importance`.
        after_item: is called when an item is done.

    Returns:
        (N, L) for each of `TOKENS` and each of `MAPS`.
    """
    found: dict[tuple[str, str], list[Floats]] = {(which, name): [] for which in TOKENS for name in MAPS}
    for ids, truth in zip(data.ids, blanked, strict=True):
        for name, weights in maps_of_cls(model, ids).items():
            for which, first in TOKENS.items():
                wanted = np.broadcast_to(truth, weights.shape)
                found[which, name].append(spearman(weights[:, first:], wanted[:, first:]))
        after_item()
    return {key: np.stack(rows) for key, rows in found.items()}

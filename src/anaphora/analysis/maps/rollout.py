"""Attention rollout, Abnar and Zuidema 2020, section 3."""

from __future__ import annotations

import torch
from torch import Tensor


def rollout_of_states(maps: Tensor) -> Tensor:
    """Return attention rollout, Abnar and Zuidema 2020, section 3: R_l = (A_l / 2 + I / 2) R_(l-1), R_0 = I.

    Args:
        maps: (L, ..., T, T), A_l, the mean over the heads of each layer.

    Returns:
        The same shape: how much of each token's embedding is in each state after layer l.
    """
    rolled = torch.eye(maps.shape[-1], dtype=maps.dtype, device=maps.device).expand_as(maps[0])
    layers = []
    for weights in maps:
        rolled = (weights @ rolled + rolled) / 2
        layers.append(rolled)
    return torch.stack(layers)


def rollout_of_tokens(rows: Tensor, own: Tensor) -> Tensor:
    """Return attention rollout where every layer mixes the tokens' embeddings: R_l = A_l / 2 + R_(l-1) / 2, R_0 = I.

    A layer adds sum_j A_ij V(embedding_j) to the state i. So its attention branch brings the embeddings themselves,
    whose shares are I, where the paper's brings the states of layer l - 1, whose shares are R_(l-1): A_l R_(l-1)
    becomes A_l I, and the residual branch stays R_(l-1). A query's row depends on its own rows alone.

    Args:
        rows: (L, Q, T), the mean over the heads of each layer.
        own: (Q,) each query's own column.

    Returns:
        (L, Q, T).
    """
    rolled = torch.nn.functional.one_hot(own, rows.shape[-1]).to(rows.dtype)
    layers = []
    for weights in rows:
        rolled = (weights + rolled) / 2
        layers.append(rolled)
    return torch.stack(layers)

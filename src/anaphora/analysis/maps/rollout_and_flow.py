"""Attention rollout and attention flow, Abnar and Zuidema 2020, section 3.

Axes are L (layers), T (tokens) and Q (queries). The functions `..._of_states` are for standard encoders, in which
each layer mixes the states of the layer below. The functions `..._of_tokens` are for encoders in which every layer
mixes the tokens' embeddings (`model.values=token`).
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anaphora.analysis.maps.attribution import normalise_rows

CAPACITY_SCALE = 2**24
"""Integer capacity of a weight of 1; steps of 1 / 2^24 are the resolution of float32 just below 1."""
_EDGES_AT_ONCE = 20_000  # edges between middle layers in one call of the solver


def rollout_of_states(maps: Tensor) -> Tensor:
    """Return attention rollout: R_l = (A_l / 2 + I / 2) R_(l-1), R_0 = I.

    A_l are attention maps averaged over heads, (L, ..., T, T). R_l has the same shape, and holds the share of each
    token's embedding in each state after layer l.
    """
    start = torch.eye(maps.shape[-1], dtype=maps.dtype, device=maps.device).expand_as(maps[0])
    _, *layers = accumulate(maps, lambda rolled, weights: (weights @ rolled + rolled) / 2, initial=start)
    return torch.stack(layers)


def rollout_of_tokens(rows: Tensor, own: Tensor) -> Tensor:
    """Return attention rollout if every layer mixes the tokens' embeddings: R_l = A_l / 2 + R_(l-1) / 2, R_0 = I.

    A layer adds sum_j A_ij V(embedding_j) to state i, so A_l is not multiplied by R_(l-1). The rollout of Q queries
    depends only on their attention rows, `rows` (L, Q, T), and on the index of each query's token, `own` (Q,).
    """
    start = torch.nn.functional.one_hot(own, rows.shape[-1]).to(rows.dtype)
    _, *layers = accumulate(rows, lambda rolled, weights: (weights + rolled) / 2, initial=start)
    return torch.stack(layers)


def flow_of_states(maps: NDArray[np.floating], token: int) -> NDArray[np.float64]:
    """Return attention flow: the maximum flow from a token's state in each layer to each embedding.

    The states of all layers are nodes. The edge from state i of layer l to state j of layer l - 1 has the capacity
    (A_l / 2 + I / 2)_ij. From the third layer on, a maximum-flow problem is solved for each layer and embedding, so
    inputs must be short. The mean maps over heads, A_l, are (L, T, T); the flow is (L, T), and each row sums to 1.
    """
    capacities = np.rint((maps + np.eye(maps.shape[1])) / 2 * CAPACITY_SCALE).astype(np.int32)
    flows = np.array([_flows(capacities[: number + 1], token) for number in range(len(maps))], dtype=np.float64)
    return np.asarray(flows / flows.sum(axis=1, keepdims=True))


def _flows(capacities: NDArray[np.int32], token: int) -> NDArray[np.integer]:
    """Return the maximum flow from a token's state in the last layer to each embedding, (T,).

    `capacities` holds the capacities of the edges between the states of adjacent layers, (L, T, T).
    """
    first: NDArray[np.int32] = capacities[0]
    last: NDArray[np.int32] = capacities[-1, token]
    if len(capacities) == 1:
        return last
    if len(capacities) == 2:
        through: NDArray[np.int64] = np.minimum(last[:, None], first).sum(axis=0)  # one path through each middle state
        return through
    tokens = len(last)
    at_once = max(1, _EDGES_AT_ONCE // ((len(capacities) - 2) * tokens**2))
    parts = [first[:, start : start + at_once] for start in range(0, tokens, at_once)]
    return np.concatenate([_solved(capacities[1:-1], last, part) for part in parts])


def _solved(between: NDArray[np.int32], out: NDArray[np.int32], into: NDArray[np.int32]) -> NDArray[np.integer]:
    """Return the maximum flows of P problems, (P,), solved at once in a graph with a separate component for each.

    Args:
        between: capacities between the states of the middle layers, lowest layer first, (L - 2, T, T).
        out: capacities from the source to the states of the highest middle layer, (T,).
        into: capacities from the states of the lowest middle layer to the sink of each problem, (T, P).
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    tokens, problems = into.shape
    levels = len(between) + 1
    states = 2 + np.arange(problems * levels * tokens).reshape(problems, levels, tokens)  # 0 is the source, 1 the sink
    shape = (problems, levels - 1, tokens, tokens)
    starts = [
        np.zeros(problems * tokens, dtype=np.int64),
        np.broadcast_to(states[:, 1:, :, None], shape).ravel(),
        states[:, 0].ravel(),
    ]
    ends = [
        states[:, -1].ravel(),
        np.broadcast_to(states[:, :-1, None, :], shape).ravel(),
        np.ones(problems * tokens, dtype=np.int64),
    ]
    values = np.concatenate([np.tile(out, problems), np.broadcast_to(between, shape).ravel(), into.T.ravel()])
    kept = values > 0
    edges = (values[kept], (np.concatenate(starts)[kept], np.concatenate(ends)[kept]))
    nodes = 2 + states.size
    flow = maximum_flow(csr_array(edges, shape=(nodes, nodes)), 0, 1).flow
    return np.asarray(flow[[0], :].toarray()[0, states[:, -1]].sum(axis=1))


def flow_of_tokens(rows: Tensor, own: Tensor) -> Tensor:
    """Return attention flow if every layer mixes the tokens' embeddings: f_l(j) = A_l(j) / 2 + min(1/2, f_(l-1)(j)).

    State i of layer l has an edge of capacity A_ij / 2 to each embedding j, and one of 1/2 to its own state of the
    layer below; f_0 is unbounded at i and 0 elsewhere. For each j, the graph is a chain of states with side edges to
    the sink: parallel capacities add, and capacities in series give their minimum. So no solver is needed, and inputs
    may have any length. The arguments are those of `rollout_of_tokens`; the flow is (L, Q, T), and each row sums to 1.
    """
    start = torch.nn.functional.one_hot(own, rows.shape[-1]).to(rows.dtype)  # a value of 1/2 or more acts as unbounded
    _, *layers = accumulate(rows, lambda flow, weights: weights / 2 + flow.clamp(max=0.5), initial=start)
    return normalise_rows(torch.stack(layers))

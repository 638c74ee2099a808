"""Attention flow as a maximum flow, Abnar and Zuidema 2020, section 3."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anaphora.analysis.maps.norms import normalise_rows

CAPACITY_SCALE = 2**24
"""Capacities become whole numbers out of so many: the steps of a single-precision weight just below 1."""
_EDGES_AT_ONCE = 20_000


def flow_of_states(maps: NDArray[np.floating], token: int) -> NDArray[np.float64]:
    """Return attention flow (Abnar and Zuidema 2020, section 3): the maximum flow from a state to each embedding.

    The states of all layers are nodes; the edge from state i of layer l to state j of layer l - 1 carries at most
    (A_l / 2 + I / 2)_ij. One maximum-flow problem for each token and layer above the second, so short inputs only.

    Args:
        maps: (L, T, T), A_l, the mean over the heads of each layer.
        token: the state's position in the sentence.

    Returns:
        (L, T), rows summing to 1, for the state after each layer.
    """
    capacities = np.rint((maps + np.eye(maps.shape[1])) / 2 * CAPACITY_SCALE).astype(np.int32)
    flows = np.array([_flows(capacities[: number + 1], token) for number in range(len(maps))], dtype=np.float64)
    totals: NDArray[np.float64] = flows / flows.sum(axis=1, keepdims=True)
    return totals


def _flows(capacities: NDArray[np.int32], token: int) -> NDArray[np.integer]:
    """Return the maximum flow from a state of the last layer to each embedding: (L, T, T) -> (T,)."""
    first: NDArray[np.int32] = capacities[0]
    last: NDArray[np.int32] = capacities[-1, token]
    if len(capacities) == 1:
        return last
    if len(capacities) == 2:
        through: NDArray[np.int64] = np.minimum(last[:, None], first).sum(axis=0)  # a path by each state between them
        return through
    tokens = len(last)
    at_once = max(1, _EDGES_AT_ONCE // ((len(capacities) - 2) * tokens**2))
    parts = [first[:, start : start + at_once] for start in range(0, tokens, at_once)]
    return np.concatenate([_solved(capacities[1:-1], last, part) for part in parts])


def _solved(between: NDArray[np.int32], out: NDArray[np.int32], into: NDArray[np.int32]) -> NDArray[np.integer]:
    """Solve several problems as one graph of disjoint parts, since calling the solver takes longer than solving.

    Args:
        between: (L - 2, T, T) the capacities between the states of the layers in the middle, the lowest first.
        out: (T,) from the source to the uppermost of these states.
        into: (T, P) from the lowest of them to the sink of each of P problems.

    Returns:
        (P,).
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
    solved: NDArray[np.integer] = flow[[0], :].toarray()[0, states[:, -1]].sum(axis=1)
    return solved


def flow_of_tokens(rows: Tensor, own: Tensor) -> Tensor:
    """Return attention flow where every layer mixes the tokens' embeddings: f_l(j) = A_l(j) / 2 + min(1/2, f_(l-1)(j)).

    State i of layer l has an edge of A_ij / 2 to each embedding j and one of 1/2 to its own state of layer l - 1; state
    i of layer 0 is embedding i, so f_0 is without bound at i and 0 elsewhere. The graph is a chain with one side edge
    to the sink at each link, where edges in parallel add and those in a series give the least: no solver is needed,
    and inputs of any length will do.

    Args:
        rows: (L, Q, T), the mean over the heads of each layer.
        own: (Q,) each query's own column.

    Returns:
        (L, Q, T), rows summing to 1.
    """
    flow = torch.nn.functional.one_hot(own, rows.shape[-1]).to(rows.dtype)  # anything above 1/2 is without bound
    layers = []
    for weights in rows:
        flow = weights / 2 + flow.clamp(max=0.5)
        layers.append(flow)
    return normalise_rows(torch.stack(layers))

"""Attention flow as a maximum flow, Abnar and Zuidema 2020, section 3."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anaphora.analysis.maps.norms import normalise_rows

CAPACITY_SCALE = 2**24
"""Capacities become whole numbers out of so many: the steps of a single-precision weight just below 1."""


def flow_of_states(maps: NDArray[np.floating], token: int) -> NDArray[np.float64]:
    """Return attention flow (Abnar and Zuidema 2020, section 3): the maximum flow from a state to each embedding.

    The states of all layers are nodes; the edge from state i of layer l to state j of layer l - 1 carries at most
    (A_l / 2 + I / 2)_ij. One maximum-flow problem for each layer and token, so short inputs only.

    Args:
        maps: (L, T, T), A_l, the mean over the heads of each layer.
        token: the state's position in the sentence.

    Returns:
        (L, T), rows summing to 1, for the state after each layer.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    layers, tokens = maps.shape[:2]
    capacities = np.rint((maps + np.eye(tokens)) / 2 * CAPACITY_SCALE).astype(np.int32)
    layer, upper, lower = np.nonzero(capacities)
    nodes = (layers + 1) * tokens
    edges = (capacities[layer, upper, lower], ((layer + 1) * tokens + upper, layer * tokens + lower))
    graph = csr_array(edges, shape=(nodes, nodes))
    flows = np.zeros((layers, tokens))
    for number in range(layers):
        height = (number + 2) * tokens  # what lies above the state cannot be reached from it
        below = graph[:height, :height]
        for other in range(tokens):
            flows[number, other] = maximum_flow(below, (number + 1) * tokens + token, other).flow_value
    totals: NDArray[np.float64] = flows / flows.sum(axis=1, keepdims=True)
    return totals


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

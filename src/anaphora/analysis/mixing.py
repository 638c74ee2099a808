"""How much of each token reaches another, in a layer and through layers: what the maps beyond the raw weight mean.

B batch, T tokens, H heads, D features a head, W width, L layers, Q queries asked for. Every map is a row of weights for
each query, 0 or more, that sums to 1, or is all 0 where nothing at all arrives.

Through layers (rollout, flow) it matters what attention mixes. With `model.values=hidden` layer l mixes the states of
layer l - 1, as in the papers. With `model.values=token` it mixes the tokens' embeddings in every layer, and only the
residual branch carries the state on; the functions `..._of_tokens` are the papers' definitions on that graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow
from torch import Tensor

from anaphora.model.attention import Context
from anaphora.model.block import Block
from anaphora.model.encoder import Encoder

Asked = tuple[Tensor, Tensor]
"""Row and token of each query, two of (Q,)."""

CAPACITY = 2**24
"""Capacities become whole numbers out of so many: the steps of a single-precision weight just below 1."""

_PAIRS = 2**14  # pairs of tokens whose layer output is computed at once: 8 MB a tensor at a width of 128


@dataclass(frozen=True)
class LayerPass:
    """One layer at work on a batch.

    Attributes:
        block: the layer.
        context: what all layers share.
        hidden: (B, T, W) the states that it reads.
        query, key, value: (B, H, T, D) their projections.
        mixed: (B, T, W) what attention made of the values, heads side by side, before the output projection.
    """

    block: Block
    context: Context
    hidden: Tensor
    query: Tensor
    key: Tensor
    value: Tensor
    mixed: Tensor

    def rows(self, asked: Asked) -> Tensor:
        """The weights of single queries: (Q, H, T)."""
        return self.block.attention.rows(self.query, self.key, self.context, asked)

    def maps(self) -> Tensor:
        """The weights of every query: (B, H, T, T)."""
        return self.block.attention.maps(self.query, self.key, self.context)

    def output(self) -> Tensor:
        """The states that it hands on: (B, T, W)."""
        return self.block.complete(self.hidden, self.mixed)


def passes(encoder: Encoder, context: Context) -> Iterator[LayerPass]:
    """One layer after the other, each reading what the one before hands on."""
    hidden, before = context.embedded, None
    for block in encoder.blocks:
        assert isinstance(block, Block)
        hidden = hidden if before is None else before.output()
        query, key, value = block.project(hidden, context)
        mixed = block.attention.mix(query, key, value, context)
        before = LayerPass(block, context, hidden, query, key, value, mixed)
        yield before


def to_one(rows: Tensor) -> Tensor:
    """Rows (..., T) of weights scaled to sum 1; a row of zeros stays one."""
    return rows / rows.sum(dim=-1, keepdim=True).clamp(min=torch.finfo(rows.dtype).tiny)


def value_norms(layer: LayerPass) -> Tensor:
    """How long each token's transformed value is in each head: ||f(x)||, f(x) = W_O V(x), Kobayashi et al. 2020, eq. 4.

    W_O is the head's slice of the output matrix; V holds the value's bias, while that of the output belongs to no
    token and is left out. The norm is taken through the triangular factor of W_O = Q R, ||W_O v|| = ||R v||, so that
    nothing larger than the values themselves is made.

    Returns:
        (B, H, T).
    """
    heads, features = layer.value.shape[1], layer.value.shape[3]
    width = heads * features
    # `finish` is linear but for its bias, in every variant: its matrix is what it makes of the unit vectors.
    units = torch.eye(width, dtype=layer.value.dtype, device=layer.value.device)
    matrix = layer.block.attention.finish(units) - layer.block.attention.finish(torch.zeros_like(units[:1]))
    slices = matrix.view(heads, features, -1).transpose(1, 2)  # (H, W, D)
    _, triangular = torch.linalg.qr(slices, mode="r")
    transformed: Tensor = layer.value @ triangular.transpose(1, 2)
    norms: Tensor = transformed.norm(dim=-1)
    return norms


def weighted_norms(weights: Tensor, norms: Tensor) -> Tensor:
    """The norm of each weighted transformed value, ||alpha f(x)|| = alpha ||f(x)||, Kobayashi et al. 2020, section 3.2.

    The vectors themselves are never built: memory grows as the weights' own, H T^2, and not as H T^2 W.

    Args:
        weights: (..., T) rows of raw weights.
        norms: `value_norms`, broadcastable to them.

    Returns:
        (..., T), rows summing to 1.
    """
    return to_one(weights * norms)


def value_zeroing(layer: LayerPass, weights: Tensor, asked: Asked) -> Tensor:
    """How far a token's layer output turns when another's value is zeroed, Mohebbi et al. 2023, section 3.

    Token j's value vector becomes zero in all heads of this layer alone, weights unchanged; the distance of query i to
    j is 1 - cosine of the layer's outputs at i with and without it (the residual branches, norms and feed-forward
    network of the block included, the encoder's last norm not).

    Args:
        layer: the layer.
        weights: (Q, H, T), its rows for the queries.
        asked: the queries.

    Returns:
        (Q, T), rows summing to 1.
    """
    row, token = asked
    hidden, mixed = layer.hidden[row, token], layer.mixed[row, token]
    whole = _unit(layer.block.complete(hidden, mixed))
    distances = hidden.new_zeros(len(row), weights.shape[-1])
    pairs = torch.nonzero(layer.context.mask[row, 0, token] == 0)
    for query, other in (pairs[start : start + _PAIRS].unbind(dim=1) for start in range(0, len(pairs), _PAIRS)):
        lost = weights[query, :, other].unsqueeze(-1) * layer.value[row[query], :, other]  # (P, H, D)
        less = _unit(layer.block.complete(hidden[query], mixed[query] - lost.flatten(1)))
        # Half the squared chord is 1 - cosine, without the rounding of 1 - something close to 1.
        distances[query, other] = (less - whole[query]).square().sum(dim=-1) / 2
    return to_one(distances)


def _unit(vectors: Tensor) -> Tensor:
    return torch.nn.functional.normalize(vectors, dim=-1)


def rollout_of_states(maps: Tensor) -> Tensor:
    """Attention rollout, Abnar and Zuidema 2020, section 3: R_l = (A_l / 2 + I / 2) R_(l-1), R_0 = I.

    Args:
        maps: (L, ..., T, T), A_l, the mean over the heads of each layer.

    Returns:
        The same shape: how much of each token's embedding is in each state after layer l.
    """
    rolled = torch.eye(maps.shape[-1], dtype=maps.dtype, device=maps.device).expand_as(maps[0])
    found = []
    for weights in maps:
        rolled = (weights @ rolled + rolled) / 2
        found.append(rolled)
    return torch.stack(found)


def rollout_of_tokens(rows: Tensor, own: Tensor) -> Tensor:
    """Attention rollout where every layer mixes the tokens' embeddings: R_l = A_l / 2 + R_(l-1) / 2, R_0 = I.

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
    found = []
    for weights in rows:
        rolled = (weights + rolled) / 2
        found.append(rolled)
    return torch.stack(found)


def flow_of_states(maps: NDArray[np.floating], token: int) -> NDArray[np.float64]:
    """Attention flow, Abnar and Zuidema 2020, section 3: the largest flow from a state to each token's embedding.

    The states of all layers are nodes; the edge from state i of layer l to state j of layer l - 1 carries at most
    (A_l / 2 + I / 2)_ij. One maximum-flow problem for each layer and token, so short inputs only.

    Args:
        maps: (L, T, T), A_l, the mean over the heads of each layer.
        token: the state's place in the sentence.

    Returns:
        (L, T), rows summing to 1, for the state after each layer.
    """
    layers, tokens = maps.shape[:2]
    capacities = np.rint((maps + np.eye(tokens)) / 2 * CAPACITY).astype(np.int32)
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
    """Attention flow where every layer mixes the tokens' embeddings: f_l(j) = A_l(j) / 2 + min(1/2, f_(l-1)(j)).

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
    found = []
    for weights in rows:
        flow = weights / 2 + flow.clamp(max=0.5)
        found.append(flow)
    return to_one(torch.stack(found))

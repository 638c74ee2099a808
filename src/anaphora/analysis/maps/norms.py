"""Maps of one layer that account for values: norms of weighted values, and value zeroing.

B batch, T tokens, H heads, D features per head, W width, Q queries. A map has one row of non-negative weights for each
query. The row sums to 1, or is all 0 if the layer's output does not depend on any token.
"""

from __future__ import annotations

import torch
from torch import Tensor

from anaphora.model.attention import Queries
from anaphora.model.layers import LayerPass

PAIRS = 2**14  # token pairs whose layer outputs are computed at once: 8 MB per tensor at a width of 128


def normalise_rows(rows: Tensor) -> Tensor:
    """Scale rows (..., T) of weights to sum 1; rows of zeros stay zeros."""
    return rows / rows.sum(dim=-1, keepdim=True).clamp(min=torch.finfo(rows.dtype).tiny)


def value_norms(layer: LayerPass) -> Tensor:
    """Return the norm of each token's transformed value: ||f(x)||, f(x) = W_O V(x), Kobayashi et al. 2020, eq. 4.

    W_O is the head's slice of the output matrix. V includes the value bias; the output bias belongs to no token and is
    left out. With W_O = Q R, ||W_O v|| = ||R v||, so that no tensor larger than the values is computed.

    Returns:
        (B, H, T).
    """
    heads, features = layer.value.shape[1], layer.value.shape[3]
    width = heads * features
    # `finish` is affine in every variant, so its images of the unit vectors give its matrix.
    units = torch.eye(width, dtype=layer.value.dtype, device=layer.value.device)
    matrix = layer.block.attention.finish(units) - layer.block.attention.finish(torch.zeros_like(units[:1]))
    slices = matrix.view(heads, features, -1).transpose(1, 2)  # (H, W, D)
    _, triangular = torch.linalg.qr(slices, mode="r")
    transformed: Tensor = layer.value @ triangular.transpose(1, 2)
    norms: Tensor = transformed.norm(dim=-1)
    return norms


def weighted_norms(weights: Tensor, norms: Tensor) -> Tensor:
    """Return the norms of the weighted transformed values, alpha ||f(x)||, Kobayashi et al. 2020, section 3.2.

    The vectors themselves are never computed, so memory is O(H T^2), as for the weights, and not O(H T^2 W).

    Args:
        weights: rows of raw weights, (..., T).
        norms: the layer's `value_norms`, broadcastable to `weights`.

    Returns:
        (..., T), each row scaled to sum 1.
    """
    return normalise_rows(weights * norms)


def value_zeroing(layer: LayerPass, weights: Tensor, queries: Queries) -> Tensor:
    """Return the change in each query's layer output if a token's value is zeroed, Mohebbi et al. 2023, section 3.

    Token j's value vector is zeroed in all heads of this layer alone, with unchanged weights. The entry of query i and
    token j is 1 - cosine of the layer's outputs at i with and without this edit. Outputs include the block's residual
    branches, norms and feed-forward network, but not the encoder's last norm.

    Args:
        layer: forward pass of the layer.
        weights: attention rows of the queries, (Q, H, T).
        queries: batch row and token index of each query.

    Returns:
        (Q, T), each row scaled to sum 1.
    """
    row, token = queries
    hidden, mixed = layer.hidden[row, token], layer.mixed[row, token]
    whole = _unit_vectors(layer.block.complete(hidden, mixed))
    distances = hidden.new_zeros(len(row), weights.shape[-1])
    pairs = torch.nonzero(layer.context.mask[row, 0, token] == 0)
    for query, other in (pairs[start : start + PAIRS].unbind(dim=1) for start in range(0, len(pairs), PAIRS)):
        lost = weights[query, :, other].unsqueeze(-1) * layer.value[row[query], :, other]  # (P, H, D)
        less = _unit_vectors(layer.block.complete(hidden[query], mixed[query] - lost.flatten(1)))
        # Half the squared distance of unit vectors is 1 - cosine, without cancellation near 1.
        distances[query, other] = (less - whole[query]).square().sum(dim=-1) / 2
    return normalise_rows(distances)


def _unit_vectors(vectors: Tensor) -> Tensor:
    return torch.nn.functional.normalize(vectors, dim=-1)

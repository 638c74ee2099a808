"""Norm-based maps, rollout and flow: how much of each token reaches another, in a layer and through layers.

B batch, T tokens, H heads, D features per head, W width, L layers, Q queries. Every map is a row of weights for
each query, 0 or more, that sums to 1, or is all 0 if nothing at all arrives.

Through layers (rollout, flow) it matters what attention mixes. With `model.values=hidden` layer l mixes the states of
layer l - 1, as in the papers. With `model.values=token` it mixes the tokens' embeddings in every layer, and only the
residual branch carries the state on; the functions `..._of_tokens` are the papers' definitions on that graph.
"""

from __future__ import annotations

import torch
from torch import Tensor

from anaphora.model.attention import Queries
from anaphora.model.layers import LayerPass

PAIRS = 2**14  # pairs of tokens whose layer output is computed at once: 8 MB a tensor at a width of 128


def normalise_rows(rows: Tensor) -> Tensor:
    """Return rows (..., T) of weights scaled to sum 1; a row of zeros stays one."""
    return rows / rows.sum(dim=-1, keepdim=True).clamp(min=torch.finfo(rows.dtype).tiny)


def value_norms(layer: LayerPass) -> Tensor:
    """Return the norm of each token's transformed value: ||f(x)||, f(x) = W_O V(x), Kobayashi et al. 2020, eq. 4.

    W_O is the head's slice of the output matrix; V holds the value's bias, while that of the output belongs to no
    token and is left out. The norm is taken through the triangular factor of W_O = Q R, ||W_O v|| = ||R v||, so that
    nothing larger than the values themselves is computed.

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
    """Return the norm of each weighted transformed value, alpha ||f(x)||, Kobayashi et al. 2020, section 3.2.

    The vectors themselves are never built, so memory is O(H T^2), as for the weights, and not O(H T^2 W).

    Args:
        weights: (..., T) rows of raw weights.
        norms: `value_norms`, broadcastable to them.

    Returns:
        (..., T), rows summing to 1.
    """
    return normalise_rows(weights * norms)


def value_zeroing(layer: LayerPass, weights: Tensor, queries: Queries) -> Tensor:
    """Return the change of a token's layer output when another's value is zeroed, Mohebbi et al. 2023, section 3.

    Token j's value vector becomes zero in all heads of this layer alone, weights unchanged; the distance of query i to
    j is 1 - cosine of the layer's outputs at i with and without it (the residual branches, norms and feed-forward
    network of the block included, the encoder's last norm not).

    Args:
        layer: the layer.
        weights: (Q, H, T), its rows for the queries.
        queries: rows and tokens.

    Returns:
        (Q, T), rows summing to 1.
    """
    row, token = queries
    hidden, mixed = layer.hidden[row, token], layer.mixed[row, token]
    whole = _unit_vectors(layer.block.complete(hidden, mixed))
    distances = hidden.new_zeros(len(row), weights.shape[-1])
    pairs = torch.nonzero(layer.context.mask[row, 0, token] == 0)
    for query, other in (pairs[start : start + PAIRS].unbind(dim=1) for start in range(0, len(pairs), PAIRS)):
        lost = weights[query, :, other].unsqueeze(-1) * layer.value[row[query], :, other]  # (P, H, D)
        less = _unit_vectors(layer.block.complete(hidden[query], mixed[query] - lost.flatten(1)))
        # Half the squared chord is 1 - cosine, without the rounding of 1 - something close to 1.
        distances[query, other] = (less - whole[query]).square().sum(dim=-1) / 2
    return normalise_rows(distances)


def _unit_vectors(vectors: Tensor) -> Tensor:
    return torch.nn.functional.normalize(vectors, dim=-1)

"""Attribution maps: norms of weighted values and value zeroing in one layer, and integrated gradients of the answer.

Axes are B (batch), T (tokens), H (heads), D (features per head), W (width), Q (queries), R (rows of a batch, each with
one or more sentences) and N (items). In a map of one layer, each query has a row of non-negative weights, which sums to
1, or is all 0 if the layer's output depends on no token.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from anaphora.analysis.maps.answers import NO_CANDIDATE
from anaphora.base.batch import Batch
from anaphora.base.errors import UserError
from anaphora.model.attention import Queries
from anaphora.model.layers import LayerPass, layer_passes
from anaphora.model.mixer import AttentionContext
from anaphora.model.prediction import EncoderOutput
from anaphora.model.pronoun_model import PronounModel
from anaphora.settings.vocabulary import PADDING

PAIRS = 2**14  # pairs of query and token whose layer outputs are computed at once: 8 MB per tensor at a width of 128


def normalise_rows(rows: Tensor) -> Tensor:
    """Scale rows (..., T) of weights to sum to 1; rows of zeros stay zeros."""
    return rows / rows.sum(dim=-1, keepdim=True).clamp(min=torch.finfo(rows.dtype).tiny)


def value_norms(layer: LayerPass) -> Tensor:
    """Return the norm of each token's transformed value: ||f(x)||, f(x) = W_O V(x), Kobayashi et al. 2020, eq. 4.

    The norms are (B, H, T). W_O is the head's slice of the output matrix. V includes the value bias; the output bias
    belongs to no token and is left out. The QR decomposition W_O = Q R saves memory, since ||W_O v|| = ||R v||.
    """
    heads, features = layer.value.shape[1], layer.value.shape[3]
    width = heads * features
    # `finish` is affine in every variant, so its images of the unit vectors give its matrix.
    units = torch.eye(width, dtype=layer.value.dtype, device=layer.value.device)
    matrix = layer.block.attention.finish(units) - layer.block.attention.finish(torch.zeros_like(units[:1]))
    slices = matrix.view(heads, features, -1).transpose(1, 2)  # (H, W, D)
    _, triangular = torch.linalg.qr(slices, mode="r")
    norms: Tensor = (layer.value @ triangular.transpose(1, 2)).norm(dim=-1)
    return norms


def weighted_norms(weights: Tensor, norms: Tensor) -> Tensor:
    """Return the norms of the weighted transformed values, alpha ||f(x)||, Kobayashi et al. 2020, section 3.2.

    Only norms are computed, so memory is O(H T^2), as for the weights. Each row, (..., T), is scaled to sum to 1.
    """
    return normalise_rows(weights * norms)


def value_zeroing(layer: LayerPass, weights: Tensor, queries: Queries) -> Tensor:
    """Return how much the layer's output at each query changes if a token's value is zeroed, Mohebbi et al. 2023.

    As in section 3, token j's value is zeroed in all heads of this layer; attention weights do not change. The entry of
    query i and token j is 1 - cosine of the layer's outputs at i with and without this edit. Outputs include the
    block's residual connections, norms and feed-forward network, but not the encoder's last norm. `weights` holds the
    queries' attention rows, (Q, H, T). The result is (Q, T), with each row scaled to sum to 1.
    """
    row, token = queries
    hidden, mixed = layer.hidden[row, token], layer.mixed[row, token]
    whole = functional.normalize(layer.block.complete(hidden, mixed), dim=-1)
    distances = hidden.new_zeros(len(row), weights.shape[-1])
    pairs = torch.nonzero(layer.context.mask[row, 0, token] == 0)
    for query, other in (pairs[start : start + PAIRS].unbind(dim=1) for start in range(0, len(pairs), PAIRS)):
        lost = weights[query, :, other].unsqueeze(-1) * layer.value[row[query], :, other]  # (P, H, D)
        less = functional.normalize(layer.block.complete(hidden[query], mixed[query] - lost.flatten(1)), dim=-1)
        # Half the squared distance of unit vectors is 1 - cosine, without cancellation near 1.
        distances[query, other] = (less - whole[query]).square().sum(dim=-1) / 2
    return normalise_rows(distances)


INTEGRATION_STEPS = 32
"""Number of points on the path at which gradients are taken."""


@dataclass(frozen=True)
class Attribution:
    """Contributions of a batch's tokens to the answers."""

    tokens: Tensor  # each token's contribution, negative if it lowers the answer's score, (R, T)
    answers: Tensor  # index of the predicted candidate, or `NO_CANDIDATE`, (N,)
    difference: Tensor  # the answer's score minus its score at the baseline, (N,); about the sum over `tokens`


def integrated_gradients(model: PronounModel, batch: Batch, steps: int = INTEGRATION_STEPS) -> Attribution:
    """Return integrated gradients of the model's own answer, Sundararajan et al. 2017, section 3.

    The explained score is that of the model's answer, right or wrong; gradients of the right answer would favour the
    antecedent by construction. The path starts from a baseline with [PAD] for every token and the same positions and
    candidate marks. A baseline of zeros is unsuitable: layer norms map x and x / 100 to the same vector, so that the
    score would change only in the first hundredth of the path. The integral is computed by Gauss-Legendre quadrature at
    `steps` points. Sentences do not attend to each other, so one gradient serves the whole batch.

    Raises:
        UserError: the model does not predict antecedents, or `steps` is below 1.
    """
    if steps < 1:
        raise UserError(f"steps ({steps}) must be at least 1")
    encoder = model.encoder
    with torch.no_grad():
        tokens = model.encoder_input(batch)
        context = encoder.make_context(tokens)
        baseline = encoder.embed(replace(tokens, ids=torch.full_like(batch.inputs, PADDING)))
        scores = _scores(model, batch, context, context.embeddings)
        chosen = scores.argmax(dim=1, keepdim=True)
        at_baseline = _scores(model, batch, context, baseline)
        difference = (scores - at_baseline).gather(1, chosen).squeeze(1)
    path = context.embeddings - baseline
    total = torch.zeros_like(path)
    points, weights = np.polynomial.legendre.leggauss(steps)
    for point, weight in zip((points + 1) / 2, weights / 2, strict=True):
        embedded = (baseline + float(point) * path).requires_grad_()
        with torch.enable_grad():
            score = _scores(model, batch, context, embedded).gather(1, chosen).sum()
            (gradient,) = torch.autograd.grad(score, embedded)
        total += float(weight) * gradient
    answers = chosen.squeeze(1)
    return Attribution(
        tokens=(path * total).sum(dim=-1),
        answers=answers.masked_fill(answers == scores.shape[1] - 1, NO_CANDIDATE),
        difference=difference,
    )


def _scores(model: PronounModel, batch: Batch, context: AttentionContext, embedded: Tensor) -> Tensor:
    """Return the prediction head's scores (N, M + 1; "none of them" last) for the input embeddings (R, T, W)."""
    queries = batch.row_and_token(batch.query_positions)
    rows = []
    for layer in layer_passes(model.encoder.layers, replace(context, embeddings=embedded)):
        if model.prediction_head.needs_rows():
            rows.append(layer.rows(queries))
    # The last layer computes only the needed states, which saves a fifth of the work in a model of three layers.
    needed: Tensor = torch.unique(torch.cat((*model.prediction_head.read_positions(batch), batch.masked_positions)))
    states = layer.output(needed)
    hidden = embedded.new_zeros(batch.ids.numel(), embedded.shape[-1])
    hidden = hidden.index_copy(0, needed, model.encoder.norm(states))
    return model.prediction_head.scores(EncoderOutput(hidden, torch.stack(rows) if rows else None), batch)

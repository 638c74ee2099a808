"""Integrated gradients: contribution of each token's embedding to the score of the model's answer."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from anaphora.analysis.maps.answers import NO_CANDIDATE
from anaphora.base.batch import Batch
from anaphora.base.errors import UserError
from anaphora.base.special_tokens import PADDING
from anaphora.model.layers import layer_passes
from anaphora.model.mixer import AttentionContext
from anaphora.model.prediction import EncoderOutput
from anaphora.model.pronoun_model import PronounModel

INTEGRATION_STEPS = 32
"""Number of points on the path at which gradients are taken."""


@dataclass(frozen=True)
class Attribution:
    """Contributions of a batch's tokens to the answers; R packed rows, N items.

    Attributes:
        tokens: each token's contribution, negative if it lowers the answer's score, (R, T).
        answers: index of the predicted candidate, or `NO_CANDIDATE`, (N,).
        difference: the answer's score minus its score at the baseline, (N,). It equals the sum over the item's tokens
            up to the error of the quadrature.
    """

    tokens: Tensor
    answers: Tensor
    difference: Tensor


def integrated_gradients(model: PronounModel, batch: Batch, steps: int = INTEGRATION_STEPS) -> Attribution:
    """Return integrated gradients of the model's own answer, Sundararajan et al. 2017, section 3.

    The explained score is that of the model's answer, right or wrong; gradients of the gold answer would favour gold by
    construction. The path leads to the input from a baseline with [PAD] for every token and the same positions and
    candidate marks. A zero embedding is not a suitable baseline: layer norms map x and x / 100 to the same vector, so
    that the score changes only in the first hundredth of the path. The integral is computed by Gauss-Legendre
    quadrature.

    Args:
        model: the model, in evaluation mode.
        batch: packed rows; sentences do not attend to each other, so one gradient serves the whole batch.
        steps: number of points on the path, at least 1.

    Raises:
        UserError: the model has no prediction head, or `steps` is below 1.
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
    """Return the prediction head's scores (N, M + 1) for the input embeddings `embedded` (R, T, W)."""
    length = batch.ids.shape[1]
    queries = (batch.query_positions // length, batch.query_positions % length)
    rows = []
    for layer in layer_passes(model.encoder.layers, replace(context, embeddings=embedded)):
        if model.prediction_head.needs_rows():
            rows.append(layer.rows(queries))
    # Other states of the last layer are not needed; leaving them out saves a fifth of the work of three layers.
    needed: Tensor = torch.unique(torch.cat((*model.prediction_head.read_positions(batch), batch.masked_positions)))
    states = layer.output(needed)
    hidden = embedded.new_zeros(batch.ids.numel(), embedded.shape[-1])
    hidden = hidden.index_copy(0, needed, model.encoder.norm(states))
    return model.prediction_head.scores(EncoderOutput(hidden, torch.stack(rows) if rows else None), batch)

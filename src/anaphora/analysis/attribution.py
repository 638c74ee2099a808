"""Integrated gradients: how much each token's embedding adds to the score of the answer that the model gives."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from anaphora.analysis.mixing import passes
from anaphora.data.batch import Batch
from anaphora.errors import UserError
from anaphora.model.attention import Context
from anaphora.model.readout import Seen
from anaphora.model.resolver import Resolver
from anaphora.specials import PADDING

STEPS = 32
"""Points on the path at which gradients are taken."""


@dataclass(frozen=True)
class Attribution:
    """What the tokens of a batch add to the answers.

    Attributes:
        tokens: (R, T) what each token adds, negative where it speaks against the answer.
        answers: (N,) the candidate that the model names; -1 is "none of them".
        difference: (N,) the answer's score less its score at the baseline; the sum over the item's tokens, but for the
            error of the quadrature.
    """

    tokens: Tensor
    answers: Tensor
    difference: Tensor


def integrated_gradients(resolver: Resolver, batch: Batch, steps: int = STEPS) -> Attribution:
    """Integrated gradients of the model's own answer, Sundararajan et al. 2017, section 3.

    The score is the read-out's, of the answer it gives to the whole input, right or wrong: gradients of the gold answer
    point at gold by construction. The path leads from the baseline, the same places (and marks of candidates) with
    [PAD] for every token, to the input. A zero embedding would be no baseline here: norms make of x and of x / 100 the
    same, so that all of the score would change in the first hundredth of the path. The integral is taken by
    Gauss-Legendre quadrature.

    Args:
        resolver: in evaluation mode.
        batch: packed rows; sentences do not see each other, so one gradient serves all of a batch.
        steps: at least 1.

    Raises:
        UserError: the model has no read-out, or `steps` is below 1.
    """
    if steps < 1:
        raise UserError(f"steps ({steps}) must be at least 1")
    encoder = resolver.encoder
    with torch.no_grad():
        marks = resolver.readout.marks(batch.slots)
        context = encoder.begin(batch.inputs, batch.places, batch.segments, marks, resolver.second(batch))
        baseline = encoder.embed(torch.full_like(batch.inputs, PADDING), batch.places, marks)
        scores = _scores(resolver, batch, context, context.embedded)
        chosen = scores.argmax(dim=1, keepdim=True)
        at_baseline = _scores(resolver, batch, context, baseline)
        difference = (scores - at_baseline).gather(1, chosen).squeeze(1)
    path = context.embedded - baseline
    total = torch.zeros_like(path)
    points, weights = np.polynomial.legendre.leggauss(steps)
    for point, weight in zip((points + 1) / 2, weights / 2, strict=True):
        embedded = (baseline + float(point) * path).requires_grad_()
        with torch.enable_grad():
            score = _scores(resolver, batch, context, embedded).gather(1, chosen).sum()
            (gradient,) = torch.autograd.grad(score, embedded)
        total += float(weight) * gradient
    answers = chosen.squeeze(1)
    return Attribution(
        tokens=(path * total).sum(dim=-1),
        answers=answers.masked_fill(answers == scores.shape[1] - 1, -1),
        difference=difference,
    )


def _scores(resolver: Resolver, batch: Batch, context: Context, embedded: Tensor) -> Tensor:
    """The read-out's scores (N, M + 1) where the first layer reads `embedded` (R, T, W)."""
    length = batch.ids.shape[1]
    asked = (batch.query_positions // length, batch.query_positions % length)
    rows = []
    for layer in passes(resolver.encoder, replace(context, embedded=embedded)):
        if resolver.readout.needs_rows():
            rows.append(layer.rows(asked))
    # Nobody reads the last layer's other states: a fifth of the work of three layers.
    needed: Tensor = torch.unique(torch.cat((*resolver.readout.looks_at(batch), batch.masked_positions)))
    states = layer.block.complete(layer.hidden.flatten(0, 1)[needed], layer.mixed.flatten(0, 1)[needed])
    hidden = embedded.new_zeros(batch.ids.numel(), embedded.shape[-1])
    hidden = hidden.index_copy(0, needed, resolver.encoder.norm(states))
    return resolver.readout.scores(Seen(hidden, torch.stack(rows) if rows else None), batch)

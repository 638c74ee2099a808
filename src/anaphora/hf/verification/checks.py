"""Check each map of a model of `transformers` before anything is computed from it. H heads, T tokens, R rows."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from anaphora.analysis.results.scores import Head
from anaphora.base.errors import UserError
from anaphora.base.locale.translation import N_
from anaphora.hf.verification.reading import MapReading
from anaphora.model.attention import Queries

_TOLERANCES = {torch.float16: 4e-3, torch.bfloat16: 2e-2}
"""How far from 1 the sum of a row may be, by the type of its weights."""
_TOLERANCE_OF_FLOATS = 1e-4

_NEGATIVE = N_("{model}: a row of layer {layer} head {head} has the weight {value}; expected finite numbers, 0 or more")
_WRONG_SUM = N_("{model}: a row of layer {layer} head {head} sums to {value}; expected 1")
_HIDDEN = N_("{model}: a row of layer {layer} head {head} gives {value} to tokens that it cannot see; expected 0")


def row_tolerance(weights: torch.dtype) -> float:
    """Return the largest allowed distance from 1 of a row's sum for a data type."""
    return _TOLERANCES.get(weights, _TOLERANCE_OF_FLOATS)


def check_maps(
    kept: Sequence[Tensor],
    reading: MapReading,
    model: str,
    real: Tensor,
    queries: Queries | None = None,
    head: Head | None = None,
) -> None:
    """Check that the tensors read from every layer, or from one head, are attention weights.

    Args:
        kept: whole maps, (B, H, T, T), or the rows of some tokens, (Q, H, T).
        reading: how it was read.
        model: name and family, for messages.
        real: (B, T), True for tokens that are not padding.
        queries: rows of the batch and tokens of single rows, two of (Q,).
        head: the one that was read; None for all.

    Raises:
        UserError: as `check_rows`.
    """
    text, token = real.nonzero(as_tuple=True) if queries is None else queries
    visible = real[text]
    if reading.is_decoder:
        visible = visible & (torch.arange(real.shape[1], device=real.device) <= token[:, None])
    for layer, weights in zip(reading.layers if head is None else (head.layer,), kept, strict=True):
        rows = weights[text, :, token] if queries is None else weights
        check_rows(rows, visible, layer, reading.has_sink, model, head.head if head else 0)


def check_rows(rows: Tensor, visible: Tensor, layer: int, has_sink: bool, model: str, first_head: int = 0) -> None:
    """Check that rows are attention weights.

    Args:
        rows: (R, H, T).
        visible: (R, T), the tokens to which each row may give weight.
        layer: the model's number of the layer.
        has_sink: whether a share of each row may go to a sink instead.
        model: name and family, for the message.
        first_head: the model's number of the first of these heads.

    Raises:
        UserError: a weight is negative or no number, a token that is not visible has weight, or a row does not sum to
            1; the message names layer, head and value.
    """
    tolerance = row_tolerance(rows.dtype)
    weights = rows.float()
    sums = weights.sum(dim=-1)
    hidden = (weights * ~visible[:, None]).sum(dim=-1)
    least = weights.amin(dim=-1)
    wrong_sum = (sums > 1 + tolerance) if has_sink else ~((sums - 1).abs() <= tolerance)
    for message, values, wrong in (
        (_NEGATIVE, least, ~(least >= 0)),
        (_WRONG_SUM, sums, wrong_sum),
        (_HIDDEN, hidden, hidden > tolerance),
    ):
        if bool(wrong.any()):
            row, head = wrong.nonzero()[0].tolist()
            value = f"{float(values[row, head]):.4g}"
            raise UserError(message, model=model, layer=layer, head=first_head + head, value=value)

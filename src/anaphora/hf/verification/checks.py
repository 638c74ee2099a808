"""Checks that the maps of a model of `transformers` are attention weights. H heads, T tokens, R rows."""

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
"""Maximum deviation of a row's sum from 1, by data type of the weights."""
_TOLERANCE_OF_FLOATS = 1e-4
"""Maximum deviation for float32 and other types."""

_NEGATIVE = N_("{model}: a row of layer {layer} head {head} has the weight {value}; expected finite numbers, 0 or more")
_WRONG_SUM = N_("{model}: a row of layer {layer} head {head} sums to {value}; expected 1")
_HIDDEN = N_("{model}: a row of layer {layer} head {head} gives {value} to tokens that it cannot see; expected 0")


def row_tolerance(weights: torch.dtype) -> float:
    """Return the maximum deviation of a row's sum from 1 for weights of a data type."""
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
        kept: one tensor per layer: whole maps, (B, H, T, T), or the rows of some tokens, (Q, H, T).
        reading: how the tensors were read.
        model: name and family of the model, for messages.
        real: (B, T), False at padding.
        queries: batch rows and token indices of single rows, two of (Q,); None for whole maps.
        head: the head that was read; None for all heads.

    Raises:
        UserError: as in `check_rows`.
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
        visible: (R, T), True at the tokens to which a row may attend.
        layer: the model's own index of the layer.
        has_sink: whether an attention sink may take a share of each row.
        model: name and family of the model, for messages.
        first_head: index in the layer of the first head in `rows`.

    Raises:
        UserError: a weight is negative or NaN, a token that is not visible has weight, or a row does not sum to 1; the
            message names layer, head and value.
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

"""Description of how the attention maps of a `transformers` model are read, and checks of the maps.

In shapes, L is the number of layers, H of heads, T of tokens, B of texts and Q of queries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from anaphora.analysis.results.scores import Head
from anaphora.base.errors import UserError
from anaphora.base.translation import N_
from anaphora.data.tokens.tokenizer import TokenizedText
from anaphora.hf import interface
from anaphora.hf.editing import EditPoint
from anaphora.model.attention import Queries

SINK = "[sink]"
"""Label of an attention sink, which precedes the tokens of a text."""
_TOLERANCES = {torch.float16: 4e-3, torch.bfloat16: 2e-2}
"""Maximum deviation of a row's sum from 1, by data type of the weights."""
_TOLERANCE_OF_FLOATS = 1e-4
"""Maximum deviation for float32 and other types."""

_NEGATIVE = N_("{model}: a row of layer {layer} head {head} has the weight {value}; expected finite numbers, 0 or more")
_WRONG_SUM = N_("{model}: a row of layer {layer} head {head} sums to {value}; expected 1")
_HIDDEN = N_("{model}: a row of layer {layer} head {head} gives {value} to tokens that it cannot see; expected 0")


@dataclass(frozen=True)
class MapReading:
    """Description of how the attention maps of a model are read, and of their layout."""

    implementation: str | None  # name of the attention implementation during reading; None for the model's own
    layers: tuple[int, ...]  # the model's own index of each layer with attention, in the order of the maps
    heads: int  # number of heads per layer
    is_decoder: bool  # whether attention is causal
    has_sink: bool  # whether an attention sink takes a share of the attention in some layer
    alone: bool  # whether each text must run in a batch of one, because other texts or padding may change its maps
    has_types: bool  # whether the model gets token types with a single text
    # Operations at which the maps are recorded; None if the model or an attention function returns them.
    points: tuple[EditPoint, ...] | None = None

    @property
    def options(self) -> Mapping[str, Any]:
        """Return the arguments that make a forward pass return its maps; empty if maps are recorded in another way."""
        is_returned = self.implementation != interface.NAME and self.points is None
        return {"output_attentions": True} if is_returned else {}


def tokens_with_sink(tokens: TokenizedText) -> TokenizedText:
    """Return the tokens of a text, preceded by the attention sink, which counts as a special token."""
    return replace(
        tokens,
        ids=(-1, *tokens.ids),
        spans=((0, 0), *tokens.spans),
        words=(-1, *tokens.words),
        special=(SINK, *tokens.special),
    )


def all_layers(weights: Tensor, reading: MapReading) -> Tensor:
    """Complete attention weights: add the attention sink, if there is one, and zeros for layers without attention.

    Layers after the last layer with attention are not added. The weights are those of all queries, (L, H, T, T), or of
    one query, (L, H, T).
    """
    weights = with_sink(weights, reading)
    if reading.layers == tuple(range(len(reading.layers))):
        return weights
    every = weights.new_zeros(reading.layers[-1] + 1, *weights.shape[1:])
    every[list(reading.layers)] = weights
    return every


def with_sink(weights: Tensor, reading: MapReading) -> Tensor:
    """Add the attention sink, if there is one, to attention weights, (L, H, T, T), or (L, H, T) for one query.

    The sink precedes the tokens and attends only to itself. A query's weight on it is 1 minus those on the tokens.
    """
    if not reading.has_sink:
        return weights
    share = (1 - weights.sum(dim=-1, keepdim=True)).clamp(min=0)
    weights = torch.cat((share, weights), dim=-1)
    if weights.dim() == 4:
        weights = functional.pad(weights, (0, 0, 1, 0))
        weights[..., 0, 0] = 1
    return weights


def row_tolerance(weights: torch.dtype) -> float:
    """Return how far the sum of an attention row may deviate from 1, given the data type of the weights."""
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
        kept: one tensor per layer: whole maps, (B, H, T, T), or the rows of `queries`, (Q, H, T).
        model: name and family of the model, for messages.
        real: (B, T) mask, False at padding.
        queries: two tensors, (Q,) each: batch row and token index of each query; None for whole maps.
        head: the only head in `kept`; None if `kept` has all layers and heads.

    Raises:
        UserError: a weight is negative or NaN; a token that padding or the causal mask hides has a weight above 0; or
            the sum of a row is not 1 (with an attention sink, at most 1). The message names layer, head and value.
    """
    text, token = real.nonzero(as_tuple=True) if queries is None else queries
    visible = real[text]
    if reading.is_decoder:
        visible = visible & (torch.arange(real.shape[1], device=real.device) <= token[:, None])
    for layer, weights in zip(reading.layers if head is None else (head.layer,), kept, strict=True):
        rows = (weights[text, :, token] if queries is None else weights).float()
        tolerance = row_tolerance(weights.dtype)
        sums, least = rows.sum(dim=-1), rows.amin(dim=-1)
        hidden = (rows * ~visible[:, None]).sum(dim=-1)
        wrong_sum = (sums > 1 + tolerance) if reading.has_sink else ~((sums - 1).abs() <= tolerance)
        for message, values, wrong in (
            (_NEGATIVE, least, ~(least >= 0)),
            (_WRONG_SUM, sums, wrong_sum),
            (_HIDDEN, hidden, hidden > tolerance),
        ):
            if bool(wrong.any()):
                row, place = wrong.nonzero()[0].tolist()
                value = f"{float(values[row, place]):.4g}"
                number = place + (head.head if head else 0)
                raise UserError(message, model=model, layer=layer, head=number, value=value)

"""Maps under the model's own layer numbers, and with a column for its sink. L layers, H heads, T tokens."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional

from anaphora.data.tokens.tokenizer import TokenizedText
from anaphora.hf.verification.reading import MapReading

SINK = "[sink]"
"""The name of the sink among the tokens of a text; it stands before them."""


def tokens_with_sink(tokens: TokenizedText) -> TokenizedText:
    """Return the tokens of a text with the sink as a special token before them."""
    return replace(
        tokens,
        ids=(-1, *tokens.ids),
        spans=((0, 0), *tokens.spans),
        words=(-1, *tokens.words),
        special=(SINK, *tokens.special),
    )


def placed(weights: Tensor, reading: MapReading) -> Tensor:
    """Return weights of every layer, also of those that do not attend, whose weights are 0.

    Args:
        weights: of the layers that attend, whole maps (L, H, T, T) or single rows (L, H, T).
        reading: which layers these are, and whether there is a sink.

    Returns:
        The same with as many layers as the last number needs, and with a sink as `with_sink` returns it.
    """
    weights = with_sink(weights, reading)
    if reading.layers == tuple(range(len(reading.layers))):
        return weights
    every = weights.new_zeros(reading.layers[-1] + 1, *weights.shape[1:])
    every[list(reading.layers)] = weights
    return every


def with_sink(weights: Tensor, reading: MapReading) -> Tensor:
    """Return weights, (L, H, T, T) or (L, H, T), with the column of the sink if there is one.

    A sink has what a row lacks of 1. It is the first column; whole maps also have one row more, in which it gives all
    weight to itself.
    """
    if not reading.has_sink:
        return weights
    share = (1 - weights.sum(dim=-1, keepdim=True)).clamp(min=0)
    weights = torch.cat((share, weights), dim=-1)
    if weights.dim() == 4:
        weights = functional.pad(weights, (0, 0, 1, 0))
        weights[..., 0, 0] = 1
    return weights

"""Settings and layout of the attention maps read from a `transformers` model. L layers, H heads, T tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from anaphora.data.tokens.tokenizer import TokenizedText
from anaphora.hf import interface
from anaphora.hf.editing import EditPoint

SINK = "[sink]"
"""Label of an attention sink, which comes before the tokens of a text."""


@dataclass(frozen=True)
class MapReading:
    """How a model's attention maps are read.

    Attributes:
        implementation: name of the attention implementation during reading; None for the model's own.
        layers: the model's own index of each layer that attends, in the order of the maps.
        heads: number of heads per layer.
        is_decoder: whether attention is causal.
        has_sink: whether an attention sink takes a share of the rows in some layer.
        alone: whether each text must run alone, because padding changes its maps.
        points: operations at which the maps are recorded; None if the model returns or records its maps otherwise.
    """

    implementation: str | None
    layers: tuple[int, ...]
    heads: int
    is_decoder: bool
    has_sink: bool
    alone: bool
    points: tuple[EditPoint, ...] | None = None

    @property
    def options(self) -> Mapping[str, Any]:
        """Return the arguments with which a forward pass returns its maps; empty if maps are recorded otherwise."""
        is_returned = self.implementation != interface.NAME and self.points is None
        return {"output_attentions": True} if is_returned else {}


def tokens_with_sink(tokens: TokenizedText) -> TokenizedText:
    """Return the tokens of a text after the sink, which counts as a special token."""
    return replace(
        tokens,
        ids=(-1, *tokens.ids),
        spans=((0, 0), *tokens.spans),
        words=(-1, *tokens.words),
        special=(SINK, *tokens.special),
    )


def placed(weights: Tensor, reading: MapReading) -> Tensor:
    """Return weights of every layer, with zeros for layers that do not attend, and with the sink.

    Args:
        weights: weights of the layers that attend, whole maps (L, H, T, T) or single rows (L, H, T).
        reading: indices of these layers, and whether there is a sink.

    Returns:
        Weights of all layers up to the last that attends, with the sink as in `with_sink`.
    """
    weights = with_sink(weights, reading)
    if reading.layers == tuple(range(len(reading.layers))):
        return weights
    every = weights.new_zeros(reading.layers[-1] + 1, *weights.shape[1:])
    every[list(reading.layers)] = weights
    return every


def with_sink(weights: Tensor, reading: MapReading) -> Tensor:
    """Add the sink, if there is one, to weights (L, H, T, T) or (L, H, T).

    The sink takes the share by which a row falls short of 1, as the first column. Whole maps also get a first row, in
    which the sink attends only to itself.
    """
    if not reading.has_sink:
        return weights
    share = (1 - weights.sum(dim=-1, keepdim=True)).clamp(min=0)
    weights = torch.cat((share, weights), dim=-1)
    if weights.dim() == 4:
        weights = functional.pad(weights, (0, 0, 1, 0))
        weights[..., 0, 0] = 1
    return weights

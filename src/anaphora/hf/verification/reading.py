"""How the maps of a model of `transformers` are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from anaphora.hf import interface
from anaphora.hf.editing import EditPoint


@dataclass(frozen=True)
class MapReading:
    """The way in which a model's attention maps are read.

    Attributes:
        implementation: the name of the attention that the model computes with while it is read; None for its own.
        layers: the model's own number of each layer that attends, in the order of its maps.
        heads: of each layer.
        is_decoder: whether its attention is causal.
        has_sink: whether the rows of some layer lack the share of a sink.
        alone: whether each text must be read by itself, because padding changes the maps of what is before it.
        points: the operations whose weights are the maps, if the model does not return them; None if it does.
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
        """Return the arguments of the forward pass; if maps are needed, those with which the model returns them."""
        is_returned = self.implementation != interface.NAME and self.points is None
        return {"output_attentions": True} if is_returned else {}

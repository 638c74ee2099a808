"""Queries, keys or values traded between the tokens of a sentence, to see what each of the three is needed for.

B batch, H heads, T tokens, D features a head.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import torch
from torch import Tensor

from anaphora.errors import UserError
from anaphora.model.attention import Context
from anaphora.model.block import Block
from anaphora.model.encoder import Encoder

PARTS = ("query", "key", "value")


class Project(Protocol):
    """What makes a layer's queries, keys and values."""

    def __call__(self, hidden: Tensor, content: Tensor, context: Context) -> tuple[Tensor, Tensor, Tensor]: ...


@contextmanager
def shuffled(encoder: Encoder, part: str, seed: int) -> Iterator[None]:
    """Let every layer deal queries, keys or values out anew among the tokens of each sentence, inside the `with` block.

    The seed decides; every layer and pass is dealt anew. What positions did to a query or a key goes with it.

    Raises:
        UserError: the encoder has no attention, or there is no such part.
    """
    if part not in PARTS or not encoder.has_maps:
        raise UserError(f"shuffled ({part!r}) must be one of {', '.join(PARTS)}, in an encoder with attention")
    draw = torch.Generator().manual_seed(seed)
    layers = [block.attention for block in encoder.blocks if isinstance(block, Block)]
    try:
        for layer in layers:
            layer.project = _trading(layer.project, PARTS.index(part), draw)  # type: ignore[method-assign]
        yield
    finally:
        for layer in layers:
            del layer.project  # what the class says holds again


def _trading(project: Project, part: int, draw: torch.Generator) -> Project:
    def traded(hidden: Tensor, content: Tensor, context: Context) -> tuple[Tensor, Tensor, Tensor]:
        made = list(project(hidden, content, context))
        order = drawn_order(context.segments, draw)
        made[part] = made[part].gather(2, order[:, None, :, None].expand_as(made[part]))
        return made[0], made[1], made[2]

    return traded


def drawn_order(segments: Tensor, draw: torch.Generator) -> Tensor:
    """For every token one of its sentence, each taken once: (B, T) sentence numbers -> (B, T) places in the row."""
    keys = segments + 0.999 * torch.rand(segments.shape, generator=draw).to(segments.device)
    order = torch.empty_like(segments)
    return order.scatter(1, segments.argsort(dim=1, stable=True), keys.argsort(dim=1))

"""Forward passes of a model of `transformers`, with padding and evaluation mode. B texts, T tokens, H heads."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from anaphora.hf.loading import quiet
from anaphora.hf.parts import errors_in_one_line
from anaphora.hf.verification.restoring import Snapshot, restored

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Inputs = Mapping[str, Tensor]
_HELD: ContextVar[tuple[PreTrainedModel, str | None, Snapshot] | None] = ContextVar("held", default=None)


def padded_inputs(texts: Sequence[Sequence[int]], padding: int, device: torch.device) -> dict[str, Tensor]:
    """Return the ids and the attention mask of texts, padded on the right: (B, T) each."""
    mask = padded([[1] * len(text) for text in texts], 0, device)
    return {"input_ids": padded(texts, padding, device), "attention_mask": mask}


def padded(rows: Sequence[Sequence[int]], padding: int, device: torch.device) -> Tensor:
    """Return rows of integers as a tensor, padded on the right: (B, T)."""
    length = max(map(len, rows))
    return torch.tensor([[*row, *[padding] * (length - len(row))] for row in rows], device=device)


@contextlib.contextmanager
def reading_mode(model: PreTrainedModel, implementation: str | None) -> Iterator[Snapshot]:
    """Set a model to evaluation mode and an attention implementation inside the `with` block, then restore it.

    Args:
        model: model in any mode.
        implementation: name of the attention implementation in transformers; None keeps the model's own.
    """
    held = _HELD.get()
    if held is not None and held[:2] == (model, implementation):
        try:
            yield held[2]
        finally:
            held[2].restore()
        return
    with restored(model) as before:
        model.eval()
        model.config.return_dict = True
        if implementation is not None and implementation != model.config._attn_implementation:
            with quiet():
                model.set_attn_implementation(implementation)
            # Some families refuse the change although they read this attribute in every pass.
            model.config._attn_implementation_internal = implementation
        yield before


@contextlib.contextmanager
def held_in_reading_mode(model: PreTrainedModel, implementation: str | None) -> Iterator[None]:
    """Keep a model in `reading_mode` for many passes; after each, only what the pass has altered is restored."""
    with reading_mode(model, implementation):
        token = _HELD.set((model, implementation, Snapshot(model)))
        try:
            yield
        finally:
            _HELD.reset(token)


def run_model(model: PreTrainedModel, inputs: Inputs, **options: Any) -> Any:
    """Run one forward pass and return the model's outputs.

    Raises:
        UserError: the model cannot process the inputs; the message quotes the first line of its own error.
    """
    with errors_in_one_line(f"{type(model).__name__} cannot read the text"):
        return model(**inputs, **options)


def eager_maps(outputs: Any) -> list[Tensor]:
    """Return the attention maps among a model's outputs, without the entries of layers that have none."""
    return [one for one in getattr(outputs, "attentions", None) or () if isinstance(one, Tensor)]

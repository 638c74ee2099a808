"""One forward pass of a model of `transformers`, and what of its outputs is read. B texts, T tokens, H heads."""

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
    """Return the ids and the mask, (B, T) each, of texts that are padded at their ends."""
    mask = padded([[1] * len(text) for text in texts], 0, device)
    return {"input_ids": padded(texts, padding, device), "attention_mask": mask}


def padded(rows: Sequence[Sequence[int]], padding: int, device: torch.device) -> Tensor:
    """Return rows of numbers that are padded at their ends, (B, T)."""
    length = max(map(len, rows))
    return torch.tensor([[*row, *[padding] * (length - len(row))] for row in rows], device=device)


@contextlib.contextmanager
def reading_mode(model: PreTrainedModel, implementation: str | None) -> Iterator[Snapshot]:
    """Let a model compute as in evaluation, its attention by a named function, and give it back as it was before.

    Args:
        model: in any mode.
        implementation: of its attention, as transformers names it; None for the model's own.
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
            # Some families decline a change although they look at this attribute in every pass.
            model.config._attn_implementation_internal = implementation
        yield before


@contextlib.contextmanager
def held_in_reading_mode(model: PreTrainedModel, implementation: str | None) -> Iterator[None]:
    """Enter `reading_mode` once for many passes; inside, each only sets back what the pass has altered."""
    with reading_mode(model, implementation):
        token = _HELD.set((model, implementation, Snapshot(model)))
        try:
            yield
        finally:
            _HELD.reset(token)


def run_model(model: PreTrainedModel, inputs: Inputs, **options: Any) -> Any:
    """Return the outputs of one forward pass.

    Raises:
        UserError: the model cannot read the inputs; the message has the first line of its own error.
    """
    with errors_in_one_line(f"{type(model).__name__} cannot read the text"):
        return model(**inputs, **options)


def eager_maps(outputs: Any) -> list[Tensor]:
    """Return the maps among the outputs of a pass, without the places of layers that have none."""
    return [one for one in getattr(outputs, "attentions", None) or () if isinstance(one, Tensor)]

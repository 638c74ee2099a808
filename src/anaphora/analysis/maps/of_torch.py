"""Maps of models that are no runs of ours: torch's own Transformer encoder, and the list of tensors that others return.

B batch, L layers, H heads, T tokens. What comes out is what `record.from_arrays` takes, one sentence at a time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from anaphora.base.errors import UserError


def maps_of_layers(layers: Sequence[Tensor], sentence: int = 0, tokens: int | None = None) -> NDArray[np.float32]:
    """The maps of one sentence out of one tensor a layer, (B, H, T, T) or (H, T, T), as `output_attentions` gives them.

    Args:
        layers: L tensors.
        sentence: which of the batch.
        tokens: how many tokens it has; what stands behind them is padding and is left out.

    Returns:
        (L, H, T, T).

    Raises:
        UserError: there is no layer, or one has no such shape.
    """
    if not layers:
        raise UserError("maps: there is no layer; expected one tensor a layer")
    own = []
    for number, layer in enumerate(layers):
        weights = layer[sentence] if layer.dim() == 4 else layer
        if weights.dim() != 3 or weights.shape[1] != weights.shape[2]:
            raise UserError(
                f"maps: layer {number} has the shape {tuple(layer.shape)}; expected (B, heads, tokens, tokens)"
            )
        own.append(weights[:, :tokens, :tokens].detach().float().cpu().numpy())
    if len({one.shape for one in own}) > 1:
        raise UserError(f"maps: the layers have different shapes, {[one.shape for one in own]}")
    stacked: NDArray[np.float32] = np.stack(own)
    return stacked


def encoder_maps(encoder: nn.TransformerEncoder, source: Tensor, **options: Any) -> list[Tensor]:
    """Every map of a torch Transformer encoder, which itself asks its attention for no weights.

    Args:
        encoder: in any mode; it computes as in evaluation and is left as it was.
        source: what it reads, (B, T, W), or (T, B, W) where it was made so.
        options: `mask`, `src_key_padding_mask` and the like, as its `forward` takes them.

    Returns:
        L tensors of (B, H, T, T).
    """
    kept: list[Tensor] = []
    with torch.inference_mode(), evaluation_mode(encoder), _asking_for_weights(encoder, kept):
        encoder(source, **options)
    return kept


@contextlib.contextmanager
def evaluation_mode(module: nn.Module) -> Iterator[None]:
    """Let a module compute as in evaluation, and afterwards each of its parts in the mode in which it was."""
    training = [part for part in module.modules() if part.training]
    module.eval()
    try:
        yield
    finally:
        for part in training:  # one by one: `train` would also set parts that their owner keeps in evaluation
            part.training = True


@contextlib.contextmanager
def _asking_for_weights(encoder: nn.TransformerEncoder, kept: list[Tensor]) -> Iterator[None]:
    """Let each layer's attention give the weights of every head; the fused path, which gives none, is off meanwhile."""

    def ask(_: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return arguments, {**named, "need_weights": True, "average_attn_weights": False}

    def keep(_: nn.Module, __: tuple[Any, ...], result: tuple[Tensor, Tensor]) -> None:
        kept.append(result[1])

    fast, handles = torch.backends.mha.get_fastpath_enabled(), []
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        for layer in encoder.layers:
            attention: nn.Module = layer.self_attn
            handles += [
                attention.register_forward_pre_hook(ask, with_kwargs=True),
                attention.register_forward_hook(keep),
            ]
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        for handle in handles:
            handle.remove()

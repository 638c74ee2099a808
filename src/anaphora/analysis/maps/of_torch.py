"""Attention maps of torch's Transformer encoder, and of other models that return a list of tensors.

B batch, L layers, H heads, T tokens. What comes out is what `record.from_arrays` takes, one sentence at a time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from anaphora.base.checks import at_least, whole_number
from anaphora.base.errors import UserError, one_line


def maps_of_layers(
    layers: Sequence[Tensor | NDArray[np.floating]], sentence: int = 0, tokens: int | None = None
) -> NDArray[np.float32]:
    """Return the maps of one sentence, from one tensor or array for each layer, as `output_attentions` gives them.

    Args:
        layers: L of them, (B, H, T, T) or (H, T, T), in any floating-point type.
        sentence: which of the batch, from 0; without a batch, 0.
        tokens: how many tokens it has; tokens after them are padding and are left out.

    Returns:
        (L, H, T, T).

    Raises:
        UserError: there is no layer, one has no such shape or holds numbers that are not finite, or there is no such
            sentence or number of tokens.
    """
    if isinstance(layers, str | Mapping) or not isinstance(layers, Iterable) or getattr(layers, "ndim", 1) == 0:
        raise UserError(f"maps: layers is a {type(layers).__name__}; expected a list with one tensor for each layer")
    at_least("sentence", whole_number("sentence", sentence), 0)
    own = [_map_of_layer(number, layer, sentence, tokens) for number, layer in enumerate(layers)]
    if not own:
        raise UserError("maps: there is no layer; expected one tensor a layer")
    if len({one.shape for one in own}) > 1:
        raise UserError(f"maps: the layers have different shapes, {[one.shape for one in own]}")
    stacked: NDArray[np.float32] = np.stack(own)
    return stacked


def _map_of_layer(number: int, layer: Any, sentence: int, tokens: int | None) -> NDArray[np.float32]:
    """Return the map of one sentence in one layer, (H, T, T)."""
    if not isinstance(layer, Tensor | np.ndarray) or not _is_floating(layer):
        kind = layer.dtype if isinstance(layer, Tensor | np.ndarray) else type(layer).__name__
        raise UserError(
            f"maps: layer {number} is of the type {kind}; expected a tensor or array of floating-point numbers"
        )
    weights = torch.as_tensor(layer).detach()
    batch = weights.shape[0] if weights.dim() == 4 else 1
    if weights.dim() not in (3, 4) or weights.shape[-1] != weights.shape[-2] or 0 in weights.shape:
        raise UserError(f"maps: layer {number} has the shape {tuple(layer.shape)}; expected (B, heads, tokens, tokens)")
    if sentence >= batch:
        raise UserError(f"sentence ({sentence}) must be from 0 to {batch - 1}: layer {number} has {batch} sentences")
    if tokens is not None and not 1 <= whole_number("tokens", tokens) <= weights.shape[-1]:
        raise UserError(f"tokens ({tokens}) must be from 1 to {weights.shape[-1]}, as many as layer {number} has")
    own = weights[sentence] if weights.dim() == 4 else weights
    plain: NDArray[np.float32] = own[:, :tokens, :tokens].float().cpu().numpy()
    if not np.isfinite(plain).all():
        raise UserError(f"maps: layer {number} holds numbers that are not finite; give tokens= to leave padding out")
    return plain


def _is_floating(layer: Tensor | NDArray[Any]) -> bool:
    return layer.is_floating_point() if isinstance(layer, Tensor) else layer.dtype.kind == "f"


def encoder_maps(encoder: nn.TransformerEncoder, source: Tensor, **options: Any) -> list[Tensor]:
    """Return every map of a torch Transformer encoder, which does not return attention weights itself.

    Args:
        encoder: in any mode; it computes as in evaluation, and its mode is restored.
        source: what it reads, (B, T, W), or (T, B, W) if it was made so.
        options: `mask`, `src_key_padding_mask` and the like, as its `forward` takes them.

    Returns:
        L tensors of (B, H, T, T).

    Raises:
        UserError: it is no such encoder, or it cannot read the source.
    """
    if not isinstance(encoder, nn.TransformerEncoder):
        raise UserError(f"encoder is a {type(encoder).__name__}; expected a torch.nn.TransformerEncoder")
    if not isinstance(source, Tensor):
        raise UserError(f"source is a {type(source).__name__}; expected a tensor (B, T, W)")
    kept: list[Tensor] = []
    with torch.inference_mode(), evaluation_mode(encoder), _asking_for_weights(encoder, kept):
        try:
            encoder(source, **options)
        except (RuntimeError, AssertionError, TypeError, ValueError, IndexError, AttributeError) as error:
            shape = tuple(source.shape)
            raise UserError(f"source: the encoder cannot read its shape {shape} ({one_line(error)})") from None
    return kept


@contextlib.contextmanager
def evaluation_mode(module: nn.Module) -> Iterator[None]:
    """Set a module to evaluation mode in the block, and restore the mode of each of its parts afterwards."""
    training = [part for part in module.modules() if part.training]
    module.eval()
    try:
        yield
    finally:
        for part in training:  # one by one: `train` would also set parts that their owner keeps in evaluation
            part.training = True


@contextlib.contextmanager
def _asking_for_weights(encoder: nn.TransformerEncoder, kept: list[Tensor]) -> Iterator[None]:
    """Make each layer's attention return the weights of every head, with the fused path switched off."""

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

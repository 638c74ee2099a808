"""Attention maps of torch's Transformer encoder, and of other models that return one tensor per layer.

Axes are B (batch), L (layers), H (heads) and T (tokens). `record.from_arrays` turns one sentence's maps into a record.
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
from anaphora.base.errors import UserError, counted, one_line


def maps_of_layers(
    layers: Sequence[Tensor | NDArray[np.floating]], sentence: int = 0, tokens: int | None = None
) -> NDArray[np.float32]:
    """Return the attention maps of one sentence, (L, H, T, T), from a batch's maps of every layer.

    The layers' maps are as `output_attentions=True` of transformers returns them.

    Args:
        layers: L maps, (B, H, T, T) or (H, T, T), of any floating-point type.
        sentence: index of the sentence in the batch, from 0.
        tokens: number of the sentence's tokens; later tokens are padding and are cut off. By default all.

    Raises:
        UserError: there are no layers; a layer has a wrong type, a wrong shape or values that are not finite; or
            `sentence` or `tokens` is out of range.
    """
    if isinstance(layers, str | Mapping) or not isinstance(layers, Iterable) or getattr(layers, "ndim", 1) == 0:
        raise UserError(f"maps: layers is a {type(layers).__name__}; expected a list with one tensor for each layer")
    at_least("sentence", whole_number("sentence", sentence), 0)
    own = [_map_of_layer(number, layer, sentence, tokens) for number, layer in enumerate(layers)]
    if not own:
        raise UserError("maps: there is no layer; expected one tensor per layer")
    if len({one.shape for one in own}) > 1:
        raise UserError(f"maps: the layers have different shapes, {[one.shape for one in own]}")
    return np.asarray(np.stack(own))


def _map_of_layer(number: int, layer: Any, sentence: int, tokens: int | None) -> NDArray[np.float32]:
    """Return the attention maps of one sentence in one layer, (H, T, T); raise the errors of `maps_of_layers`."""
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
        raise UserError(
            f"sentence ({sentence}) must be from 0 to {batch - 1}: layer {number} has {counted(batch, 'sentence')}"
        )
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
    """Return the attention maps, L tensors (B, H, T, T), of a torch encoder, whose `forward` does not return them.

    A float mask is added to the scores, as in training. Torch's fast path for evaluation without gradients instead
    hides every token whose value in the mask is not 0; `torch.backends.mha.set_fastpath_enabled(False)` disables it.

    Args:
        encoder: the encoder, in any mode; it runs in evaluation mode, and its mode is restored.
        source: input embeddings, (B, T, W), or (T, B, W) unless the encoder has `batch_first`.
        options: keyword arguments of its `forward`, such as `mask` or `src_key_padding_mask`.

    Raises:
        UserError: `encoder` is not a torch Transformer encoder, `source` is not a tensor, or the forward pass fails.
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
    """Set a module to evaluation mode inside the `with` block, and restore the mode of each submodule afterwards."""
    training = [part for part in module.modules() if part.training]
    module.eval()
    try:
        yield
    finally:
        for part in training:  # one by one: `train` would also set submodules that were in evaluation mode before
            part.training = True


@contextlib.contextmanager
def _asking_for_weights(encoder: nn.TransformerEncoder, kept: list[Tensor]) -> Iterator[None]:
    """Append each layer's attention weights, (B, H, T, T), to `kept` inside the `with` block; disable the fast path."""

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

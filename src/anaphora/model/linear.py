"""Linear layers that use oneDNN's kernel if it is faster than torch's default, in models of this and other packages.

On AMD processors with AVX-512, the library behind torch's float32 products uses half the width of the vector registers;
oneDNN uses the full width, with rounding errors of the same size. The oneDNN operator is a private function of torch
and is therefore tested once; if the test fails, layers run as `nn.Linear`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.overrides import TorchFunctionMode

_LEAST_ROWS = 16
"""Minimum number of rows for which the oneDNN kernel is faster."""


class Linear(nn.Linear):
    """`nn.Linear` with the faster of two kernels; their results differ only by rounding."""

    def forward(self, vectors: Tensor) -> Tensor:
        return linear(vectors, self.weight, self.bias)


def linear(vectors: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Compute vectors @ weight.T + bias by the faster of two kernels: (..., K), (M, K), (M,) -> (..., M)."""
    rows = vectors.numel() // vectors.shape[-1] if vectors.numel() else 0
    if rows < _LEAST_ROWS or not (_is_plain(vectors) and _is_plain(weight) and has_faster_kernel()):
        return functional.linear(vectors, weight, bias)
    mixed: Tensor = _OneDnnLinear.apply(vectors.reshape(rows, -1).contiguous(), weight, bias)  # type: ignore[no-untyped-call]
    return mixed.view(*vectors.shape[:-1], -1)


def faster_products() -> contextlib.AbstractContextManager[object]:
    """Let `torch.nn.functional.linear` use oneDNN's kernel inside the `with` block if it is the faster one."""
    return _Products() if has_faster_kernel() else contextlib.nullcontext()


class _Products(TorchFunctionMode):
    """Torch function mode that runs this module's `linear` in place of that of torch, unless called with keywords."""

    def __torch_function__(
        self, function: Any, types: Any, arguments: tuple[Any, ...] = (), options: Mapping[str, Any] | None = None
    ) -> Any:
        if function is functional.linear and not options:
            vectors, weight, bias = (*arguments, None)[:3]
            return linear(vectors, weight, bias)
        return function(*arguments, **(options or {}))


def _is_plain(tensor: Tensor) -> bool:
    """Return whether a tensor is float32 on the CPU, outside autocast and compilation."""
    return (
        tensor.device.type == "cpu"
        and tensor.dtype == torch.float32
        and not torch.is_autocast_enabled("cpu")
        and not torch.compiler.is_compiling()
    )


@cache
def has_faster_kernel() -> bool:
    """Return whether the oneDNN kernel exists, is faster than torch's own, and computes the same product.

    It is assumed to be faster if the processor is an AMD processor with AVX-512.
    """
    try:
        if torch.backends.cpu.get_cpu_capability() != "AVX512" or not _is_amd():
            return False
        vectors, weight = torch.linspace(-1, 1, 64 * 32).view(64, 32), torch.linspace(-1, 1, 8 * 32).view(8, 32)
        return torch.allclose(onednn_product(vectors, weight), vectors @ weight.t(), rtol=1e-4, atol=1e-4)
    except (AttributeError, RuntimeError, NotImplementedError):
        return False


def _is_amd() -> bool:
    try:
        return "AuthenticAMD" in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def onednn_product(vectors: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute vectors @ weight.T + bias with oneDNN's kernel: (N, K), (M, K), (M,) -> (N, M).

    The kernel may be missing, or slower than torch's own; `has_faster_kernel` tests both.
    """
    product: Tensor = torch.ops.mkldnn._linear_pointwise(vectors, weight, bias, "none", [], "")
    return product


class _OneDnnLinear(torch.autograd.Function):
    """Linear function, with its gradients, computed by oneDNN's kernel."""

    @staticmethod
    def forward(context: Any, vectors: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        context.save_for_backward(vectors, weight)
        return onednn_product(vectors, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        vectors, weight = context.saved_tensors
        gradient = gradient.contiguous()
        of_input, of_weight, of_bias = context.needs_input_grad
        return (
            onednn_product(gradient, weight.t()) if of_input else None,
            onednn_product(gradient.t(), vectors.t()) if of_weight else None,
            gradient.sum(dim=0) if of_bias else None,
        )

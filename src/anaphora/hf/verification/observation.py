"""Observation of the attention weights that a model of `transformers` applies to its values in a forward pass.

The model's own outputs are not trusted: every matrix product is observed as torch runs it, and fused attention is
computed step by step. In shapes, T is the number of tokens and H of heads; R is the number of attention rows, H * T.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from threading import get_ident
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, is_traceable_wrapper_subclass

_SUM_TOLERANCE = 2e-2
"""Maximum deviation of the row sums of attention weights from 1, due to rounding in bfloat16."""


@dataclass(frozen=True, eq=False)
class Mixing:
    """Attention weights by which one block mixed its values in a forward pass over one text."""

    module: str  # path of the innermost module that computed it, such as "layers.3.self_attn"
    rows: Tensor  # float32 weights, (R, T), ordered by head and token or by token and head
    has_sink: bool  # whether an attention sink took part in the softmax, so that rows sum to less than 1
    # Whether the product had one matrix of weights per head, so that rows are ordered by head and token; if False, the
    # order is unknown.
    is_by_head: bool

    def equals(self, maps: Tensor, relative: float, absolute: float) -> bool:
        """Return whether maps, (H, T, T), equal these weights within the tolerances."""
        heads, tokens = maps.shape[:2]
        if maps.shape[1] != maps.shape[2] or self.rows.shape != (heads * tokens, tokens):
            return False
        by_head = self.rows.view(heads, tokens, tokens)
        by_token = self.rows.view(tokens, heads, tokens).transpose(0, 1)
        return any(torch.allclose(maps.float(), each, relative, absolute) for each in (by_head, by_token))


@dataclass(eq=False)
class Observation:
    """Attention weights observed in one forward pass, and whether the pass changed parameters or buffers."""

    mixings: list[Mixing] = field(default_factory=list)  # in order; equal consecutive mixings of a module count once
    # Whether a softmax's weights also mix vectors of other units than the text's tokens, such as blocks of tokens.
    attends_elsewhere: bool = False
    writes_weights: bool = False  # whether the pass wrote to the model's own parameters or buffers
    changes_weights: bool = False  # whether the pass changed the values of parameters or buffers


@contextlib.contextmanager
def observed(model: nn.Module, tokens: int) -> Iterator[Observation]:
    """Observe one forward pass over one text inside the `with` block; undo changes to parameters and buffers.

    Attention is recognised by its shape, so the number of tokens must differ from every dimension of the parameters.
    """
    with running_modules(model) as running:
        operations = _Operations(model, tokens, running)
        try:
            with torch.no_grad(), AttentionInSteps(), operations:
                yield operations.observation
        finally:
            operations.restore_weights()


@contextlib.contextmanager
def running_modules(model: nn.Module) -> Iterator[list[str]]:
    """Track the paths of the modules that this thread runs inside the `with` block, the innermost last.

    A module outside the model has the path of its caller.
    """
    running: list[str] = []
    names = {id(part): name for name, part in model.named_modules()}
    own = get_ident()

    def enter(module: nn.Module, _: Any) -> None:
        if get_ident() == own:
            running.append(names.get(id(module), running[-1] if running else ""))

    def leave(_: nn.Module, __: Any, ___: Any) -> None:
        if get_ident() == own:
            running.pop()

    handles = [register_module_forward_pre_hook(enter), register_module_forward_hook(leave, always_call=True)]
    try:
        yield running
    finally:
        for handle in handles:
            handle.remove()


class AttentionInSteps(TorchFunctionMode):
    """Torch function mode that computes fused attention step by step, which makes its weights observable."""

    def __torch_function__(
        self, function: Any, types: Any, arguments: tuple[Any, ...] = (), options: Mapping[str, Any] | None = None
    ) -> Any:
        if function is functional.scaled_dot_product_attention:
            return _attention_in_steps(*arguments, **(options or {}))
        return function(*arguments, **(options or {}))


class SingleOperations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Dispatch mode that passes every operation to `run`; composite operations are first decomposed.

    In inference mode, and for tensors created in it, torch does not decompose composite operations such as `matmul`.
    """

    def __torch_dispatch__(
        self, function: Any, types: Any, arguments: tuple[Any, ...] = (), options: Mapping[str, Any] | None = None
    ) -> Any:
        named = options or {}
        if function._can_decompose():
            with self:
                return function.decompose(*arguments, **named)
        return self.run(function, arguments, named)

    def run(self, function: Any, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
        """Run one operation and return its result."""
        return function(*arguments, **options)


def _storages(tensor: Tensor) -> set[int]:
    """Return the memory addresses of a tensor's data; a quantised tensor, for instance, may have several."""
    if not is_traceable_wrapper_subclass(tensor):
        return {tensor.untyped_storage().data_ptr()}
    names, _ = tensor.__tensor_flatten__()
    return {address for name in names for address in _storages(getattr(tensor, name))}


def _attention_in_steps(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,  # noqa: ARG001 - models are observed as in evaluation
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Compute `scaled_dot_product_attention` by its definition, without dropout."""
    if enable_gqa:
        groups = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(groups, dim=-3), value.repeat_interleave(groups, dim=-3)
    scores = query @ key.transpose(-2, -1) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, -math.inf) if attn_mask.dtype == torch.bool else scores + attn_mask
    weights = torch.softmax(scores.float(), dim=-1).nan_to_num(0.0)  # zeros for a fully masked query
    return weights.to(value.dtype) @ value


class _Operations(SingleOperations):  # type: ignore[no-untyped-call]
    """Torch dispatch mode that records attention weights, and copies parameters and buffers before they are changed."""

    def __init__(self, model: nn.Module, tokens: int, running: list[str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.tokens, self.running = tokens, running
        self.observation = Observation()
        self._softmaxes: list[Tensor] = []  # every result, (R, K) each
        weights = chain(model.parameters(), model.buffers())
        self._storages = {address for weight in weights for address in _storages(weight)}
        self._overwritten: list[tuple[Tensor, Tensor]] = []

    def run(self, function: Any, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
        if function._schema.is_mutable:
            self._keep_overwritten(function, arguments, options)
        result = function(*arguments, **options)
        name = function.overloadpacket.__name__
        if name in ("bmm", "mm"):
            self._observe(*arguments[:2])
        elif name in ("baddbmm", "addmm"):
            self._observe(*arguments[1:3])
        elif name == "_softmax":
            self._softmaxes.append(result.float().reshape(-1, result.shape[-1]))
        return result

    def _keep_overwritten(self, function: Any, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> None:
        for place, declared in enumerate(function._schema.arguments):
            value = arguments[place] if place < len(arguments) else options.get(declared.name)
            is_written = declared.alias_info is not None and declared.alias_info.is_write
            if is_written and isinstance(value, Tensor) and _storages(value) & self._storages:
                self.observation.writes_weights = True
                self._overwritten.append((value, value.clone()))

    def restore_weights(self) -> None:
        self.observation.changes_weights = any(not torch.equal(*both) for both in self._overwritten)
        with torch.no_grad():
            for weight, before in reversed(self._overwritten):
                weight.copy_(before)

    def _observe(self, left: Tensor, right: Tensor) -> None:
        for factor in (left, right.transpose(-2, -1)) if left.numel() and right.numel() else ():
            if factor.shape[-1] != self.tokens or factor.shape[-2] % self.tokens:
                self.observation.attends_elsewhere |= factor.dim() == 3 and self._is_of_a_softmax(factor)
                continue
            rows = factor.detach().float().reshape(-1, self.tokens)
            sums = rows.sum(dim=-1)
            if not (rows.min() >= 0 and sums.max() <= 1 + _SUM_TOLERANCE):  # this also holds for NaN
                continue
            is_whole = bool(sums.min() >= 1 - _SUM_TOLERANCE)
            if is_whole or self._is_of_a_softmax(rows):
                is_by_head = factor.dim() == 3 and factor.shape[-2] == self.tokens
                module = self.running[-1] if self.running else ""
                self._append(Mixing(module, rows.clone(), not is_whole, is_by_head))

    def _append(self, mixing: Mixing) -> None:
        last = self.observation.mixings[-1] if self.observation.mixings else None
        if last is None or last.module != mixing.module or not torch.equal(last.rows, mixing.rows):
            self.observation.mixings.append(mixing)

    def _is_of_a_softmax(self, factor: Tensor) -> bool:
        """Return whether a matrix is the output of an earlier softmax, possibly without its first or last column."""
        count, columns = factor.numel() // factor.shape[-1], factor.shape[-1]
        return any(
            part.shape == (count, columns)
            and torch.allclose(part, factor.float().reshape(count, columns), rtol=2**-7, atol=1e-7)
            for whole in self._softmaxes
            for part in (whole, whole[:, 1:], whole[:, :-1])
        )

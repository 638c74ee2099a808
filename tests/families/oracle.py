"""Oracle of the weights with which a model mixes values, found by tracing each softmax to its use.

The result of each softmax is marked, and so are tensors derived from it that keep its values (views, copies, slices,
differences). If a marked tensor is a factor of a matrix product, it is a mixing matrix. For fused attention, the
weights are computed from its arguments and checked against its output. Axes are T (tokens) and H (heads).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

PRODUCTS = {"mm": 0, "bmm": 0, "addmm": 1, "baddbmm": 1}
"""Matrix products, with the index of their first factor among the arguments."""
PARTS = frozenset({"slice", "select", "constant_pad_nd", "cat", "index", "expand", "as_strided", "split", "unbind"})
"""Operations that change the number of elements and keep their values."""
ENDS = frozenset({"sum", "mean", "cumsum", "topk", "sort", "_log_softmax"})
"""Operations that change the values."""
FUSED = "_scaled_dot_product_flash_attention_for_cpu"


@dataclass(frozen=True, eq=False)
class Mixture:
    """Use of weights in a matrix product.

    Attributes:
        module: path of the innermost running module.
        weights: (N, Q, K) as in the product; K is the axis of the mixed values.
    """

    module: str
    weights: Tensor

    def maps(self, tokens: int) -> list[Tensor]:
        """Return (H, T, T) in each order of heads and tokens that the shape allows; empty for other shapes."""
        rows = self.weights.reshape(-1, self.weights.shape[-1])
        if rows.shape[1] != tokens or rows.shape[0] % tokens:
            return []
        heads = rows.shape[0] // tokens
        by_token = rows.reshape(tokens, heads, tokens).transpose(0, 1)
        return [rows.reshape(heads, tokens, tokens)] + ([by_token] if self.weights.shape[0] in (1, tokens) else [])


@dataclass(frozen=True, eq=False)
class Change:
    """Replacement of the weights in one of the uses that mix tokens with tokens.

    Attributes:
        square: index of the use among these.
        option: index of the weights in `Mixture.maps`.
        of: function from the old weights to the new ones, (H, T, T) -> (H, T, T).
    """

    square: int
    option: int
    of: Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Pass:
    """Forward pass over one text.

    Attributes:
        tokens: T.
        states: (T, W), first output of the model.
        mixtures: all uses of a softmax, in the order of computation.
    """

    tokens: int
    states: Tensor
    mixtures: list[Mixture]

    @property
    def squares(self) -> list[Mixture]:
        """Return the uses that mix tokens with tokens, without duplicates."""
        found: list[Mixture] = []
        for one in self.mixtures:
            last = found[-1] if found else None
            same = last is not None and last.module == one.module and last.weights.shape == one.weights.shape
            if one.maps(self.tokens) and not (same and last is not None and torch.equal(last.weights, one.weights)):
                found.append(one)
        return found

    @property
    def others(self) -> list[str]:
        """Return the shapes of the other uses: bands, blocks, sinks with values, memories."""
        shapes = [tuple(one.weights.shape) for one in self.mixtures if not one.maps(self.tokens)]
        return sorted({str(shape) for shape in shapes})

    def layers(self) -> tuple[int, ...] | None:
        """Return the layer index in the module path of each square; None if modules are shared and indices repeat."""
        parts = [[int(part) for part in one.module.split(".") if part.isdigit()] for one in self.squares]
        if all(parts) and all(first[0] < second[0] for first, second in pairwise(parts)):
            return tuple(part[0] for part in parts)
        return None


def run(model: nn.Module, ids: Sequence[int], change: Change | None = None) -> Pass:
    """Run a model in evaluation mode on one text, and trace its computation."""
    inputs: dict[str, Any] = {"input_ids": torch.tensor([list(ids)])}
    inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    model.eval()
    running: list[str] = []
    with torch.no_grad(), _named(model, running), _Marks(running, len(ids), change) as marks:
        outputs = model(**inputs)
    states = outputs[0]
    return Pass(len(ids), states[0], marks.mixtures)


@contextlib.contextmanager
def _named(model: nn.Module, running: list[str]) -> Iterator[None]:
    """Record the paths of the running modules."""

    def leave(*_: Any) -> None:
        running.pop()

    handles = []
    for name, part in model.named_modules():
        handles.append(part.register_forward_pre_hook(lambda *_, name=name: running.append(name)))
        handles.append(part.register_forward_hook(leave, always_call=True))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


class _Marks(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self, running: list[str], tokens: int, change: Change | None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.running, self.tokens, self.change = running, tokens, change
        self.squares = 0
        self.mixtures: list[Mixture] = []
        self._marked: dict[int, Tensor] = {}  # holds them, so that no other tensor gets the same id

    def __torch_dispatch__(
        self, function: Any, types: Any, arguments: tuple[Any, ...] = (), options: Mapping[str, Any] | None = None
    ) -> Any:
        options = options or {}
        result = function(*arguments, **options)
        name = function.overloadpacket.__name__.removesuffix("_copy")
        if name in ("_softmax", "_safe_softmax") or (name in ("exp", "div") and _sums_to_one(result)):
            self._mark(result)
        elif name == FUSED:
            weights = _fused_weights(result[0], *arguments, **options)
            if (changed := self._record(weights)) is not None:
                value = arguments[2].repeat_interleave(weights.shape[1] // arguments[2].shape[1], dim=1)
                result = (changed.to(value.dtype) @ value, *result[1:])
        elif name.startswith("_scaled_dot_product"):
            raise AssertionError(f"{name} is not followed")
        elif name in PRODUCTS:
            place = PRODUCTS[name]
            before, (left, right), after = arguments[:place], arguments[place : place + 2], arguments[place + 2 :]
            if id(left) in self._marked and (changed := self._record(left)) is not None:
                result = function(*before, changed, right, *after, **options)
            if id(right) in self._marked and (changed := self._record(right.transpose(-1, -2))) is not None:
                result = function(*before, left, changed.transpose(-1, -2), *after, **options)
        elif name not in ENDS:
            sizes = [one.numel() for one in tree_leaves((arguments, options)) if id(one) in self._marked]
            for one in tree_leaves(result) if sizes else ():
                same_size = isinstance(one, Tensor) and one.numel() in sizes
                if isinstance(one, Tensor) and one.is_floating_point() and (same_size or name in PARTS):
                    self._mark(one)
        return result

    def _mark(self, tensor: Tensor) -> None:
        self._marked[id(tensor)] = tensor

    def _record(self, weights: Tensor) -> Tensor | None:
        """Record weights, and return their replacement if they are to be changed."""
        kept = weights.detach().float()
        mixture = Mixture(self.running[-1] if self.running else "", kept.reshape(-1, *kept.shape[-2:]).clone())
        self.mixtures.append(mixture)
        options = mixture.maps(self.tokens)
        self.squares += bool(options)
        if self.change is None or not options or self.squares - 1 != self.change.square:
            return None
        changed = self.change.of(options[self.change.option])
        if self.change.option == 1:
            changed = changed.transpose(0, 1)
        return changed.reshape(weights.shape).to(weights.dtype)


def _sums_to_one(result: Any) -> bool:
    """Return whether a tensor is a softmax computed in separate steps."""
    if not isinstance(result, Tensor) or result.dim() < 2 or result.shape[-1] < 2 or not result.is_floating_point():
        return False
    return bool((result >= 0).all()) and torch.allclose(result.sum(dim=-1), torch.tensor(1.0, dtype=result.dtype))


def _fused_weights(
    output: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> Tensor:
    """Return the weights of fused attention, (B, H, Q, K), after a check that they reproduce its output."""
    groups = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(groups, dim=1).double(), value.repeat_interleave(groups, dim=1).double()
    scores = query.double() @ key.transpose(-1, -2) * (scale or 1 / math.sqrt(query.shape[-1]))
    if attn_mask is not None:
        scores = scores + attn_mask.double()
    if is_causal:
        scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), -math.inf)
    weights = scores.softmax(dim=-1).nan_to_num(0.0)
    assert torch.allclose(weights @ value, output.double(), atol=1e-3, rtol=1e-3), "fused attention is misread"
    return weights

"""What a model mixes its values with, found without asking the model: every softmax is followed to where it is used.

Each result of a softmax is marked, and so is whatever is made of it without leaving its numbers behind (a view, a copy,
a slice, a difference of two). Where a marked tensor is a factor of a matrix product, it is what values are mixed with.
Of fused attention the weights are computed from its arguments, and must give its output. T tokens, H heads.
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
"""Matrix products, and where their first factor stands among the arguments."""
PARTS = frozenset({"slice", "select", "constant_pad_nd", "cat", "index", "expand", "as_strided", "split", "unbind"})
"""What changes the number of elements and keeps their values."""
ENDS = frozenset({"sum", "mean", "cumsum", "topk", "sort", "_log_softmax"})
"""What makes other numbers of them."""
FUSED = "_scaled_dot_product_flash_attention_for_cpu"


@dataclass(frozen=True, eq=False)
class Mixture:
    """One use of weights.

    Attributes:
        module: path of the innermost module that ran.
        weights: (N, Q, K) as they enter the product; K are the values that are mixed.
    """

    module: str
    weights: Tensor

    def maps(self, tokens: int) -> list[Tensor]:
        """(H, T, T) in each order of heads and tokens that the shape allows; none if it is no square of tokens."""
        rows = self.weights.reshape(-1, self.weights.shape[-1])
        if rows.shape[1] != tokens or rows.shape[0] % tokens:
            return []
        heads = rows.shape[0] // tokens
        by_token = rows.reshape(tokens, heads, tokens).transpose(0, 1)
        return [rows.reshape(heads, tokens, tokens)] + ([by_token] if self.weights.shape[0] in (1, tokens) else [])


@dataclass(frozen=True, eq=False)
class Change:
    """Other weights in one of the uses that mix tokens with tokens.

    Attributes:
        square: its number among these uses.
        option: which of `Mixture.maps` its weights are.
        of: makes the new weights from the old ones, (H, T, T) -> same.
    """

    square: int
    option: int
    of: Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Pass:
    """One forward pass over one text.

    Attributes:
        tokens: T.
        states: (T, W), what the model returns first.
        mixtures: every use of a softmax, in the order of computation.
    """

    tokens: int
    states: Tensor
    mixtures: list[Mixture]

    @property
    def squares(self) -> list[Mixture]:
        """The uses that mix tokens with tokens, each once."""
        found: list[Mixture] = []
        for one in self.mixtures:
            last = found[-1] if found else None
            same = last is not None and last.module == one.module and last.weights.shape == one.weights.shape
            if one.maps(self.tokens) and not (same and last is not None and torch.equal(last.weights, one.weights)):
                found.append(one)
        return found

    @property
    def others(self) -> list[str]:
        """Shapes of the uses that are no square: bands, blocks, sinks that values have, memories."""
        shapes = [tuple(one.weights.shape) for one in self.mixtures if not one.maps(self.tokens)]
        return sorted({str(shape) for shape in shapes})

    def layers(self) -> tuple[int, ...] | None:
        """The number in the path of each square's module; None where modules are shared and numbers repeat."""
        parts = [[int(part) for part in one.module.split(".") if part.isdigit()] for one in self.squares]
        if all(parts) and all(first[0] < second[0] for first, second in pairwise(parts)):
            return tuple(part[0] for part in parts)
        return None


def run(model: nn.Module, ids: Sequence[int], change: Change | None = None) -> Pass:
    """Run a model in evaluation mode over one text, as its user would, and follow what it computes."""
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
    """Keep the paths of the modules that run."""

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
        """Keep weights; where they are to be changed, return what takes their place."""
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
    """Whether a tensor is a softmax that was written out in steps."""
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
    """The weights of fused attention, (B, H, Q, K); with the values they must give its output."""
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

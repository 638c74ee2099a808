"""Simulated second device for tests on machines without one.

As on a GPU, tensors must be moved to the device and back: operations on tensors of two devices fail, and NumPy cannot
read a tensor on the device. Run as a program, it executes commands given as JSON, with `trainer=gpu` for this device,
and prints the number of operations that each command executed on the device.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "elsewhere"
_MOVING = {"aten::copy_", "aten::_to_copy"}
_INDEXING = {"aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_", "aten::_unsafe_index"}
"""Operations that a graphics processor also does with indices that lie before it: their second argument."""
_JOINING = {"aten::cat", "aten::stack"}
"""Operations that take no number from elsewhere, as all others do."""
_MAKING = (
    *("arange", "arange.start", "arange.start_step", "empty.memory_format", "empty_strided", "eye", "eye.m", "full"),
    *("ones", "rand", "randn", "randperm", "scalar_tensor", "zeros"),
)
done = 0


class There(torch.Tensor):
    """Tensor on the simulated device; `held` has its values."""

    held: torch.Tensor

    @staticmethod
    def __new__(cls, held: torch.Tensor) -> There:
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=torch.device(NAME, 0),
        )
        made.held = held
        return made

    def tolist(self) -> Any:
        """Return the values as lists, as for any device."""
        return self.held.tolist()

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, operation: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return compute(operation, args, kwargs or {})


def compute(operation: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Execute an operation on the held values; the result is on the device unless the operation moves it."""
    global done
    name = operation._schema.name
    done += name not in _MOVING
    tensors = [one for one in tree_flatten((args, kwargs))[0] if isinstance(one, torch.Tensor)]
    there = [one for one in tensors if isinstance(one, There)]
    fixed = (args[0], *args[2:]) if name in _INDEXING else (args, kwargs)
    here = [
        one
        for one in tree_flatten(fixed)[0]
        if isinstance(one, torch.Tensor) and not isinstance(one, There) and (one.dim() or name in _JOINING)
    ]
    if there and here and name not in _MOVING:
        raise RuntimeError(f"{operation}: tensors on two devices")

    def plain(one: Any) -> Any:
        if isinstance(one, There):
            return one.held
        return torch.device("cpu") if isinstance(one, torch.device) else one

    outcome = operation(*tree_map(plain, args), **tree_map(plain, kwargs))
    for one in there:  # an operation in place gives back what it was given
        if one.held is outcome:
            return one
    to = kwargs.get("device")
    if outcome is (tensors[0] if tensors else None) or (to is not None and torch.device(to).type == "cpu"):
        return outcome
    return tree_map(lambda one: There(one) if isinstance(one, torch.Tensor) else one, outcome)


def install() -> list[torch.library.Library]:
    """Register the device with torch; it exists as long as the returned libraries."""
    # Tensors of this kind know nothing of inference mode.
    vars(torch)["inference_mode"] = lambda mode=True: torch.no_grad() if mode else torch.enable_grad()
    _setup_privateuseone_for_python_backend(NAME)
    library: Any = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    for name in _MAKING:
        base, _, overload = name.partition(".")
        operation = getattr(getattr(torch.ops.aten, base), overload or "default")
        library.impl(name, _maker(operation), "PrivateUse1")
    library.impl("_copy_from", _copied, "PrivateUse1")
    return [library]


def _copied(source: torch.Tensor, target: There, non_blocking: bool = False) -> torch.Tensor:
    target.held.copy_(source.held if isinstance(source, There) else source)
    return target


def _maker(operation: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: compute(operation, args, kwargs)


def main() -> None:
    """Run the commands in the first argument."""
    kept = install()
    from anaphora.base import device as place

    place.torch_device = lambda name: torch.device(f"{NAME}:0" if name == "cuda" else "cpu")
    from anaphora import cli

    counts = []
    for arguments in json.loads(sys.argv[1]):
        before = done
        sys.argv = ["anaphora", *arguments]
        cli.main()
        counts.append(done - before)
    assert kept
    sys.stdout.write(f"{json.dumps(counts)}\n")


if __name__ == "__main__":
    main()

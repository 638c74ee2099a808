"""Forward passes of a model of `transformers`, and restoration of the model afterwards.

In shapes, B is the number of texts, T of tokens and H of heads.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from threading import RLock
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from anaphora.hf.loading import quiet
from anaphora.hf.parts import errors_in_one_line, uncompiled

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Inputs = Mapping[str, Tensor]
_HELD: ContextVar[tuple[PreTrainedModel, str | None, Snapshot] | None] = ContextVar("held", default=None)
_ONE_AT_A_TIME = RLock()
"""Lock held while the attributes of any model are changed for a pass: threads may share a model or its modules."""
_SET_FOR_READING = {"training", "return_dict", "_attn_implementation_internal"}


@contextlib.contextmanager
def reading_mode(model: PreTrainedModel, implementation: str | None) -> Iterator[Snapshot]:
    """Run a model in evaluation mode inside the `with` block, and restore it afterwards.

    Args:
        model: model of `transformers`.
        implementation: name of the attention implementation inside the block; None for the model's own.
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
            # Some families reject the change although they read this attribute in every pass.
            model.config._attn_implementation_internal = implementation
        yield before


@contextlib.contextmanager
def held_in_reading_mode(model: PreTrainedModel, implementation: str | None) -> Iterator[None]:
    """Apply `reading_mode` to a model once for all forward passes inside the `with` block, which saves time.

    After each pass, only the attributes that the pass has altered are restored.
    """
    with reading_mode(model, implementation):
        token = _HELD.set((model, implementation, Snapshot(model)))
        try:
            yield
        finally:
            _HELD.reset(token)


def whole_texts(ids: Tensor, has_types: bool) -> dict[str, Tensor]:
    """Return a model's inputs for texts without padding, (B, T) each; if `has_types`, with token types of 0."""
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    return {**inputs, "token_type_ids": torch.zeros_like(ids)} if has_types else inputs


def run_model(model: PreTrainedModel, inputs: Inputs, **options: Any) -> Any:
    """Run one forward pass, uncompiled, and return the model's outputs.

    Raises:
        UserError: the model cannot process the inputs; the message quotes the first line of its own error.
    """
    with uncompiled(), errors_in_one_line(f"{type(model).__name__} cannot read the text"):
        return model(**inputs, **options)


def eager_maps(outputs: Any) -> list[Tensor]:
    """Return the attention maps in a model's outputs; layers that return no map are left out."""
    return [one for one in getattr(outputs, "attentions", None) or () if isinstance(one, Tensor)]


def joined_maps(passes: Sequence[Sequence[Tensor]]) -> list[Tensor]:
    """Join the attention maps of several passes into one tensor per layer, (B, H, T, T), padded with zeros."""
    length = max(maps[0].shape[-1] for maps in passes)

    def padded_maps(one: Tensor) -> Tensor:
        missing = length - one.shape[-1]
        return functional.pad(one, (0, missing, 0, missing))

    return [torch.cat([padded_maps(one) for one in layer]) for layer in zip(*passes, strict=True)]


@contextlib.contextmanager
def restored(model: nn.Module) -> Iterator[Snapshot]:
    """Restore a model's modules, modes, hooks and configurations after the `with` block, even after an error.

    Only one thread at a time can be inside such a block.
    """
    with _ONE_AT_A_TIME:
        snapshot = Snapshot(model)
        try:
            yield snapshot
        finally:
            snapshot.restore()


class Snapshot:
    """Attributes of all modules and configurations of a model at the time of construction."""

    def __init__(self, model: nn.Module) -> None:
        self._owners = [_Attributes(owner) for owner in _owners(model)]

    def restore(self) -> None:
        for attributes in self._owners:
            attributes.restore()

    def alteration(self) -> str | None:
        """Return the name of a changed child module, or of a changed string or Boolean attribute; None without changes.

        Attributes that `reading_mode` sets, and attributes of other types, which may be caches, are not compared.
        """
        return next(filter(None, (attributes.alteration() for attributes in self._owners)), None)


class _Attributes:
    """Attributes of a module or a configuration; attributes that are dictionaries, lists or sets are copied."""

    def __init__(self, owner: Any) -> None:
        self._own: dict[str, Any] = owner.__dict__
        self._values = dict(self._own)
        self._parts = dict(self._own.get("_modules", {}))
        self._contents: list[tuple[Any, Any]] = [
            (value, value.copy()) for value in self._values.values() if isinstance(value, dict | list | set)
        ]

    def restore(self) -> None:
        if not _same(self._own, self._values):
            self._own.clear()
            self._own.update(self._values)
        for container, content in self._contents:
            if isinstance(container, dict):
                if not _same(container, content):
                    container.clear()
                    container.update(content)
            elif container != content:
                container.clear()
                (container.extend if isinstance(container, list) else container.update)(content)

    def alteration(self) -> str | None:
        parts, parts_before = self._own.get("_modules", {}), self._parts
        if not _same(parts, parts_before):
            return next((name for name, part in parts.items() if parts_before.get(name) is not part), "a part of it")
        now = {name: value for name, value in self._own.items() if isinstance(value, str | bool)}
        return next(
            (name for name in now.keys() - _SET_FOR_READING if self._values.get(name, now[name]) != now[name]), None
        )


def _same(now: dict[str, Any], before: dict[str, Any]) -> bool:
    if not now and not before:  # most containers, by far
        return True
    return now.keys() == before.keys() and all(value is before[name] for name, value in now.items())


def _owners(model: nn.Module) -> Iterator[Any]:
    """Yield every module of a model and every configuration of a module; none is yielded twice."""
    from transformers import PreTrainedConfig

    seen: set[int] = set()
    waiting: list[Any] = list(model.modules())
    while waiting:
        owner = waiting.pop()
        if id(owner) not in seen:
            seen.add(id(owner))
            waiting += [value for value in owner.__dict__.values() if isinstance(value, PreTrainedConfig)]
            yield owner

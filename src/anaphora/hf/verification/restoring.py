"""Restoration of a model after a forward pass or a change of its settings."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from torch import nn

_SET_FOR_READING = {"training", "return_dict", "_attn_implementation_internal"}


@contextlib.contextmanager
def restored(model: nn.Module) -> Iterator[Snapshot]:
    """Restore a model's modules, modes, hooks and configurations after the `with` block, also after an error."""
    snapshot = Snapshot(model)
    try:
        yield snapshot
    finally:
        snapshot.restore()


class Snapshot:
    """Attributes of all modules and configurations of a model at one moment."""

    def __init__(self, model: nn.Module) -> None:
        self._owners = [_Attributes(owner) for owner in _owners(model)]

    def restore(self) -> None:
        """Restore every attribute."""
        for attributes in self._owners:
            attributes.restore()

    def alteration(self) -> str | None:
        """Return the name of the first child module, string or Boolean attribute that has changed, or None.

        Other attributes may be caches that the model computes once, such as rotary angles.
        """
        return next(filter(None, (attributes.alteration() for attributes in self._owners)), None)


class _Attributes:
    """Attributes of a module or a configuration, with copies of the containers among them."""

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
    """Yield every module, and every configuration that a module holds, each once."""
    from transformers import PreTrainedConfig

    seen: set[int] = set()
    waiting: list[Any] = list(model.modules())
    while waiting:
        owner = waiting.pop()
        if id(owner) not in seen:
            seen.add(id(owner))
            waiting += [value for value in owner.__dict__.values() if isinstance(value, PreTrainedConfig)]
            yield owner

"""Variants from outside the package: the function that builds each from its settings.

`settings.variants` holds their names beside the built-in ones and checks them. Every builder imports this module, so it
imports nothing of the package but the error. No file can add a variant: a stored run names those that it needs and
imports nothing.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar, cast

from anaphora.base.errors import UserError

Arguments = ParamSpec("Arguments")
Built = TypeVar("Built")


@dataclass(frozen=True)
class Part:
    """A variant from outside: its option, as in "model/position=decay", and the function that builds it."""

    option: str
    build: Callable[..., Any]


PARTS: dict[type[Any], Part] = {}
"""The registered variants by their settings."""


def extensible(base: type[Any], *methods: str) -> Callable[[Callable[Arguments, Built]], Callable[Arguments, Built]]:
    """A decorator of a slot's builder: settings from outside go to the function that they were registered with.

    They are looked up first, since they may be a subclass of settings that the builder knows.

    Args:
        base: the class that such a function must return.
        methods: methods that the result must have beyond its base.
    """

    def around(build: Callable[Arguments, Built]) -> Callable[Arguments, Built]:
        signature = inspect.signature(build)

        @functools.wraps(build)
        def built(*arguments: Arguments.args, **named: Arguments.kwargs) -> Built:
            part = PARTS.get(type(arguments[0]))
            if part is None:
                return build(*arguments, **named)
            whole = signature.bind(*arguments, **named)
            whole.apply_defaults()
            result = part.build(*whole.args, **whole.kwargs)
            if not isinstance(result, base):
                raise UserError(
                    f"{part.option}: build must return {_type_name(base)}, but returned {_type_name(type(result))}"
                )
            for method in methods:
                if not callable(getattr(result, method, None)):
                    raise UserError(f"{part.option}: {type(result).__qualname__} needs a method {method}")
            return cast(Built, result)

        return built

    return around


def _type_name(kind: type[Any]) -> str:
    if kind is type(None):
        return "nothing"
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def source_of(settings: object) -> str:
    """The text of the file (or notebook cell) that builds a variant from outside, for caches; "" for the package's own.

    Raises:
        UserError: no source can be read.
    """
    part = PARTS.get(type(settings))
    if part is None:
        return ""
    for place in (inspect.getmodule(part.build), part.build):
        try:
            return inspect.getsource(cast(Any, place))
        except (OSError, TypeError):  # a notebook is no file, but its cells are kept
            continue
    raise UserError(f"{part.option}: the source of its build is not found; write it as a function in a file")

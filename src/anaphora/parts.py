"""Parts from outside the package: which function builds what settings describe.

Names and settings stand beside the built-in ones in `config.VARIANTS`, and `config.register` checks them; here is only
who builds. Every room may ask, so nothing of the package but the error is imported. No file can add a part: a stored
run names the parts that it needs and imports nothing.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar, cast

from anaphora.errors import UserError

Arguments = ParamSpec("Arguments")
Made = TypeVar("Made")


@dataclass(frozen=True)
class Part:
    """A part from outside: how it is chosen, as in "model/position=decay", and the function that builds it."""

    option: str
    build: Callable[..., Any]


PARTS: dict[type[Any], Part] = {}
"""The registered parts by their settings."""


def extensible(base: type[Any], *methods: str) -> Callable[[Callable[Arguments, Made]], Callable[Arguments, Made]]:
    """A decorator of a slot's builder: settings from outside go to the function that they were registered with.

    They are looked up first, since they may be a subclass of settings that the builder knows.

    Args:
        base: what such a function must return.
        methods: what that must have beyond its base.
    """

    def around(build: Callable[Arguments, Made]) -> Callable[Arguments, Made]:
        signature = inspect.signature(build)

        @functools.wraps(build)
        def built(*arguments: Arguments.args, **named: Arguments.kwargs) -> Made:
            part = PARTS.get(type(arguments[0]))
            if part is None:
                return build(*arguments, **named)
            whole = signature.bind(*arguments, **named)
            whole.apply_defaults()
            made = part.build(*whole.args, **whole.kwargs)
            if not isinstance(made, base):
                raise UserError(f"{part.option}: build must return {_said(base)}, and returned {_said(type(made))}")
            for method in methods:
                if not callable(getattr(made, method, None)):
                    raise UserError(f"{part.option}: {type(made).__qualname__} needs a method {method}")
            return cast(Made, made)

        return built

    return around


def _said(kind: type[Any]) -> str:
    if kind is type(None):
        return "nothing"
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def source_of(settings: object) -> str:
    """The text of the file (or notebook cell) that builds a part from outside, for caches; "" for the package's own.

    Raises:
        UserError: it is nowhere to be read.
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

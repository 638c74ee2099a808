"""Registry of variants that are defined outside the package, and their source code.

A variant is one of the interchangeable implementations of a part of a recipe; `settings.variants.register` adds one.
This module is quick to import, since it does not import the settings of models and vocabularies.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from anaphora.base.errors import UserError


@dataclass(frozen=True)
class Registration:
    """Registration of a variant that is defined outside the package.

    Attributes:
        option: command-line option that selects the variant, such as "model/position=decay".
        build: function that builds the variant.
    """

    option: str
    build: Callable[..., Any]


REGISTERED: dict[type[Any], Registration] = {}


def source_of(settings: object) -> str:
    """Return the source code of the file or notebook cell that builds a registered variant; "" for a built-in variant.

    Raises:
        UserError: the source cannot be read.
    """
    registration = REGISTERED.get(type(settings))
    if registration is None:
        return ""
    try:
        # Of a function, `getsource` would leave out the rest of its file or cell, on which it may depend.
        lines, _ = inspect.findsource(inspect.unwrap(registration.build))
    except (OSError, TypeError):
        raise UserError(
            f"{registration.option}: the source of its build is not found; write it as a function in a file"
        ) from None
    return "".join(lines)

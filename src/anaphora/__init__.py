"""Trainable mini-Transformer encoders, and whether their pronouns attend to their antecedents.

`anaphora.load("outputs/demo")` opens a run; `anaphora.api` says what can be asked of it. Importing the package loads
nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anaphora.api import load as load

__all__ = ["load"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from anaphora import api

        return getattr(api, name)
    raise AttributeError(f"module 'anaphora' has no attribute {name!r}")

"""Small trainable Transformer encoders, and tests of whether attention heads link pronouns to their antecedents.

`anaphora.attention("outputs/demo", "Anna ...")` computes the attention weights of one sentence in a trained run or in
any `transformers` model. `anaphora.load` opens a run; `anaphora.api` describes both. `anaphora.register` adds a custom
component, and `anaphora.main` runs the command line with this component. Submodules are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anaphora.api import answers as answers
    from anaphora.api import attention as attention
    from anaphora.api import load as load
    from anaphora.api import score as score
    from anaphora.cli import main as main
    from anaphora.settings.variants import register as register

_HOMES = {
    "answers": "api",
    "attention": "api",
    "load": "api",
    "main": "cli",
    "score": "api",
    "register": "settings.variants",
}

__all__ = ["answers", "attention", "load", "main", "register", "score"]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(f"anaphora.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'anaphora' has no attribute {name!r}")

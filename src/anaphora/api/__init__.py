"""Python interface for notebooks: attention maps and scores of a run or of any `transformers` model.

maps = anaphora.attention("hf://google-bert/bert-base-uncased", "Anna helped Emma because she was weak.")
maps.rank("she", "Anna")[:3]  # the heads in which "she" attends most to "Anna"
maps.page().open()

run = anaphora.load("outputs/demo")  # your own run, with the head chosen on its development split
run.attention("Anna was rescued by Emma because she was weak.").row("she").top(3)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anaphora.api.html import AttentionPage as AttentionPage
    from anaphora.api.maps import SentenceAttention as SentenceAttention
    from anaphora.api.models import attention as attention
    from anaphora.api.pronoun_answers import PronounAnswer as PronounAnswer
    from anaphora.api.pronoun_answers import answers as answers
    from anaphora.api.row import Row as Row
    from anaphora.api.runs import OpenRun as OpenRun
    from anaphora.api.runs import load as load
    from anaphora.api.scoring import Scores as Scores
    from anaphora.api.scoring import score as score

_HOMES = {
    "AttentionPage": "html",
    "OpenRun": "runs",
    "PronounAnswer": "pronoun_answers",
    "Row": "row",
    "Scores": "scoring",
    "SentenceAttention": "maps",
    "answers": "pronoun_answers",
    "attention": "models",
    "load": "runs",
    "score": "scoring",
}

__all__ = list(_HOMES)


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(f"anaphora.api.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'anaphora.api' has no attribute {name!r}")

"""Example sentences that a page shows first."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from anaphora.api.runs import OpenRun

if TYPE_CHECKING:
    from anaphora.hf.reader import TransformersModel


class FirstSentence(NamedTuple):
    """Text with its pronoun and candidates."""

    text: str
    pronoun: str
    candidates: list[str]


FIRST_SENTENCES = {
    "en": (
        FirstSentence("My sister called my brother because she was lost.", "she", ["sister", "brother"]),
        FirstSentence("Anna was rescued by Emma because she was weak.", "she", ["Anna", "Emma"]),
    ),
    "zh": (
        FirstSentence("姐姐给弟弟打电话，因为她迷路了。", "她", ["姐姐", "弟弟"]),
        FirstSentence("小红被美玲救了，因为她很虚弱。", "她", ["小红", "美玲"]),
    ),
}
"""An everyday sentence and one from the built-in corpus, by language; the latter for runs with a small vocabulary."""


def first_sentence(model: OpenRun | TransformersModel, language: str) -> FirstSentence:
    """Return the everyday sentence of a language, or the corpus sentence if the everyday one has unknown words."""
    everyday, of_corpus = FIRST_SENTENCES[language]
    return of_corpus if isinstance(model, OpenRun) and model.run.tokenizer.encode(everyday.text).unread else everyday

"""The sentences of the report's explorer: words, roles and packed maps, as the page's script reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anaphora.analysis.exhibits import Exhibit
from anaphora.analysis.words import SPECIAL
from anaphora.data.example import Example
from anaphora.report.packing import pack_map
from anaphora.report.pictures import roles


def explorer(shown: Sequence[Exhibit]) -> dict[str, Any]:
    """What `page.write_report` takes as its explorer."""
    counts: dict[str, int] = {}
    sentences = []
    for one in shown:
        language = one.record.example.language
        counts[language] = counts.get(language, 0) + 1
        sentences.append(_entry(one, f"{language}-{counts[language]}"))
    return {"sentences": sentences}


def _entry(shown: Exhibit, name: str) -> dict[str, Any]:
    example, row = shown.record.example, shown.row
    pronoun, antecedents, distractors = roles(example, row)
    return {
        "id": name,
        "text": example.text,
        "language": example.language,
        "kind": example.factors.get("kind"),
        "type": example.factors.get("type"),
        "words": list(row.words),
        "pronoun": pronoun,
        "antecedents": antecedents,
        "distractors": distractors,
        "special": [place for place, word in enumerate(row.words) if word == SPECIAL],
        "answer": _answer(example, shown.answer),
        "right": shown.right,
        "head_right": shown.head_right,
        "maps": {name: pack_map(each) for name, each in shown.maps.items()},
    }


def _answer(example: Example, answer: int) -> str | None:
    if answer < 0:
        return "none of them" if answer == -1 else None
    start, end = example.candidates[answer][0]
    return example.text[start:end]

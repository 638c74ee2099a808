"""The sentences of the report's explorer: words, roles and packed maps, as the page's script reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.maps.answers import NO_CANDIDATE
from anaphora.analysis.maps.words import attending_layers
from anaphora.base.language import language_of
from anaphora.data.example import Example, Span
from anaphora.report.figures.pictures import word_roles
from anaphora.report.page.packing import pack_map

if TYPE_CHECKING:
    from anaphora.analysis.evidence.exhibits import ExampleSentence


def explorer_entries(examples: Sequence[ExampleSentence]) -> list[dict[str, Any]]:
    """Return the sentences of one run as the explorer shows them.

    Returns:
        An entry a sentence: {"id", "text", "language", "kind", "type", "words", "pronoun", "antecedents",
        "distractors", "special", "answer", "right", "head_right", "maps": {name: {"shape": [L, H or 1, W, W], "data":
        base64 of uint8}}}; W words, indices count words, a candidate is the list of its words. The answer is the
        candidate's text, "" for none of them, or None if nothing was answered.
    """
    counts: dict[str, int] = {}
    sentences = []
    for sentence in examples:
        language = sentence.record.example.language
        counts[language] = counts.get(language, 0) + 1
        sentences.append(_sentence_entry(sentence, f"{language}-{counts[language]}"))
    return sentences


def _sentence_entry(sentence: ExampleSentence, name: str) -> dict[str, Any]:
    example, row = sentence.record.example, sentence.row
    pronoun, antecedents, distractors = word_roles(example, row.spans)
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
        "special": _special_words(row.spans),
        "answer": _answer_text(example, sentence.answer),
        "right": sentence.model_correct,
        "head_right": sentence.head_correct,
        "maps": {name: pack_map(weights) for name, weights in sentence.maps.items()},
    }


def attention_entry(
    text: str, words: Sequence[str], spans: Sequence[Span], weights: NDArray[np.float32], example: Example | None = None
) -> dict[str, Any]:
    """Return an entry of one map, (L, H, W, W), about a text with or without a pronoun question; words by their spans.

    Layers without attention are listed in "blank_layers".
    """
    attending = attending_layers(weights)
    blank = [layer for layer in range(len(weights)) if attending and layer not in attending]
    pronoun, antecedents, distractors = (None, [], []) if example is None else word_roles(example, spans)
    return completed_entry(
        {
            "text": text,
            "words": list(words),
            "pronoun": pronoun,
            "antecedents": antecedents,
            "distractors": distractors,
            "special": _special_words(spans),
            "maps": {"raw": {**pack_map(weights), **({"blank_layers": blank} if blank else {})}},
        }
    )


def completed_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Complete an explorer entry; the default text is the words that are not special."""
    special = set(entry.get("special", ()))
    words = [word for place, word in enumerate(entry["words"]) if place not in special]
    text = entry.get("text") or ("" if language_of("".join(words)) == "zh" else " ").join(words)
    return {
        "id": "1",
        "text": text,
        "language": language_of(text),
        **dict.fromkeys(("kind", "type", "answer", "right", "head_right", "pronoun")),  # nothing is known of them
        **{name: [] for name in ("antecedents", "distractors", "special")},
        **entry,
    }


def _special_words(spans: Sequence[Span]) -> list[int]:
    return [number for number, (start, end) in enumerate(spans) if start == end]


def _answer_text(example: Example, answer: int | None) -> str | None:
    """Return the candidate that the model names; "" for none of them, for which each page has its own words."""
    if answer is None:
        return None
    if answer == NO_CANDIDATE:
        return ""
    start, end = example.candidates[answer][0]
    return example.text[start:end]

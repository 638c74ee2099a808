"""Sentences of the report's explorer: words, roles and packed maps in the format of the page's script."""

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
    """Return the sentences of one run as explorer entries.

    Returns:
        One entry per sentence: {"id", "text", "language", "kind", "type", "words", "pronoun", "antecedents",
        "distractors", "special", "answer", "right", "head_right", "maps": {name: {"shape": [L, H or 1, W, W], "data":
        base64 of uint8}}}. There are W words; all indices count words, and a candidate is a list of word indices.
        "answer" is the text of the chosen candidate, "" for none of them, or None without an answer.
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
    """Return an explorer entry for one map of a text.

    Args:
        text: the text.
        words: W words.
        spans: (start, end) character span of each word; empty spans are special tokens.
        weights: (L, H, W, W); layers without attention are listed in the map's "blank_layers".
        example: pronoun question about the text, if there is one.
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
    """Fill in missing keys of an explorer entry; the default text joins the words that are not special."""
    special = set(entry.get("special", ()))
    words = [word for index, word in enumerate(entry["words"]) if index not in special]
    text = entry.get("text") or ("" if language_of("".join(words)) == "zh" else " ").join(words)
    return {
        "id": "1",
        "text": text,
        "language": language_of(text),
        **dict.fromkeys(("kind", "type", "answer", "right", "head_right", "pronoun")),  # unknown
        **{name: [] for name in ("antecedents", "distractors", "special")},
        **entry,
    }


def _special_words(spans: Sequence[Span]) -> list[int]:
    return [number for number, (start, end) in enumerate(spans) if start == end]


def _answer_text(example: Example, answer: int | None) -> str | None:
    """Return the candidate that the model chose; "" for none of them, None without an answer."""
    if answer is None:
        return None
    if answer == NO_CANDIDATE:
        return ""
    start, end = example.candidates[answer][0]
    return example.text[start:end]

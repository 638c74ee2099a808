"""Comparison of a page's results in Chromium with those of Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chromium import in_browser

from anaphora.analysis.maps.capture import capture_run
from anaphora.analysis.maps.words import word_weights
from anaphora.analysis.results.scores import Head
from anaphora.api import OpenRun
from anaphora.api.live.questions import EdgeCut, LiveQuestion, reply
from anaphora.data.example import Example
from anaphora.data.tokens.words import UnknownWords
from anaphora.runs.directory import Run

Edits = tuple[tuple[EdgeCut, ...], tuple[Head, ...]]
_ASK = """
  const lists = (maps) => maps.map((layer) => layer.map((head) => [...head]));
  return given.questions.map((question) => {
    const read = anaphora.read(question.text);
    const asked = anaphora.ask(read, question.pronoun, question.candidates, question.edits);
    return { ids: read.ids, spans: read.spans, words: read.words, unread: read.unread,
             labels: read.units.map((one) => one.label),
             maps: lists(asked.maps), rows: lists(asked.rows), shares: [...asked.shares] };
  });
"""


@dataclass(frozen=True)
class Differences:
    """Largest differences between the page and Python in any attention weight, and in any answer."""

    maps: float
    answers: float


def compare(run: Run, page: str, examples: Sequence[Example], folder: Path) -> Differences:
    """Compare the answers of a page and of Python to the same questions, some with ablated edges or heads.

    Raises:
        AssertionError: the tokens of a text differ.
    """
    edits = [edits_of(run, number) for number in range(len(examples))]
    seen = in_browser(page, _ASK, {"questions": list(map(_question, examples, edits))}, folder)
    maps, answers = [0.0], [0.0]
    for example, (cuts, off), found in zip(examples, edits, seen, strict=True):
        tokens = run.tokenizer.encode(example.text)
        assert found["ids"] == list(tokens.ids), example
        assert list(map(tuple, found["spans"])) == list(tokens.spans), example
        assert found["words"] == list(tokens.words), example
        assert list(map(tuple, found["unread"])) == list(tokens.unread), example
        expected = _expected(run, LiveQuestion(example.text, example, cuts, off))
        assert found["labels"] == expected["words"], example
        shape = (run.config.model.layers, -1, len(found["labels"]), len(found["labels"]))
        maps.append(_largest(np.reshape(found["maps"], shape), expected["maps"]))
        if not (cuts or off):
            (record,) = capture_run(run, [example]).records
            maps.append(_largest(found["rows"], word_weights(record).weights))
        answers.append(_largest(found["shares"][: len(expected["shares"])], expected["shares"]))
    return Differences(max(maps), max(answers))


def edits_of(run: Run, number: int) -> Edits:
    """Return, in turn, no edit, an edge, a head, or both."""
    layers, heads = run.config.model.layers, OpenRun(run).heads
    cuts = (EdgeCut(number % layers, number % heads, 3 + number % 2, 1),) if number % 2 else ()
    return cuts, (Head(number // 2 % layers, number % heads),) if number % 4 > 1 else ()


def _largest(found: Any, expected: Any) -> float:
    differences = np.abs(np.asarray(found, dtype=np.float64) - np.asarray(expected))
    assert np.isfinite(differences).all()
    return float(differences.max())


def _question(example: Example, edits: Edits) -> dict[str, Any]:
    """Return a question in the format of the page's script."""
    cuts = [{"layer": cut.layer, "head": cut.head, "from": cut.attending, "to": cut.attended} for cut in edits[0]]
    return {
        "text": example.text,
        "pronoun": example.pronoun,
        "candidates": [mentions[0] for mentions in example.candidates],
        "edits": {"cuts": cuts, "off": [{"layer": head.layer, "head": head.head} for head in edits[1]]},
    }


def _expected(run: Run, question: LiveQuestion) -> dict[str, Any]:
    """Return the reply of the live page's function, with maps before rounding."""
    maps: list[Any] = []

    def keep(weights: Any) -> dict[str, Any]:
        maps.append(weights)
        return {}

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("anaphora.report.page.explorer.pack_map", keep)
        everything_known = UnknownWords((), is_readable=True)  # the script itself answers whatever it is asked
        patched.setattr("anaphora.api.live.questions.unknown_words", lambda *_: everything_known)
        answered = reply(OpenRun(run), question)
    return {
        "words": answered["sentence"]["words"],
        "maps": maps[0],
        "shares": [one["share"] for one in answered["answers"]],
    }

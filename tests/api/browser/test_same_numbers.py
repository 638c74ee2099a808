"""The page computes what Python computes: tokens, maps, answers, with edges cut and heads switched off."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from chromium import CHROMIUM, in_browser
from untrained import random_run

from anaphora.analysis.maps.capture import capture_run
from anaphora.analysis.maps.words import word_weights
from anaphora.analysis.results.scores import Head
from anaphora.api import OpenRun
from anaphora.api.browser.page import browser_page
from anaphora.api.live.questions import EdgeCut, LiveQuestion, reply
from anaphora.data.own_sentence import example_from_query
from anaphora.runs.directory import Run

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")

SENTENCES = 20
"""How many sentences are compared with Python for each shape of model."""
CLOSE = 1e-3
ENGLISH = "{a} {verb} the {b} before {pronoun}'d been {state}."
CHINESE = "{a}{verb}{b}以后，{pronoun}很{state}。"
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


class Question(NamedTuple):
    """A sentence with its pronoun and candidates."""

    text: str
    pronoun: str
    candidates: tuple[str, str]


def questions() -> list[Question]:
    """Sentences in both languages: known and unknown words, names of several words, capitals, figures, accents."""
    english = [("Anna", "old Mary", "Mary"), ("The king", "Zoë-Lou", "Zoë-Lou"), ("PETER", "dog", "dog")]
    chinese = [("小红", "李强", "李强"), ("王芳", "Tom", "Tom"), ("猫", "龘龘", "龘龘")]
    listed = []
    for number in range(SENTENCES):
        is_english = number % 2 == 0
        a, b, name = (english if is_english else chinese)[number // 2 % 3]
        pronoun = (("she", "it", "They") if is_english else ("她", "它", "他们"))[number // 6 % 3]
        verb = ("met", "didn't see", "rang") if is_english else ("碰到", "没看见", "买了3个")
        state = ("tired", "in Café №5", "80 kg½") if is_english else ("累", "高兴", "3.5米")
        written = (ENGLISH if is_english else CHINESE).format(
            a=a, b=b, verb=verb[number % 3], pronoun=pronoun, state=state[number // 3 % 3]
        )
        listed.append(Question(written, pronoun, (a, name)))
    return listed


SHAPES = {
    "word, as trained by default": ("task/prediction=word",),
    "word with an output of its own": (
        "task/prediction=word", "task.prediction.none_of_them=true", "model.tied_output=false",
        "model.output_transform=true", "model/position=learned", "model.norm.placement=post",
        "model.norm.embedding=true", "vocabulary=wordpiece", "vocabulary.size=120",
    ),
    "slots": ("task/prediction=slot", "model.values=token", "model/norm=rms_norm", "model/feed_forward=swiglu"),
    "pairs and their weights": (
        "task/prediction=pair", "task.prediction.attention=true", "model/position=t5_relative",
        "model.position.max_distance=12", "model.position.buckets=8", "model/feed_forward=relu", "vocabulary=bpe",
        "vocabulary.size=90",
    ),
    "bilinear": (
        "task/prediction=bilinear", "task.prediction.none_of_them=true", "model/position=alibi",
        "model/attention=shared_query_key", "model.attention.scaled=false", "vocabulary=character",
    ),
    "one attention row": (
        "task/prediction=pointer", "task.prediction.none_of_them=true", "model/position=sinusoidal",
        "model/attention=single_head", "model.values=token", "model.norm.placement=post",
    ),
    "no projections": ("task/prediction=slot", "model/attention=parameter_free", "model/position=rotary"),
    "uniform attention": ("task/prediction=slot", "model/attention=uniform", "model/position=none"),
}  # fmt: skip


@pytest.mark.parametrize("overrides", SHAPES.values(), ids=SHAPES)
def test_tokens_are_equal_and_maps_and_answers_agree(
    overrides: tuple[str, ...], settings: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anaphora.api.browser.page.with_fonts", lambda html, *_: html)  # they take seconds to cut out
    run = random_run(settings, *overrides)
    asked = questions()
    edits = [edits_of(run, number) for number in range(len(asked))]
    seen = in_browser(browser_page(run), _ASK, {"questions": list(map(plain, asked, edits))}, tmp_path)
    for question, (cuts, off), found in zip(asked, edits, seen, strict=True):
        tokens = run.tokenizer.encode(question.text)
        assert found["ids"] == list(tokens.ids), question
        assert list(map(tuple, found["spans"])) == list(tokens.spans), question
        assert found["words"] == list(tokens.words), question
        assert list(map(tuple, found["unread"])) == list(tokens.unread), question
        example = example_from_query(question.text, question.pronoun, question.candidates)
        expected = expected_of(run, LiveQuestion(question.text, example, cuts, off))
        assert found["labels"] == expected["words"], question
        shape = (run.config.model.layers, -1, len(found["labels"]), len(found["labels"]))
        np.testing.assert_allclose(np.reshape(found["maps"], shape), expected["maps"], atol=CLOSE)
        if not (cuts or off):
            (record,) = capture_run(run, [example]).records
            np.testing.assert_allclose(found["rows"], word_weights(record).weights, atol=CLOSE)
        np.testing.assert_allclose(found["shares"][: len(expected["shares"])], expected["shares"], atol=CLOSE)


def edits_of(run: Run, number: int) -> tuple[tuple[EdgeCut, ...], tuple[Head, ...]]:
    """No edit, an edge, a head, both: of words 1 to 4, in turn."""
    layers, heads = run.config.model.layers, OpenRun(run).heads
    cuts = (EdgeCut(number % layers, number % heads, 3 + number % 2, 1),) if number % 2 else ()
    return cuts, (Head(number // 2 % layers, number % heads),) if number % 4 > 1 else ()


def plain(question: Question, edits: tuple[tuple[EdgeCut, ...], tuple[Head, ...]]) -> dict[str, Any]:
    """A question as the page's script takes it."""
    example = example_from_query(question.text, question.pronoun, question.candidates)
    cuts = [{"layer": cut.layer, "head": cut.head, "from": cut.attending, "to": cut.attended} for cut in edits[0]]
    return {
        "text": question.text,
        "pronoun": example.pronoun,
        "candidates": [mentions[0] for mentions in example.candidates],
        "edits": {"cuts": cuts, "off": [{"layer": head.layer, "head": head.head} for head in edits[1]]},
    }


def expected_of(run: Run, question: LiveQuestion) -> dict[str, Any]:
    """What Python says, by the function that answers the live page; its maps before they are rounded to bytes."""
    maps: list[Any] = []

    def keep(weights: Any) -> dict[str, Any]:
        maps.append(weights)
        return {}

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("anaphora.report.page.explorer.pack_map", keep)
        answered = reply(OpenRun(run), question)
    return {
        "words": answered["sentence"]["words"],
        "maps": maps[0],
        "shares": [one["share"] for one in answered["answers"]],
    }

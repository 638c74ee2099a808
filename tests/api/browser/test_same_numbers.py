"""Tests that the page computes the same as Python: tokens, maps and answers, with ablated edges and heads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browser_numbers.compare import compare
from chromium import CHROMIUM
from untrained import random_run

from anaphora.api.browser.page import browser_page
from anaphora.data.example import Example
from anaphora.data.own_sentence import example_from_query

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")

SENTENCES = 20
"""Number of sentences that are compared for each model."""
CLOSE = 1e-3
ENGLISH = "{a} {verb} the {b} before {pronoun}'d been {state}."
CHINESE = "{a}{verb}{b}以后，{pronoun}很{state}。"


def questions() -> list[Example]:
    """Return sentences in both languages, with unknown words, names of several words, capitals, digits and accents."""
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
        listed.append(example_from_query(written, pronoun, (a, name)))
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
    # Fonts take seconds to cut out.
    monkeypatch.setattr("anaphora.report.page.offline.with_fonts", lambda html, *_: html)
    temperatures = {"en": 0.6, "zh": 1.7}
    for place in ("anaphora.api.browser.page", "anaphora.api.pronoun_answers"):
        monkeypatch.setattr(f"{place}.answer_temperatures", lambda _run: temperatures)
    run = random_run(settings, *overrides)
    found = compare(run, browser_page(run), questions(), tmp_path)
    assert found.maps < CLOSE and found.answers < CLOSE

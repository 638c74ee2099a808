"""Tests that edges are cut only in layers with attention."""

from __future__ import annotations

from pathlib import Path

import pytest
from chromium import CHROMIUM, in_browser
from tiny import HYBRIDS, random_model, tokenizer

from anaphora.api.live import questions
from anaphora.api.live.server import LiveApplication
from anaphora.base.errors import UserError
from anaphora.hf.reader import TransformersModel, open_model

_CUT_EVERYWHERE = """
  let sent = null;
  const reply = { ok: false, json: async () => ({ error: "no" }) };
  window.fetch = async (_, { body }) => { sent = JSON.parse(body); return reply; };
  at("explorer").dispatchEvent(new CustomEvent("edge", { detail: { from: 2, to: 1, layer: 1, head: 0 } }));
  const buttons = [...at("edit-choices").querySelectorAll("button")];
  buttons.find((one) => one.textContent === "in every layer and head").click();
  await pause(50);
  return [...new Set(sent.cuts.map(([layer]) => layer))];
"""


@pytest.fixture(scope="module")
def hybrid() -> TransformersModel:
    """Return a model with attention in layers 1 and 3 of 4."""
    family, settings = HYBRIDS[0]
    return open_model(random_model(family, **settings), tokenizer())


@pytest.mark.parametrize("edit", [{"cuts": [[0, 0, 2, 1]]}, {"off": [[2, 0]]}])
def test_an_edit_of_a_layer_without_attention_is_refused(hybrid: TransformersModel, edit: dict[str, object]) -> None:
    with pytest.raises(UserError, match=r"layer \([02]\) has no attention; layers with attention: 1, 3"):
        questions.reply(hybrid, questions.parse({"text": "Anna helped Emma because she was weak.", **edit}))


@pytest.mark.parametrize("text", ["Anna dankte Emma, weil sie half.", "Anna 龘 helped Emma because she was weak."])
def test_notes_on_a_model_without_answers_speak_of_weights_alone(hybrid: TransformersModel, text: str) -> None:
    pronoun = "sie" if "sie" in text else "she"
    *others, last = questions.reply(hybrid, questions.parse({"text": text, "pronoun": pronoun}))["notes"]
    assert last == "This model gives maps and no answer about pronouns."
    assert all(note.startswith("Do not trust the weights of ") for note in others)


@pytest.mark.skipif(CHROMIUM is None, reason="no browser here")
def test_every_layer_is_every_layer_with_attention(hybrid: TransformersModel, tmp_path: Path) -> None:
    page = LiveApplication({"hybrid": hybrid}).page("en")
    assert in_browser(page, _CUT_EVERYWHERE, {"early": True}, tmp_path) == [1, 3]

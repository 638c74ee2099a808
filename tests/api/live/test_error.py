"""Tests that an error on the live page removes the results of the previous question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from chromium import CHROMIUM, in_browser

import anaphora
from anaphora.api.live.server import LiveApplication

_ASK = """
  window.fetch = async () => ({ ok: false, json: async () => ({ error: "no such word" }) });
  const shown = () => ["live-results", "explorer", "ask-words", "ask-error"].map((name) => at(name).checkVisibility());
  const ask = async () => { at("ask").requestSubmit(); await pause(100); return shown(); };
  const opened = shown(), same = await ask();
  at("ask-text").value = "Another sentence.";
  return { opened, same, other: await ask(), error: at("ask-error").textContent };
"""


@pytest.mark.skipif(CHROMIUM is None, reason="no browser here")
def test_an_error_hides_the_old_answer_and_the_words_of_another_sentence(own_run: Path, tmp_path: Path) -> None:
    page = LiveApplication({"own": anaphora.load(own_run)}).page("en")
    seen: Any = in_browser(page, _ASK, {"early": True}, tmp_path)
    assert seen == {
        "opened": [True, True, True, False],
        "same": [False, False, True, True],
        "other": [False, False, False, True],
        "error": "no such word",
    }

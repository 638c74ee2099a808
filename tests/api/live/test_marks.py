"""Tests of the marked words on the live page: what they ask about, and that the keyboard stays at its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from chromium import CHROMIUM, PARTED_MARKS, in_browser

import anaphora
from anaphora.api.live.server import LiveApplication

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no browser here")

_READER = """
  // The server: it reads words and marks, and finds the last "she".
  let sent = null;
  window.fetch = async (_, { body }) => {
    sent = JSON.parse(body);
    const parts = [...sent.text.matchAll(/[\\p{L}’]+|[^\\p{L}\\s]/gu)];
    const spans = parts.map((one) => [one.index, one.index + one[0].length]), words = parts.map(([word]) => word);
    const found = sent.text.lastIndexOf("she"), pronoun = sent.pronoun?.split(":").map(Number) ?? [found, found + 3];
    const reply = { words, spans, pronoun, answers: null, notes: [], chosen: null, seconds: 0 };
    return { ok: true, json: async () => reply };
  };
  const ask = async (text) => { at("ask-text").value = text; at("ask").requestSubmit(); await pause(50); };
  const words = () => [...at("ask-words").querySelectorAll("button")];
  const word = (text) => words().find((one) => one.textContent === text);
  const click = async (...texts) => { for (const text of texts) { word(text).click(); await pause(50); } };
  const part = (place) => sent.text.slice(...place.split(":").map(Number));
  const asked = () => [sent.pronoun ?? "0:0", ...sent.candidates].map(part);
  const pronouns = () => [...at("ask-words").querySelectorAll(".pronoun")].map((one) => one.textContent);
"""


def use(own_run: Path, body: str, folder: Path) -> Any:
    """Run a script on the live page, with a server that reads every text, and return its result."""
    page = LiveApplication({"own": anaphora.load(own_run)}).page("en")
    return in_browser(page, _READER + body, {"early": True}, folder)


def test_marking_names_keeps_the_characters_of_the_pronoun_that_was_found(own_run: Path, tmp_path: Path) -> None:
    body = 'await ask("Anna met Emma, as she’d asked."); await click("Anna", "Emma"); return [asked(), pronouns()];'
    assert use(own_run, body, tmp_path) == [["she", "Anna", "Emma"], ["she’d"]]


def test_names_are_sent_although_a_click_took_the_mark_from_the_pronoun(own_run: Path, tmp_path: Path) -> None:
    body = """
      await ask("Anna met Emma, as she asked.");
      await click("Anna", "Emma", "she");
      const first = [asked(), pronouns()];
      await click("Anna", "asked", "asked");
      return [...first, asked(), pronouns()];
    """
    expected = [["she", "Anna", "Emma"], ["she"], ["asked", "Emma"], ["asked"]]
    assert use(own_run, body, tmp_path) == expected


def test_a_title_and_a_dot_belong_to_the_name(own_run: Path, tmp_path: Path) -> None:
    body = """
      await ask("Dr. May met J. Lee and Tom. May I ask what 玛丽·居里 said when she left?");
      await click("Dr", "May", "J", "Lee", "Tom", "玛丽", "居里");
      const names = asked();
      words().filter((one) => one.textContent === "May")[1].click();
      await pause(50);
      return [names, asked().slice(3, 5)];
    """
    names = ["Dr. May", "J. Lee", "Tom"]
    assert use(own_run, body, tmp_path) == [["she", *names, "玛丽·居里"], ["Tom", "May"]]


def test_no_line_of_words_begins_with_a_closing_mark_or_ends_with_an_opening_one(own_run: Path, tmp_path: Path) -> None:
    body = """
      await ask("“Anna (or Emma) met Mary,” said Tom, “as she asked.”");
      return [partedMarks(at("ask-words")), words().length > 12];
    """
    assert use(own_run, PARTED_MARKS + body, tmp_path) == [[], True]


def test_the_focus_stays_at_the_word_that_was_pressed(own_run: Path, tmp_path: Path) -> None:
    body = """
      await ask("Anna met Emma, as she asked.");
      word("Emma").focus();
      await click("Emma");
      return document.activeElement.textContent;
    """
    assert use(own_run, body, tmp_path) == "Emma"


def test_a_mark_is_told_in_words_and_an_answer_is_read_out(own_run: Path, tmp_path: Path) -> None:
    body = """
      await ask("Anna met Emma, as she asked.");
      await click("Emma");
      const told = (text) => [word(text).title, word(text).getAttribute("aria-pressed"), word(text).lang];
      const live = at("live-answers").getAttribute("aria-live");
      return [told("Emma"), told("she"), told("met"), live, at("ask-text").lang];
    """
    marks = [["candidate", "true", "en"], ["pronoun", "true", "en"], ["", "false", "en"]]
    assert use(own_run, body, tmp_path) == [*marks, "polite", "en"]


def test_enter_that_ends_the_composition_of_a_chinese_word_asks_nothing(own_run: Path, tmp_path: Path) -> None:
    body = """
      const press = async (isComposing) => {
        at("ask-text").dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", isComposing }));
        await pause(50);
        return sent !== null;
      };
      return [await press(true), await press(false)];
    """
    assert use(own_run, body, tmp_path) == [False, True]

"""Tests of the first screen: title, verdict, picture and legible text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chromium import CHROMIUM, SMALL_TEXTS, in_browser

from anaphora.analysis.evidence.evidence import Evidence, Verdict
from anaphora.analysis.evidence.verdict import NOT_CONTROLLED, NOT_SUPPORTED, SUPPORTED
from anaphora.analysis.results.scores import Groups
from anaphora.base.translation import spoken_in
from anaphora.report.page.elements import ReportRun
from anaphora.report.page.offline import read_asset
from anaphora.report.page.opening import control_commands, verdict_sentence
from anaphora.report.page.write import write_report

LAYOUT = (
    """
  document.querySelectorAll("details").forEach((folded) => { folded.open = true; });
  await pause(300);
"""
    + SMALL_TEXTS
    + """
  const wide = [...document.querySelectorAll(".scroll")].filter((each) => each.scrollWidth > each.clientWidth + 1);
  const pictures = [...document.querySelectorAll("header svg")].map((each) => each.getBoundingClientRect().width);
  return { small, wide: wide.map((each) => each.ariaLabel), pictures: pictures.filter((width) => width > 0) };
"""
)


@pytest.fixture(scope="module")
def run(evidence: Evidence, sentences: list[dict[str, Any]]) -> ReportRun:
    return ReportRun(name="demo", evidence=evidence, argument="outputs/my demo", sentences=sentences)


@pytest.fixture(scope="module", params=["en", "zh"])
def html(request: pytest.FixtureRequest, run: ReportRun, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a report in one language."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    with spoken_in(request.param):
        write_report(path, [run], "Title")
    return path.read_text(encoding="utf-8")


def verdicts(evidence: Evidence, *results: str) -> Groups[Verdict]:
    """Return the verdicts of the evidence with the given results, in order."""
    given = iter(results)
    return {
        language: {kind: replace(cell, verdict=next(given)) for kind, cell in kinds.items()}
        for language, kinds in (evidence.verdict or {}).items()
    }


def test_title_verdict_meaning_of_cues_and_picture_precede_the_contents(html: str) -> None:
    marks = ("<h1>", '<p class="opening"><strong>', '<p class="quiet cues">', "<figure>", "<nav", "<h2")
    places = [html.index(mark) for mark in marks]
    assert places == sorted(places)


@pytest.mark.parametrize("result", [SUPPORTED, NOT_SUPPORTED, NOT_CONTROLLED])
def test_the_first_sentence_holds_the_verdict_once_for_all_with_the_same_one(evidence: Evidence, result: str) -> None:
    same = verdicts(evidence, *[result] * 4)
    text = verdict_sentence(replace(evidence, verdict=same, verdict_at_head=same))
    assert text.startswith(f"{result.capitalize()} in English and Chinese, for the layer and for the head alone: ")
    assert text.count(".") == 1


def test_verdicts_that_differ_are_told_apart_by_kind_of_cue_and_by_scope_in_one_sentence(evidence: Evidence) -> None:
    of_layer = verdicts(evidence, SUPPORTED, SUPPORTED, SUPPORTED, NOT_SUPPORTED)
    of_head = verdicts(evidence, *[NOT_SUPPORTED] * 4)
    text = verdict_sentence(replace(evidence, verdict=of_layer, verdict_at_head=of_head))
    assert text.partition(":")[0] == (
        "Supported in English and Chinese set cues, not supported in Chinese role cues, for the layer; "
        "not supported in English and Chinese, for the head alone"
    )
    assert text.count(".") == 1
    assert verdict_sentence(replace(evidence, verdict=None, verdict_at_head=None)) == ""


def test_a_verdict_without_controls_names_the_commands_that_train_them(run: ReportRun, html: str) -> None:
    open_verdict = replace(run.evidence, verdict=verdicts(run.evidence, *[NOT_CONTROLLED] * 4))
    commands = ["anaphora controls 'run=outputs/my demo'", "anaphora report 'run=outputs/my demo'"]
    assert control_commands(replace(run, evidence=open_verdict)) == commands
    assert control_commands(replace(run, evidence=replace(open_verdict, split="dev")))[0].endswith(" split=dev")
    assert not control_commands(replace(run, evidence=open_verdict, argument=""))
    closed = verdicts(run.evidence, *[SUPPORTED] * 4)
    assert not control_commands(replace(run, evidence=replace(run.evidence, verdict=closed, verdict_at_head=closed)))


@pytest.mark.parametrize("width", [1280, 500])
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_no_text_is_below_11_px_and_a_table_fits_a_screen_of_1280_px(html: str, width: int, tmp_path: Path) -> None:
    seen = in_browser(html, LAYOUT, {"early": True}, tmp_path, f"--window-size={width},900")
    assert not seen["small"]
    (picture,) = seen["pictures"]
    if width == 1280:
        assert not seen["wide"]
    else:
        assert picture <= 400 - 2 * 16, "the opening picture fits a phone of 400 px between its margins"


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_the_caption_of_a_narrow_table_is_as_wide_as_other_text_and_leaves_its_table_narrow(tmp_path: Path) -> None:
    table = f"<table><caption>{'Weight of the antecedent. ' * 8}</caption><tr><th>head</th><td>1</td></tr></table>"
    page = f'<style>{read_asset("report.css")}</style><body><main><div class="scroll">{table}</div></main></body>'
    body = """
      const width = (name) => document.querySelector(name).getBoundingClientRect().width;
      const scrolls = document.querySelector(".scroll").scrollWidth > width(".scroll");
      return [width("caption"), width("table") < 100, scrolls];
    """
    assert in_browser(page, body, {"early": True}, tmp_path, "--window-size=1280,900") == [46 * 16, True, False]


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("language", "names", "colon"), [("en", "first and third", ": "), ("zh", "first、third", "：")]
)
def test_the_first_screen_of_several_runs_says_what_was_found_of_each(
    language: str, names: str, colon: str, run: ReportRun, tmp_path: Path
) -> None:
    other = replace(run.evidence, verdict=verdicts(run.evidence, *[NOT_SUPPORTED] * 4))
    found = zip(("first", "second", "third"), (run.evidence, other, run.evidence), strict=True)
    with spoken_in(language):
        write_report(tmp_path / "report.html", [replace(run, name=name, evidence=one) for name, one in found], "Title")
        shared, own = verdict_sentence(run.evidence), verdict_sentence(other)
    header = (tmp_path / "report.html").read_text(encoding="utf-8").partition("<nav")[0]
    assert shared and f'<p class="opening">{names}{colon}<strong>{shared}</strong></p>' in header
    assert own != shared and f'<p class="opening">second{colon}<strong>{own}</strong></p>' in header

"""Tests of what a screen reader is told, and of pages on paper."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chromium import CHROMIUM, PARTED_MARKS, in_browser

import anaphora
from anaphora.analysis.evidence.comparison import compare_runs
from anaphora.analysis.evidence.evidence import Evidence
from anaphora.base.translation import spoken_in
from anaphora.report.figures.maps import QuadCell, pronoun_row_figure
from anaphora.report.page.elements import FigureElement, ReportRun, TableElement
from anaphora.report.page.explorer import attention_entry
from anaphora.report.page.offline import template_environment, with_languages
from anaphora.report.page.sections.heads import quads_section
from anaphora.report.page.write import inline_figure, write_attention_page, write_report

PACKAGE = Path(anaphora.__file__).parent
STYLES = sorted(PACKAGE.rglob("*.css"))
ON_PAPER = """
  for (const sheet of document.styleSheets) for (const rule of [...sheet.cssRules].filter((one) => one.media)) {
    if (rule.media.mediaText === "print") rule.media.mediaText = "all";
    else if (/^screen/.test(rule.media.mediaText)) rule.media.mediaText = "not all";
  }
  await pause(300);
  const isShown = (one) => one.getClientRects().length > 0;
"""


@pytest.fixture(scope="module", autouse=True)
def quick() -> Iterator[None]:
    """Skip the subsetting of fonts, which takes seconds."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("anaphora.report.page.offline.with_fonts", lambda html, *_: html)
        yield


@pytest.fixture(scope="module", params=["en", "zh"])
def html(
    request: pytest.FixtureRequest,
    evidence: Evidence,
    sentences: list[dict[str, Any]],
    tmp_path_factory: pytest.TempPathFactory,
) -> str:
    """Return a report on two runs in one language."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    runs = [ReportRun(name=name, evidence=evidence, sentences=sentences) for name in ("first", "second")]
    with spoken_in(request.param):
        write_report(path, runs, "Title", compare_runs([evidence, evidence]))
    return path.read_text(encoding="utf-8")


@pytest.fixture
def attention(tmp_path: Path) -> str:
    """Return the page on the attention in one sentence."""
    words = ["Anna", "met", "Emma"]
    spans, maps = [(0, 4), (5, 8), (9, 13)], np.full((2, 2, 3, 3), 1 / 3, np.float32)
    write_attention_page(tmp_path / "page.html", attention_entry(" ".join(words), words, spans, maps))
    return (tmp_path / "page.html").read_text(encoding="utf-8")


def test_headings_go_one_level_down_at_a_time(html: str, attention: str) -> None:
    for page in (html, attention):
        levels = [int(level) for level in re.findall(r"<h([1-6])\b", page)]
        assert levels[0] == 1 and levels.count(1) == 1
        assert all(level <= before + 1 for before, level in pairwise(levels))


def test_regions_of_several_runs_have_names_of_their_own(html: str) -> None:
    texts = dict(re.findall(r'<h2 id="([^"]*)">(.*?)</h2>', html))
    named = re.findall(r'<section id="[^"]*" aria-labelledby="([^"]*)"', html)
    names = [" ".join(texts[one] for one in ids.split()) for ids in named]
    assert len(names) > 20 and len(set(names)) == len(names)
    assert 'role="region"' not in html, "every table and figure that scrolls would be a landmark"


def test_a_quad_is_told_as_written_with_the_weight_of_each_candidate(evidence: Evidence) -> None:
    cell = QuadCell(
        words=["[CLS]", "Ann", "Lee", "met", "Emma"],
        weights=[0.1, 0.2, 0.3, 0.0, 0.4],
        pronoun=3,
        antecedents=[[1, 2]],
        distractors=[4],
        text="Ann Lee …",
    )
    section = quads_section(ReportRun(name="one", evidence=evidence, quads=[("en", "set", [cell] * 4)]))
    (figure,) = section.elements
    assert isinstance(figure, FigureElement)
    told = "“Ann Lee …”: antecedent “Ann Lee” 0.50 and other candidate “Emma” 0.40"
    assert figure.alt == f"English, set cues: {told}; {told}; {told}; {told}"


def test_every_heading_of_a_table_says_what_it_is_of(html: str) -> None:
    headings = re.findall(r"<th\b[^>]*>", html)
    assert headings and all(re.search(r'scope="(col|row)"', one) for one in headings)


def test_a_summary_holds_nothing_but_text_and_a_heading(html: str) -> None:
    inside = "".join(re.findall(r"<summary>(.*?)</summary>", html, re.DOTALL))
    assert set(re.findall(r"<(\w+)", inside)) <= {"span", "svg", "circle", "path", "h2", "small"}


def test_shade_and_marks_of_a_word_are_told_to_those_who_listen(html: str) -> None:
    heard = re.findall(r'<span class="visually-hidden" lang="(\w+)"> \((.*?)\)</span>', html)
    assert {language for language, _ in heard} == set(re.findall(r'<html lang="(\w+)"', html))
    told = {re.sub(r"\d.*", "", words) for _, words in heard}
    assert {"pronoun", "antecedent, weight ", "weight "} <= told or {"代词", "先行词，权重 ", "权重 "} <= told


@pytest.mark.parametrize(
    ("element", "rule"),
    [
        ("caption", "break-after"),
        (r":is\(h2, h3\) \+ \.quiet", "break-after"),
        (r"\.key", "break-before"),
        (r"\.facts, \.judgement summary", "break-inside"),
    ],
)
def test_titles_and_keys_are_printed_on_the_page_of_what_they_belong_to(element: str, rule: str) -> None:
    (style,) = [path for path in STYLES if path.name == "report.css"]
    printed = style.read_text(encoding="utf-8").partition("@media print {")[2]
    assert re.search(rf"^  (?:[^{{\n]*, )?{element} \{{[^}}]*{rule}: avoid;", printed, re.MULTILINE)


@pytest.mark.parametrize("path", STYLES, ids=[path.name for path in STYLES])
def test_rules_for_small_windows_are_not_for_paper(path: Path) -> None:
    for condition in re.findall(r"@media ([^{]*max-width[^{]*)", path.read_text(encoding="utf-8")):
        assert condition.startswith("screen and ")


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_with_the_readers_own_colours_maps_stay_readable_and_the_chosen_head_is_seen(
    attention: str, tmp_path: Path
) -> None:
    body = """
      for (const rule of [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]))
        if (rule.media?.mediaText.includes("forced-colors")) rule.media.mediaText = "all";
      await pause(300);
      const chosen = document.querySelector('#choose-head [aria-checked="true"]');
      const kept = (one) => getComputedStyle(one);
      const word = kept(at("row-words").firstChild).forcedColorAdjust;
      return [kept(at("map")).backgroundColor, word, kept(chosen).outlineWidth];
    """
    assert in_browser(attention, body, {"early": True}, tmp_path) == ["rgb(255, 255, 255)", "none", "3px"]


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_a_printed_page_of_one_sentence_has_its_row_and_its_map(attention: str, tmp_path: Path) -> None:
    body = f"{ON_PAPER} return ['row-words', 'map', 'choose-head', 'view-link'].map((name) => isShown(at(name)));"
    assert in_browser(attention, body, {"early": True}, tmp_path) == [True, True, True, False]


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_on_a_phone_a_long_name_of_a_row_leaves_room_for_its_numbers(tmp_path: Path) -> None:
    style = (PACKAGE / "report/page/templates/report.css").read_text(encoding="utf-8")
    row = f"<tr><th>en/composition/{'test/' * 8}inside2</th>{'<td class=number>100.0</td>' * 6}</tr>"
    page = f"<style>{style}</style><body><main><div class=scroll><table><tbody>{row}</table></div></main></body>"
    body = 'const wide = (name) => document.querySelector(name).clientWidth; return wide("th") / wide(".scroll");'
    assert in_browser(page, body, {"early": True}, tmp_path, "--window-size=500,900") < 0.5


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_the_words_that_attend_to_a_word_are_read_out(attention: str, tmp_path: Path) -> None:
    body = """
      await pause(300);
      at("row-words").children[1].focus();
      const box = at("column-words"), title = at(box.getAttribute("aria-labelledby"));
      return [title.textContent, box.closest("[aria-hidden]") === null, box.innerText.includes("0.33")];
    """
    assert in_browser(attention, body, {"early": True}, tmp_path) == ["What attends to “met”", True, True]


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_no_line_of_words_begins_with_a_closing_mark_or_ends_with_an_opening_one(tmp_path: Path) -> None:
    words = ["小红", "（", "姐姐", "）", "说", "：", "“", "小明", "累", "了", "。", "”"]
    ends = list(accumulate(map(len, words)))
    spans = [(end - len(word), end) for word, end in zip(words, ends, strict=True)]
    maps = np.full((1, 1, 12, 12), 1 / 12, np.float32)
    write_attention_page(tmp_path / "page.html", attention_entry("".join(words), words, spans, maps))
    body = f"""
      {PARTED_MARKS} await pause(300);
      at("row-words").querySelector("button").click();
      return ["row-words", "column-words"].map(at).map(partedMarks);
    """
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert in_browser(page, body, {"early": True}, tmp_path) == [[], []]


@pytest.mark.parametrize(
    ("language", "sentence", "marked"),
    [
        ("en", "“她” gives 97 % to “小红”", "“<span lang='zh'>她</span>” gives 97 % to “<span lang='zh'>小红</span>”"),
        ("en", "“she” & <b>", "“she” &amp; &lt;b&gt;"),
        ("zh", "“she”把 97% 给了“Anna”", "“<span lang='en'>she</span>”把 97% 给了“<span lang='en'>Anna</span>”"),
        ("zh", "第 2 层：Anna met Emma. softmax", "第 2 层：<span lang='en'>Anna met Emma.</span> softmax"),
        ("zh", "“她”关注“小红”", "“她”关注“小红”"),
    ],
)
def test_words_of_the_other_language_in_a_sentence_of_the_page_are_marked(
    language: str, sentence: str, marked: str
) -> None:
    with spoken_in(language):
        assert with_languages(sentence) == marked.replace("'", '"')


def test_chinese_words_in_a_table_of_an_english_page_are_marked() -> None:
    element = TableElement(title="From 她", columns=["from", "to 小红"], rows=[["她", "0.5"]])
    module = template_environment().get_template("elements.html.j2").module
    marked = re.findall(r'<span lang="zh">([^<]*)', str(vars(module)["table"](element)))
    assert marked == ["她", "小红", "她"]


def test_chinese_words_in_a_figure_of_an_english_page_are_marked() -> None:
    figure = pronoun_row_figure(["小红", "met", "她"], [0.7, 0.2, 0.1], [2], [[0]], [], "A row")
    marked = re.findall(r'<text lang="zh"[^>]*>([^<]*)', inline_figure(figure, "").svg)
    assert marked == ["小红", "她"]
    with spoken_in("zh"):
        assert 'lang="' not in inline_figure(figure, "").svg

from __future__ import annotations

import base64
import io
import json
import re
import shutil
import subprocess
import time
import zlib
from dataclasses import fields, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fontTools.ttLib import TTFont
from matplotlib.figure import Figure
from matplotlib.text import Text

from anaphora.analysis.evidence.comparison import compare_runs
from anaphora.analysis.evidence.evidence import Evidence
from anaphora.analysis.scores.measures.levels import Level
from anaphora.base.errors import UserError
from anaphora.base.translation import spoken_in
from anaphora.report.figures.fonts import is_chinese
from anaphora.report.figures.maps import QuadCell
from anaphora.report.page import explorer
from anaphora.report.page import sections as sections_module
from anaphora.report.page.elements import FigureElement, ReportRun, ShadedSentence, ShadedWord, TableElement
from anaphora.report.page.explorer import attention_entry, pack_map, unpack_map
from anaphora.report.page.offline import number_parts
from anaphora.report.page.opening import comparison_section, run_facts, run_headline
from anaphora.report.page.sections import run_sections
from anaphora.report.page.sections.heads import heads_section
from anaphora.report.page.write import write_attention_page, write_report
from anaphora.report.terminal import print_comparison

HOSTILE = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">'\"&\u2028</script>"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)


class Page(HTMLParser):
    """Parser of the elements of a page, and of the text of its scripts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1][0] == "script" and self.cdata_elem == "script":
            self.scripts[-1] += data
        else:
            self.text += data

    def values(self, name: str) -> list[str]:
        return [value for _, attributes in self.elements if (value := attributes.get(name)) is not None]


@pytest.fixture(scope="module")
def report(
    tmp_path_factory: pytest.TempPathFactory,
    evidence: Evidence,
    sentences: list[dict[str, Any]],
    validations: list[dict[str, float]],
) -> tuple[Path, dict[str, dict[str, Figure]]]:
    """Write a report on invented evidence with hostile strings in its data, and return its path and figures."""
    assert evidence.factors
    assert evidence.controls
    assert evidence.controls["uniform"]
    assert evidence.protocol
    factors = {factor: dict(languages) for factor, languages in evidence.factors.items()}
    for factor, accuracy in (("template", 0.0), ("type", 0.9)):
        first, *others = factors[factor]["en"]
        factors[factor]["en"] = (replace(first, value=HOSTILE, candidate_accuracy=accuracy), *others)
    evidence = replace(
        evidence,
        factors=factors,
        controls=evidence.controls | {"uniform": replace(evidence.controls["uniform"], observed=HOSTILE)},
        protocol=replace(evidence.protocol, hash=HOSTILE),
    )
    words = ["[CLS]", HOSTILE, "saw", "him", "[SEP]"]
    cell = QuadCell(words=words, weights=[0.1, 0.6, 0.1, 0.1, 0.1], pronoun=3, antecedents=[1], distractors=[0])
    even = pack_map(np.full((3, 4, 5, 5), 0.2))
    bad = {
        "id": HOSTILE, "text": " ".join(words), "language": HOSTILE, "kind": HOSTILE, "type": HOSTILE, "words": words,
        "pronoun": [3], "antecedents": [[1]], "distractors": [[2]], "special": [0, 4], "answer": HOSTILE, "right": True,
        "head_right": True, "maps": {"raw": even, HOSTILE: even}, "pronoun_rows": np.full((3, 4, 5), 0.2).tolist(),
    }  # fmt: skip
    run = ReportRun(
        name=HOSTILE,
        evidence=evidence,
        validations=validations,
        heads={language: np.linspace(0.3, 1, 12).reshape(3, 4) for language in ("en", "zh")},
        heads_chance={"en": 0.44, "zh": 0.44},
        chance=0.45,
        quads=[("en", "role", [cell] * 4)],
        sentences=[bad, *sentences[1:]],
    )
    path = tmp_path_factory.mktemp("report") / "report.html"
    drawn = write_report(path, [run], f"The report {HOSTILE}")
    return path, drawn


@pytest.fixture(scope="module")
def html(report: tuple[Path, dict[str, dict[str, Figure]]]) -> str:
    return report[0].read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


def test_a_report_of_64_sentences_is_under_3_mb(report: tuple[Path, dict[str, dict[str, Figure]]]) -> None:
    assert report[0].stat().st_size < 3_000_000


def test_nothing_outside_the_page_is_asked_for(html: str, page: Page) -> None:
    assert not re.search(r"https?:|//cdn|@import", html)
    loaded = [name for name in ("src", "srcset", "data", "action", "poster") for _ in page.values(name)]
    assert not loaded
    assert all(link.startswith(("#", "data:")) for link in page.values("href"))
    assert all(asked.startswith(("data:font/woff;", "#")) for asked in re.findall(r"url\(([^)]*)", html))
    policy = dict(page.elements)["meta"] | {"content": page.values("content")[0]}
    assert policy["content"] == (
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; font-src data:"
    )


def test_ids_are_unique_and_what_points_at_one_finds_it(html: str, page: Page) -> None:
    ids = page.values("id")
    assert len(set(ids)) == len(ids)
    pointed = {link[1:] for link in page.values("href") if link.startswith("#") and not link.startswith("#view")}
    pointed |= set(re.findall(r"url\(#([^)]*)\)", html)) | set(page.values("aria-labelledby"))
    assert pointed
    assert pointed <= set(ids)


def test_text_from_data_is_text(page: Page) -> None:
    assert len(page.scripts) == 2
    assert not [tag for tag, _ in page.elements if tag == "img"]
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    assert page.text.count("document.title='owned'") > 5


def test_the_explorers_data_are_read_back_as_they_were(page: Page, sentences: list[dict[str, Any]]) -> None:
    assert not re.search("[<>&\u2028\u2029]", page.scripts[0])
    stored = json.loads(page.scripts[0])
    by_name = {one["id"]: one for one in stored["sentences"]}
    assert by_name[HOSTILE]["words"][1] == HOSTILE
    shown = [{key: value for key, value in one.items() if key != "pronoun_rows"} for one in sentences[1:]]
    assert [by_name[one["id"]] for one in shown] == shown
    assert len(by_name) == len(stored["sentences"]) == len(sentences)
    assert stored["head"] == {"layer": 2, "head": 2, "chosen_on": "dev"}


def test_the_script_writes_text_only_as_text(page: Page) -> None:
    assert "textContent" in page.scripts[1]
    assert not re.search("innerHTML|outerHTML|insertAdjacentHTML|document.write|eval|Function", page.scripts[1])


def test_every_chinese_character_has_a_glyph_inside_the_page(html: str) -> None:
    found = re.findall(r"font-weight:(\d+);src:url\(data:font/woff;base64,([^)]*)\)", html)
    assert [weight for weight, _ in found] == ["400", "700"]
    used = {ord(character) for character in html if is_chinese(character)}
    assert ord("馆") in used
    for _, data in found:
        assert used <= set(TTFont(io.BytesIO(base64.b64decode(data))).getBestCmap())


def test_every_figure_is_described_in_words_and_handed_back(
    page: Page, report: tuple[Path, dict[str, dict[str, Figure]]]
) -> None:
    labels = [attributes["aria-label"] for _, attributes in page.elements if attributes.get("role") == "img"]
    figures = report[1][HOSTILE]
    assert len(labels) == len(figures) + 2 == sum(tag == "figure" for tag, _ in page.elements)  # two open the page
    assert all(labels)
    assert {"scoreboard", "effects", "knockout", "ablation", "pattern_patching", "dose_response"} <= set(figures)
    assert {"quad_en_role", "alignment_through_training"} <= set(figures)


def test_a_figures_title_is_text_of_the_page_that_wraps_and_stands_in_no_picture(html: str) -> None:
    title = "What moves the pronoun’s attention between two candidates?"
    assert f"<figcaption>{title}</figcaption>" in html
    pictures = re.findall(r"<svg width.*?</svg>", html, re.DOTALL)
    assert not [picture for picture in pictures if "What moves the pronoun" in picture]


def test_no_line_ends_between_a_number_and_its_unit(page: Page) -> None:
    assert re.search(r"\d\u00a0%", page.text)
    assert not re.search(r"\d %", page.text)


def test_an_interval_stands_below_its_number(html: str) -> None:
    assert re.search(r'<td class="number">[\d.]+ <small>\[[\d.]+, [\d.]+\]</small></td>', html)
    assert number_parts("52.0\nboosted trees") == ("52.0", "boosted trees")
    assert number_parts("43.1 (40.0 to 45.0)") == ("43.1", "(40.0 to 45.0)")
    assert number_parts("94.2 % [84.6, 99.5]") == ("94.2 %", "[84.6, 99.5]")
    assert number_parts("69.2 个百分点 [40.1, 100.0]") == ("69.2 个百分点", "[40.1, 100.0]")
    assert number_parts("1,509") == ("1,509", "")
    several = "English 0.5 (0.4 to 0.6); Chinese 0.7 (0.7 to 0.8)"
    assert number_parts(several) == (several, "")


def test_quotes_of_an_english_page_are_narrow_glyphs_of_its_own_font(html: str) -> None:
    (data, *_) = re.findall(r"src:url\(data:font/woff;base64,([^)]*)\)", html)
    font = TTFont(io.BytesIO(base64.b64decode(data)))
    for sign in "’“”−":
        assert font["hmtx"][font.getBestCmap()[ord(sign)]][0] < 0.6 * font["head"].unitsPerEm


def test_no_line_begins_with_a_full_stop_or_ends_with_an_opening_quote() -> None:
    words = [ShadedWord(text, "", "", "", "") for text in ("He", "said", "“", "go", "”", ".")]
    groups = ShadedSentence("en", None, words, "", "").unbroken()
    assert [[word.text for word in group] for group in groups] == [["He"], ["said"], ["“", "go", "”", "."]]


def test_failed_rules_and_controls_that_have_not_run_are_printed(page: Page) -> None:
    for said in ("not supported", "not yet controlled", "fails", "not checked", "not run yet", "not as expected"):
        assert said in page.text


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_in_a_browser_nothing_hostile_runs_and_nothing_fails(
    report: tuple[Path, dict[str, dict[str, Figure]]], tmp_path: Path
) -> None:
    done = subprocess.run(
        [str(CHROMIUM), "--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0",
         f"--user-data-dir={tmp_path}", "--virtual-time-budget=3000", "--dump-dom", report[0].as_uri()],
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr
    assert "<title>owned</title>" not in done.stdout
    assert "64 of 64 sentences" in done.stdout
    shown = Page(done.stdout)
    assert not [tag for tag, _ in shown.elements if tag == "img"]
    assert len(shown.scripts) == 2


def test_each_section_of_the_page_has_a_place_of_its_own() -> None:
    places = [place for file in sections_module._FILES for place in file.SECTIONS]
    assert len(places) == len(set(places)) > 10


def test_no_figure_shows_a_name_that_was_to_be_filled_in(evidence: Evidence) -> None:
    heads = {language: np.full((3, 4), 0.5) for language in evidence.languages}
    sections = run_sections(
        ReportRun(name="a", evidence=evidence, heads=heads, heads_chance=dict.fromkeys(heads, 0.44))
    )
    figures = [
        element.figure for section in sections for element in section.elements if isinstance(element, FigureElement)
    ]
    shown = [text.get_text() for figure in figures if figure is not None for text in figure.findobj(Text)]
    assert any("English" in text for text in shown)
    assert not [text for text in shown if re.search(r"{\w+", text)]


def test_compositions_have_a_section_with_every_shortcut_where_there_are_levels(
    evidence: Evidence, level: Level
) -> None:
    whole = replace(evidence, levels={"en": {"L1": level, "unseen_names": level}})
    (section,) = [each for each in run_sections(ReportRun(name="a", evidence=whole)) if each.name == "levels"]
    scores, shortcuts = (element for element in section.elements if isinstance(element, TableElement))
    assert scores.rows[0] == [
        "English", "seen in the other voice only", "80",
        "90.0 [80.0, 95.0]", "85.0", "70.0", "60.0", "52.0\nboosted trees", "45.0",
    ]  # fmt: skip
    assert [row[2:] for row in shortcuts.rows[:3]] == [
        ["table of wordings", "50.0"], ["boosted trees", "52.0"], ["model of the rule", "100.0"]
    ]  # fmt: skip
    assert "levels" not in {each.name for each in run_sections(ReportRun(name="a", evidence=evidence))}


def test_the_section_on_one_head_names_what_it_carries_and_the_best_other_word(evidence: Evidence) -> None:
    (section,) = [each for each in run_sections(ReportRun(name="a", evidence=evidence)) if each.name == "one-head"]
    table, specificity, doses, freed = (element for element in section.elements if isinstance(element, TableElement))
    assert table.rows[0] == [
        "English, set cues", "41.5 [33.1, 49.8]", "2.2 [−0.4, 4.6]", "62.0 [55.0, 70.0]", "180", "58.0 [50.0, 66.0]"
    ]  # fmt: skip
    assert specificity.rows[0] == ["English, set cues", "81.0", "36.0", "2.25"]
    assert doses.rows[0] == ["English, set cues", "10.0", "390", "7.5 [4.0, 11.0]", "−0.2 [−1.0, 0.5]"]
    assert freed.rows[0] == ["English, set cues", "40.0", "10.0", "5.0", "25.0", "20.0"]
    unmeasured = replace(evidence, pronoun_specificity=None)
    (section,) = [each for each in run_sections(ReportRun(name="a", evidence=unmeasured)) if each.name == "one-head"]
    assert len([element for element in section.elements if isinstance(element, TableElement)]) == 3


def test_the_section_on_heads_claims_a_choice_on_other_sentences_only_where_there_was_one(evidence: Evidence) -> None:
    def explanation(of: Evidence) -> str:
        return heads_section(ReportRun(name="a", evidence=of)).explanation

    claim = "all other numbers come from sentences that had no part in the choice"
    assert claim in explanation(evidence)
    for other in (replace(evidence, split="dev"), replace(evidence, head=replace(evidence.head, chosen_on="named"))):
        assert claim not in explanation(other) and "none of these numbers is a test of it" in explanation(other)


def test_a_short_training_takes_a_part_of_a_minute(evidence: Evidence) -> None:
    for seconds, text in ((20.0, "0.3 min"), (900.0, "15 min")):
        facts = dict(run_facts(ReportRun(name="a", evidence=replace(evidence, train_seconds=seconds))))
        assert facts["training"] == text


def test_items_left_out_and_equal_scores_are_facts_of_a_run(evidence: Evidence) -> None:
    facts = dict(run_facts(ReportRun(name="a", evidence=replace(evidence, dropped={}, undecided=0))))
    assert not {"left out", "equal scores"} & set(facts)
    dropped = {"no antecedent": 1200, "a candidate without a token": 2}
    run = ReportRun(name="a", evidence=replace(evidence, dropped=dropped, undecided=7))
    facts = dict(run_facts(run))
    assert facts["left out"] == "1,200 (no antecedent), 2 (a candidate without a token)"
    assert facts["equal scores"] == "7 items; of k equal answers each counts 1/k"
    with spoken_in("zh"):
        assert dict(run_facts(run))["同分"] == "7 个样例；k 个同分的回答各算 1/k"


OPTIONAL: dict[str, Any] = {each.name: None for each in fields(Evidence) if each.default is None}
"""Optional parts of the evidence, set to None."""


def unmeasured(evidence: Evidence) -> set[str]:
    return {section.name for section in run_sections(ReportRun(name="a", evidence=evidence)) if not section.elements}


def test_parts_that_were_not_measured_are_said_to_be_missing(evidence: Evidence) -> None:
    scores = replace(evidence, **OPTIONAL)
    missing = {"verdict", "effects", "knockout", "ablation", "pattern-patching", "dose-response", "roles", "maps"}
    assert missing <= unmeasured(scores)
    assert not {"scoreboard", "baselines", "strata", "controls"} & unmeasured(scores)


@pytest.fixture(scope="module")
def least_unmeasured(evidence: Evidence) -> int:
    """Return the number of empty sections in a report with complete evidence."""
    return len(unmeasured(evidence))


@pytest.mark.parametrize("part", OPTIONAL)
def test_each_part_may_be_missing_alone(part: str, evidence: Evidence, least_unmeasured: int) -> None:
    run = ReportRun(name="a", evidence=replace(evidence, **{part: OPTIONAL[part]}))
    assert run_facts(run)[0] == ("run", "a")
    assert "English" in run_headline(run.evidence)
    assert len(unmeasured(run.evidence)) >= least_unmeasured


@pytest.mark.usefixtures("undrawn")
def test_a_report_of_nothing_is_a_report(tmp_path: Path, evidence: Evidence) -> None:
    nothing = replace(evidence, languages={}, strata={}, **OPTIONAL)
    write_report(tmp_path / "a.html", [ReportRun(name="empty", evidence=nothing)], "Nothing")
    text = Page((tmp_path / "a.html").read_text(encoding="utf-8")).text
    assert text.count("Not measured in this run.") > 10
    assert "No sentences were given." in text


@pytest.mark.usefixtures("undrawn")
def test_a_page_links_to_its_translations_and_is_otherwise_in_its_own_language(
    tmp_path: Path, evidence: Evidence
) -> None:
    run = ReportRun(name="empty", evidence=replace(evidence, languages={}, strata={}, **OPTIONAL))
    write_report(tmp_path / "a.html", [run], "Nothing", translations={"zh": "a.zh.html"})
    page = Page((tmp_path / "a.html").read_text(encoding="utf-8"))
    assert [link for link in page.values("href") if not link.startswith("#")] == ["a.zh.html"]
    assert re.findall(r"[\u4e00-\u9fff]+", page.text) == ["中文"]


def test_several_runs_are_put_together_with_the_verdict_of_each(evidence: Evidence) -> None:
    english = replace(evidence.languages["en"], task_accuracy=0.90)
    other = replace(evidence, languages={**evidence.languages, "en": english})
    runs = [ReportRun(name="first", evidence=evidence), ReportRun(name="second", evidence=other)]
    verdicts, spread = comparison_section(runs, compare_runs([evidence, other])).elements
    assert isinstance(verdicts, TableElement)
    assert isinstance(spread, TableElement)
    assert verdicts.columns == ["language, cue", "first", "second"]
    assert [row[0] for row in spread.rows[:3]] == ["English", "English, set cues", "English, role cues"]
    assert spread.rows[0][1] == "93.0 (90.0 to 96.0)"
    one_recipe = [replace(run, recipe="steps=9") for run in runs]
    other_recipe = [one_recipe[0], replace(runs[1], recipe="steps=7")]
    assert "and in nothing else" in comparison_section(one_recipe).explanation
    for apart in (runs, other_recipe):
        assert "differ in their settings or data" in comparison_section(apart).explanation
    half = replace(evidence, languages={**evidence.languages, "en": replace(english, task_accuracy=None)})
    [spread_of_one, *_] = compare_runs([evidence, half])
    assert (spread_of_one.runs, spread_of_one.measures["task_accuracy"]) == (2, None)  # one number is no spread of two


def test_a_comparison_tells_which_rows_are_not_of_the_same_items_in_all_runs(
    evidence: Evidence, capsys: pytest.CaptureFixture[str]
) -> None:
    fewer = replace(evidence, languages={"en": replace(evidence.languages["en"], items=3)}, strata={})
    print_comparison(compare_runs([evidence, evidence]))
    assert "runs" not in capsys.readouterr().out.split("\n", 1)[1]
    spreads = compare_runs([evidence, fewer])
    print_comparison(spreads)
    printed = capsys.readouterr().out
    assert "…" not in printed  # no number or heading is cut off, however wide the terminal is
    items = evidence.languages["en"].items
    assert f"English: the runs were scored on different items, 3 to {items} of them" in printed
    assert "Chinese: the row covers 1 of the 2 runs; the others have no such items" in printed
    other_order = compare_runs([fewer, evidence])  # no language is left out because the first run lacks it
    assert {(row.language, row.kind, row.runs) for row in other_order} == {
        (row.language, row.kind, row.runs) for row in spreads
    }
    row = spreads[0].to_row()
    assert (row["fewest_items"], row["most_items"], row["same_items"]) == (3, items, False)


def test_a_comparison_tells_as_many_items_from_the_same_items(
    evidence: Evidence, capsys: pytest.CaptureFixture[str]
) -> None:
    # Two draws of one data set may have as many items; what they are the scores say by a digest.
    def with_digests(**digests: str | None) -> Evidence:
        languages = {name: replace(scores, items_digest=digests[name]) for name, scores in evidence.languages.items()}
        return replace(evidence, languages=languages)

    spreads = compare_runs([with_digests(en="a", zh="c"), with_digests(en="b", zh="c")])
    assert [(row.language, row.same_items) for row in spreads if row.kind == "all"] == [("en", False), ("zh", True)]
    print_comparison(spreads)
    printed = capsys.readouterr().out
    items = evidence.languages["en"].items
    assert printed.count(f"English: the runs were scored on {items} items each, but not on the same ones") == 1
    assert "Chinese: the runs" not in printed
    assert compare_runs([with_digests(en="a", zh="c"), with_digests(en=None, zh="c")])[0].same_items is None


@pytest.mark.usefixtures("undrawn")
def test_each_of_several_runs_shows_its_own_weights_and_the_explorer_names_the_run_that_it_shows(
    tmp_path: Path, evidence: Evidence, sentences: list[dict[str, Any]]
) -> None:
    def of_run(name: str, share: float) -> ReportRun:
        entry = {**sentences[0], "antecedents": [[7]]}
        words = len(entry["words"])
        weights = np.full((3, 4, words, words), (1 - share) / (words - 1))
        weights[..., 7] = share
        entry |= {"maps": {"raw": pack_map(weights)}, "pronoun_rows": weights[:, :, entry["pronoun"][0]].tolist()}
        return ReportRun(name=name, evidence=evidence, sentences=[entry])

    write_report(tmp_path / "a.html", [of_run("first", 0.8), of_run("second", 0.4)], "Two runs")
    html = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert re.findall(r'class="word antecedent"[^>]*title="[^"]*?(0\.\d\d)', html) == ["0.80", "0.40"]
    assert html.count('href="#view&amp;s=en-0"') == 1  # the explorer has the first run's maps alone
    assert "The maps and answers are those of first, the first run." in html


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_explorer_begins_with_a_sentence_of_the_pages_language(
    tmp_path: Path, evidence: Evidence, sentences: list[dict[str, Any]], language: str
) -> None:
    bare = replace(evidence, **OPTIONAL)
    with spoken_in(language):
        write_report(tmp_path / "report.html", [ReportRun(name="a", evidence=bare, sentences=sentences)], "a")
    stored = json.loads(Page((tmp_path / "report.html").read_text(encoding="utf-8")).scripts[0])["sentences"]
    assert stored[0]["language"] == language
    assert {one["id"] for one in stored} == {one["id"] for one in sentences}


def test_two_runs_of_one_name_are_refused(tmp_path: Path, evidence: Evidence) -> None:
    with pytest.raises(UserError, match="a name for each"):
        write_report(tmp_path / "a.html", [ReportRun(name="a", evidence=evidence)] * 2, "")


def test_a_map_that_does_not_fit_its_sentence_is_refused(tmp_path: Path) -> None:
    sentence = attention_entry("she sleeps", ["she", "sleeps"], [(0, 3), (4, 10)], np.zeros((1, 1, 3, 3), np.float32))
    with pytest.raises(UserError, match="expected layers x heads x 2 x 2"):
        write_attention_page(tmp_path / "a.html", sentence)
    with pytest.raises(UserError, match="layers x heads x words x words"):
        pack_map(np.zeros((3, 3)))


def test_a_text_whose_maps_would_make_too_large_a_page_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    words, spans = ["she", "sleeps"], [(0, 3), (4, 10)]
    maps = np.full((3, 2, 2, 2), 0.5, np.float32)
    monkeypatch.setattr(explorer, "MOST_WEIGHTS", 24)
    assert attention_entry("she sleeps", words, spans, maps)["words"] == words
    monkeypatch.setattr(explorer, "MOST_WEIGHTS", 23)
    with pytest.raises(UserError, match=r"text: it has 2 words; a page shows the maps of all 6 heads for at most 1$"):
        attention_entry("she sleeps", words, spans, maps)


def test_a_packed_map_is_right_to_half_a_step() -> None:
    weights = np.random.default_rng(0).dirichlet(np.ones(7), size=(2, 3, 7))
    packed = pack_map(weights)
    assert np.abs(unpack_map(packed) - weights).max() <= 0.5 / 255 + 1e-6


def test_a_page_of_256_words_and_144_heads_is_small_and_quickly_written(
    tmp_path: Path, long_sentence: dict[str, Any]
) -> None:
    path = tmp_path / "attention.html"
    seconds = []
    for _ in range(3):
        start = time.process_time()
        write_attention_page(path, long_sentence)
        seconds.append(time.process_time() - start)
    assert min(seconds) < 0.5
    assert path.stat().st_size < 21_000_000
    stored = json.loads(Page(path.read_text(encoding="utf-8")).scripts[0])["sentences"][0]["maps"]["raw"]
    assert stored["encoding"] == "deflate"
    assert zlib.decompress(base64.b64decode(stored["data"])) == base64.b64decode(long_sentence["maps"]["raw"]["data"])

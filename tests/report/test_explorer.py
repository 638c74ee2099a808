from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chromium import CHROMIUM, in_browser

import anaphora
from anaphora.analysis.evidence.evidence import ChosenHead, Evidence
from anaphora.analysis.evidence.example_sentences import ExampleSentence
from anaphora.analysis.maps.answers import NO_CANDIDATE
from anaphora.analysis.maps.record import from_arrays
from anaphora.analysis.maps.words import word_map, word_weights
from anaphora.analysis.results.scores import Head
from anaphora.base.translation import spoken_in
from anaphora.report.page.elements import ReportRun
from anaphora.report.page.explorer import explorer_entries, pronoun_row, unpack_map
from anaphora.report.page.write import write_attention_page, write_report

ENGLISH = ("The old king saw Berta when she sang.", [(0, 12), (17, 22)], (28, 31), 1)
CHINESE = ("小红遇见李强时她很高兴。", [(0, 2), (4, 6)], (7, 8), 0)
THEY = ("小红遇见李强时他们很高兴。", [(0, 2), (4, 6)], (7, 9), 0)
SPANS = {
    ENGLISH[0]: [(0, 0), (0, 3), (4, 7), (8, 10), (10, 12), (13, 16), (17, 22), (23, 27), (28, 31), (32, 36), (36, 37)],
    THEY[0]: [(0, 0), (0, 2), (2, 4), (4, 6), (6, 7), (7, 8), (8, 9), (9, 10), (10, 12), (12, 13)],
    CHINESE[0]: [(0, 0), (0, 2), (2, 4), (4, 6), (6, 7), (7, 8), (8, 9), (9, 11), (11, 12)],
}


def exhibit(
    sentence: tuple[str, list[tuple[int, int]], tuple[int, int], int],
    answer: int | None = 0,
    right: bool | None = True,
    special: tuple[str, ...] = (),
) -> ExampleSentence:
    text, candidates, pronoun, antecedent = sentence
    spans = SPANS[text]
    random = np.random.default_rng(0)
    maps = random.dirichlet(np.ones(len(spans)), size=(2, 3, len(spans))).astype(np.float32)
    language = "en" if text == ENGLISH[0] else "zh"
    factors = {"kind": "role", "type": "voice"}
    record = from_arrays(text, spans, maps, pronoun, candidates, [antecedent], language=language, factors=factors)
    whole = {"raw": word_map(maps, record.words), "rollout": word_map(maps[:, :1], record.words)}
    record = replace(record, special=special)
    return ExampleSentence(record, word_weights(record), whole, answer, right, True)


def entries(*shown: ExampleSentence) -> list[dict[str, Any]]:
    made = explorer_entries(shown)
    assert json.loads(json.dumps(made)) == made
    return made


def test_spans_become_word_numbers_in_both_languages() -> None:
    english, chinese = entries(exhibit(ENGLISH), exhibit(CHINESE, special=("[CLS]",)))
    assert chinese["words"][0] == "[CLS]"
    assert english["words"] == ["[special]", "The", "old", "king", "saw", "Berta", "when", "she", "sang", "."]
    assert (english["pronoun"], english["antecedents"], english["distractors"]) == ([7], [[5]], [[1, 2, 3]])
    assert [chinese["words"][place] for place in chinese["pronoun"]] == ["她"]
    assert [[chinese["words"][place] for place in words] for words in chinese["antecedents"]] == [["小红"]]
    assert [[chinese["words"][place] for place in words] for words in chinese["distractors"]] == [["李强"]]
    for one in (english, chinese):
        mentions = one["antecedents"] + one["distractors"]
        places = [*one["pronoun"], *(place for mention in mentions for place in mention), *one["special"]]
        assert all(0 <= place < len(one["words"]) for place in places)
        assert one["special"] == [0]
        for stored in one["maps"].values():
            assert stored["shape"][2:] == [len(one["words"])] * 2


@pytest.mark.usefixtures("undrawn")
def test_the_row_of_a_pronoun_of_several_words_is_their_mean(tmp_path: Path, evidence: Evidence) -> None:
    shown = exhibit(THEY)
    (one,) = entries(shown)
    assert [one["words"][place] for place in one["pronoun"]] == ["他", "们"]
    np.testing.assert_array_equal(pronoun_row(one, Head(1, 2)), shown.row.weights[1, 2])
    head = ChosenHead(layer=1, head=2, chosen_on="dev")
    write_report(
        tmp_path / "report.html",
        [ReportRun(name="one", evidence=replace(evidence, head=head), sentences=[one])],
        "A page",
    )
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert re.findall(r'<span class="word pronoun"[^>]*>(.)<', page) == ["他", "们"]
    assert "“他们” spreads its weight" in page or "“他们” gives" in page


@pytest.mark.parametrize(("kind", "after"), [(None, "· <a"), ("role", "· role · <a")])
@pytest.mark.usefixtures("undrawn")
def test_an_example_without_a_kind_has_no_empty_place_for_it(
    kind: str | None, after: str, tmp_path: Path, evidence: Evidence
) -> None:
    (one,) = entries(exhibit(ENGLISH))
    evidence = replace(evidence, head=ChosenHead(layer=1, head=2, chosen_on="dev"))
    run = ReportRun(name="one", evidence=evidence, sentences=[{**one, "kind": kind, "type": None}])
    write_report(tmp_path / "report.html", [run], "A page")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert re.findall(r"answered:</span> [^<]* <span[^>]*>(·.*?<a) href", page) == [after]


def test_maps_are_those_of_the_exhibit_within_half_a_step_of_a_byte() -> None:
    shown = exhibit(ENGLISH)
    (one,) = entries(shown)
    for name, maps in shown.maps.items():
        np.testing.assert_allclose(unpack_map(one["maps"][name]), maps, atol=0.5 / 255 + 1e-6)


def test_sentences_are_counted_by_language_so_that_a_link_stays_valid() -> None:
    assert [one["id"] for one in entries(exhibit(ENGLISH), exhibit(ENGLISH), exhibit(CHINESE))] == [
        "en-1",
        "en-2",
        "zh-1",
    ]


@pytest.mark.parametrize(
    ("answer", "right", "expected"),
    [(0, False, "The old king"), (1, True, "Berta"), (NO_CANDIDATE, False, ""), (None, None, None)],
)
def test_an_answer_is_a_candidates_text_and_empty_for_none_of_them(
    answer: int | None, right: bool | None, expected: str | None
) -> None:
    (one,) = entries(exhibit(ENGLISH, answer, right))
    assert (one["answer"], one["right"], one["head_right"]) == (expected, right, True)


@pytest.mark.usefixtures("undrawn")
def test_the_page_takes_the_entries_and_names_what_has_no_answer(tmp_path: Path, evidence: Evidence) -> None:
    run = ReportRun(
        name="one",
        evidence=replace(evidence, head=ChosenHead(layer=1, head=2, chosen_on="dev")),
        sentences=explorer_entries([exhibit(ENGLISH, 1, True), exhibit(CHINESE, None, None)]),
    )
    write_report(tmp_path / "report.html", [run], "A page")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Right: the head picks the antecedent and the model answers correctly" in page
    assert "The head picks the antecedent; the model gives no answer" in page
    assert "the answer is wrong" not in page


@pytest.mark.parametrize(("language", "words"), [("en", "none of them"), ("zh", "都不是")])
@pytest.mark.usefixtures("undrawn")
def test_each_page_says_none_of_them_in_its_own_language(
    language: str, words: str, tmp_path: Path, evidence: Evidence
) -> None:
    run = ReportRun(
        name="one",
        evidence=replace(evidence, head=ChosenHead(layer=1, head=2, chosen_on="dev")),
        sentences=explorer_entries([exhibit(ENGLISH, NO_CANDIDATE, False)]),
    )
    with spoken_in(language):
        write_report(tmp_path / "report.html", [run], "A page")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert f"</span>{'' if language == 'zh' else ' '}{words} <span" in page  # below the shaded sentence
    assert f'"none_of_them":"{words}"' in page  # what the script shows


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_names_of_several_words_are_shown_as_the_text_has_them(own_run: Path, tmp_path: Path) -> None:
    text, names = "Dr. May met 王芳 and J.-J. Lee before she left.", ["Dr. May", "王芳", "J.-J. Lee"]
    page = anaphora.load(own_run).attention(text, candidates=names).page(tmp_path / "page.html").path
    body = 'return [...at("row-sums").querySelectorAll("span")].map((one) => one.textContent);'
    assert in_browser(page.read_text(encoding="utf-8"), body, {}, tmp_path) == names


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_without_an_antecedent_heads_are_shaded_by_the_weight_on_the_word_attended_to_most(
    own_run: Path, tmp_path: Path
) -> None:
    attention = anaphora.load(own_run).attention("Anna thanked Emma because she had helped.", "she")
    page = attention.page(tmp_path / "page.html").path.read_text(encoding="utf-8")
    body = """return { note: at("picker-note").textContent,
        heads: [...at("choose-head").querySelectorAll("button")].map((one) => one.getAttribute("aria-label")) };"""
    seen = in_browser(page, body, {}, tmp_path)
    she = attention.words.index("she")
    shown = attention.chosen or Head(0, 0)
    row = attention.weights[shown.layer, shown.head, she] * [start < end for start, end in attention.spans]
    row[she] = 0
    most = int(row.argmax())
    assert seen["note"] == f"Heads are shaded by the weight from “she” to “{attention.words[most]}”."
    shares = [float(label.split()[-1]) for label in seen["heads"]]
    assert shares == pytest.approx(attention.weights[..., she, most].ravel(), abs=0.008)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_the_explorer_shows_a_pronoun_of_several_words_whole_and_lists_heads_as_its_language_does(
    tmp_path: Path,
) -> None:
    shown = exhibit(THEY)
    (one,) = entries(shown)
    with spoken_in("zh"):
        write_attention_page(tmp_path / "page.html", one, Head(1, 2))
    seen = in_browser(
        (tmp_path / "page.html").read_text(encoding="utf-8"),
        """const texts = (query) => [...document.querySelectorAll(query)].map((one) => one.firstChild.textContent);
        return { framed: texts("#row-words .pronoun"), chosen: texts("#row-words .chosen"),
                 title: at("row-title").textContent, sums: at("row-sums").textContent,
                 best: at("best-heads").textContent };""",
        {},
        tmp_path,
    )
    assert seen["framed"] == seen["chosen"] == ["他", "们"]
    assert seen["title"] == "“他们”关注哪些词"
    weights = shown.row.weights[1, 2, [1, 3]]
    assert [float(share) for share in re.findall(r"0\.\d\d", seen["sums"])] == pytest.approx(weights, abs=0.008)
    assert seen["best"].count("、") == 4 and "," not in seen["best"]


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
@pytest.mark.parametrize(
    ("text", "pronoun", "name", "order"),
    [("قال محمد إنه تعب", "إنه", "محمد", -1), ("Anna said she left", "she", "Anna", 1)],
)
def test_words_stand_in_the_direction_of_their_script(
    text: str, pronoun: str, name: str, order: int, own_run: Path, tmp_path: Path
) -> None:
    page = anaphora.load(own_run).attention(text, pronoun, [name]).page(tmp_path / "page.html").path
    body = """
        const left = (query) => [...document.querySelectorAll(query)].map((one) => one.getBoundingClientRect().left);
        at("map").dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown" }));
        return { row: left("#row-words .word"), column: left("#column-words .word"), said: at("map-said").textContent };
    """
    seen = in_browser(page.read_text(encoding="utf-8"), body, {}, tmp_path)
    for places in (seen["row"], seen["column"]):
        assert len(places) > 4 and places == sorted(places, reverse=order < 0)
    # A number beside a word from right to left stays behind it.
    assert ("\u2068" in seen["said"]) == (order < 0) and re.search(r"\d\.\d\d$", seen["said"])

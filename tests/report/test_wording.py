from __future__ import annotations

import inspect
import re
import tomllib
from pathlib import Path

import pytest

from anaphora.base.locale.translation import spoken_in
from anaphora.report import wording
from anaphora.report.levels import level_columns

TABLE = tomllib.loads(Path(wording.__file__).with_name("wording.toml").read_text(encoding="utf-8"))


def test_no_phrase_has_a_name_that_its_reader_takes_for_itself() -> None:
    """`phrase("x", "y", language=...)` chooses a language; it does not fill {language}."""
    own = set(inspect.signature(wording.phrase).parameters) - {"values"}
    for section, languages in TABLE.items():
        for phrases in languages.values():
            for name, text in phrases.items():
                assert not own & set(re.findall(r"{(\w+)", text)), f"{section}.{name}"


def test_the_explorer_says_every_phrase_that_it_has_in_both_languages_and_no_other() -> None:
    templates = Path(wording.__file__).parent / "page" / "templates"
    script = (templates / "report.js").read_text(encoding="utf-8")
    spoken = {name for call in re.findall(r"\bsay\(([^)]*)", script) for name in re.findall(r'"(\w+)"', call)}
    written = set(re.findall(r"{{ words\.(\w+) }}", (templates / "page.html.j2").read_text(encoding="utf-8")))
    assert spoken and written
    for language, phrases in TABLE["explorer"].items():
        assert set(phrases) == spoken | written, language
    filled = [
        {name: set(re.findall(r"{(\w+)}", text)) for name, text in one.items()} for one in TABLE["explorer"].values()
    ]
    assert filled[0] == filled[1]


def test_the_levels_have_chinese_headings() -> None:
    with spoken_in("zh"):
        assert all(re.search("[\u4e00-\u9fff]", name) for name in level_columns())
    assert set(TABLE["level_names"]["zh"]) == set(TABLE["level_names"]["en"])


def test_everything_is_said_in_both_languages_with_the_same_values() -> None:
    for section in TABLE.keys() - {"corpora"}:  # names of corpora are the same in all languages
        english, chinese = TABLE[section]["en"], TABLE[section]["zh"]
        assert english.keys() <= chinese.keys(), section
        for name, text in english.items():
            assert set(re.findall(r"{(\w+)", text)) == set(re.findall(r"{(\w+)", chinese[name])), f"{section}.{name}"


def test_words_of_files_have_a_phrase_of_the_page_with_the_same_values() -> None:
    stored = [(section, name, text) for section in TABLE for name, text in TABLE[section].get("stored", {}).items()]
    assert stored
    for section, name, text in stored:
        shown = TABLE[section]["en"][name]
        assert set(re.findall(r"{(\w+)", text)) == set(re.findall(r"{(\w+)", shown)), f"{section}.{name}"


def test_heads_are_listed_layer_by_layer() -> None:
    assert wording.heads_listed([(2, 0)]) == "layer 2 head 0"
    assert wording.heads_listed([(2, 0), (2, 3), (3, 1)]) == "layer 2 heads 0 and 3; layer 3 head 1"
    with spoken_in("zh"):
        assert wording.heads_listed([(2, 0), (2, 3), (3, 1)]) == "第 2 层第 0、3 头；第 3 层第 1 头"


@pytest.mark.parametrize(
    ("value", "label"),
    [("0-2", "0–2"), ("12 or more", "12 or more"), ("cataphora", "pronoun first"), ("own_value", "own value")],
)
def test_values_of_factors_are_words(value: str, label: str) -> None:
    assert wording.value_label(value) == label


def test_phrases_are_of_the_page_s_language_unless_another_is_named() -> None:
    with spoken_in("zh"):
        assert wording.phrase("page", "contents") == "目录"
        assert wording.phrase("page", "contents", "en") == "Contents"
        with pytest.raises(ZeroDivisionError), spoken_in("en"):
            _ = 1 / 0
        assert wording.group_label("zh", "role") == "汉语，角色线索"
    assert wording.spoken_language() == "en"


@pytest.mark.parametrize(
    ("section", "stored", "english", "chinese"),
    [
        ("verdict_needed", "interval above 10 points", "interval above 10 points", "区间高于 10 个百分点"),
        ("verdict_needed", "interval above 1", "interval above 1", "区间高于 1"),
        ("verdict_needed", "above every baseline (best: random init 95 0.480)",
         "above every baseline (best: untrained models, 95th percentile, 48.0 %)",
         "高于每一条基线（最好：未训练模型，第 95 百分位 48.0 %）"),
        ("verdict_needed", "task accuracy within 10 points of chance (0.440)",
         "task accuracy within 10 points of chance (44.0 %)", "任务准确率与随机水平（44.0 %）相差不超过 10 个百分点"),
        ("verdict_needed", "what no version writes", "what no version writes", "what no version writes"),
        ("control_statements", "en role cues task 46.0 % (chance 44.0 %); zh items candidate 9.5 % (chance 44.0 %).",
         "English, role cues: task accuracy 46.0 % (chance 44.0 %); Chinese: candidate accuracy 9.5 % (chance 44.0 %).",
         "英语角色线索的任务准确率 46.0 %（随机水平 44.0 %）；汉语样例的候选准确率 9.5 %（随机水平 44.0 %）。"),
    ],
)  # fmt: skip
def test_what_a_file_holds_in_english_is_shown_in_the_page_s_words(
    section: str, stored: str, english: str, chinese: str
) -> None:
    assert wording.translated(section, stored) == english
    with spoken_in("zh"):
        assert wording.translated(section, stored) == chinese

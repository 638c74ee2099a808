from __future__ import annotations

import re
from pathlib import Path

import pytest

from anaphora.base.translation import spoken_in
from anaphora.report import wording
from anaphora.report.page import offline
from anaphora.report.page.explorer import explorer_phrases
from anaphora.report.stored import observed_text, stored_sentence


def test_the_explorer_has_every_phrase_that_its_script_and_its_part_of_the_page_show() -> None:
    script = (offline.TEMPLATE_FOLDER / "explorer.js").read_text(encoding="utf-8")
    spoken = {
        name for call in re.findall(r"\b(?:say|titled)\(([^)]*)", script) for name in re.findall(r'"(\w+)"', call)
    }
    written = set(re.findall(r"{{ words\.(\w+) }}", Path(offline.TEMPLATE_FOLDER / "page.html.j2").read_text("utf-8")))
    assert spoken - {"row-title", "column-title"} | written <= set(explorer_phrases())


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


@pytest.mark.parametrize(
    ("stored", "english", "chinese"),
    [
        ("interval above 10 points", "interval above 10 points", "区间高于 10 个百分点"),
        ("interval above 1", "interval above 1", "区间高于 1"),
        ("p < 1e-05", "p < 1e-05", "p < 1e-05"),
        ("above every baseline (best: random init 95 0.480)",
         "above every baseline (best: untrained models, 95th percentile, 48.0 %)",
         "高于每一条基线（最好：未训练模型，第 95 百分位 48.0%）"),
        ("task accuracy within 10 points of chance (0.440)",
         "task accuracy within 10 points of chance (44.0 %)", "任务准确率与随机水平（44.0%）相差不超过 10 个百分点"),
        ("5 of 7", "5 of 7", "7 个中的 5 个"),
        ("what no version writes {0} 3", "what no version writes {0} 3", "what no version writes {0} 3"),
    ],
)  # fmt: skip
def test_a_sentence_of_a_file_is_shown_in_the_page_s_words(stored: str, english: str, chinese: str) -> None:
    assert stored_sentence(stored) == english
    with spoken_in("zh"):
        assert stored_sentence(stored) == chinese


def test_what_was_observed_of_a_control_is_shown_in_the_page_s_words() -> None:
    stored = "en role cues task 46.0 % (chance 44.0 %); zh items candidate 9.5 % (chance 44.0 %)."
    assert observed_text(f"{stored} The rest.") == (
        "English, role cues: task accuracy 46.0 % (chance 44.0 %); Chinese: candidate accuracy 9.5 % (chance 44.0 %). "
        "The rest."
    )
    with spoken_in("zh"):
        assert observed_text(stored) == (
            "英语角色线索的任务准确率 46.0%（随机水平 44.0%）；汉语样例的候选准确率 9.5%（随机水平 44.0%）。"
        )

"""Tests that titles name the head and its value, and claim no more than the data show."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.text import Text

from anaphora.analysis.evidence.evidence import ChosenHead, Evidence
from anaphora.analysis.results.scores import Head
from anaphora.analysis.results.typed_json import Interval
from anaphora.analysis.scores.measures.effects import HeadsOnDevelopment
from anaphora.base.translation import spoken_in
from anaphora.data.own_sentence import example_from_query
from anaphora.report.figures import heads, pictures, style
from anaphora.report.figures.maps import QuadCell, heat_map_figure, pronoun_row_figure, quad_figure
from anaphora.report.figures.sheet import text_width, wrapped_title
from anaphora.report.headline import threshold_text, unmet_thresholds
from anaphora.report.titles import attention_title, heads_title, quad_title, scoreboard_title

CHOSEN = Head(2, 0)
WORDS = ["Anna", "met", "the", "tall", "king", "because", "she", "was", "glad"]
CHINESE = ["小红", "遇见", "了", "美玲", "，", "因为", "她", "很", "高兴"]


@pytest.fixture
def at_head(evidence: Evidence) -> Evidence:
    """Return the evidence with head 0 of layer 2 chosen, and no head explained by chance."""
    return replace(
        evidence,
        head=ChosenHead(layer=2, head=0, chosen_on="dev"),
        heads_on_development=HeadsOnDevelopment(p=((0.9, 0.9), (0.9, 0.9), (0.001, 0.9))),
    )


def grid(chosen: float, other: float = 0.45) -> np.ndarray:
    scores = np.full((3, 2), other)
    scores[2, 0] = chosen
    return scores


def with_scores(evidence: Evidence, language: str, **changes: Any) -> Evidence:
    """Return the evidence with other scores of a language for every kind of cue."""
    whole = evidence.languages[language]
    assert whole.set is not None
    assert whole.role is not None
    changed = replace(whole, **changes, set=replace(whole.set, **changes), role=replace(whole.role, **changes))
    return replace(evidence, languages={**evidence.languages, language: changed})


def with_candidate_accuracy(evidence: Evidence, language: str, share: float) -> Evidence:
    ends = Interval(share - 0.03, share + 0.03)
    intervals = replace(evidence.languages[language].intervals, candidate_accuracy=ends)
    return with_scores(evidence, language, candidate_accuracy=share, intervals=intervals)


def test_a_cue_is_shown_as_the_text_writes_it() -> None:
    def shown(text: str, cue: str) -> str:
        names = ["Ann", "Tom"] if text.isascii() else ["玉兰", "晓燕"]
        example = example_from_query(text, "she" if text.isascii() else "她", names)
        return pictures._cue_as_written(replace(example, factors={"cue": cue}))

    assert shown("Ann was met by Tom because she was weak.", "was weak") == "was weak"
    assert shown("Ann was seen by Tom , and she left.", "was by") == "was … by"
    assert shown("玉兰受到了晓燕的欢迎，她很老实。", "受到 了 的 欢迎") == "受到了 … 的欢迎"
    assert shown("Ann met Tom before she left.", "cue 0") == "cue 0"


def test_the_grid_of_heads_says_the_chosen_head_its_share_and_chance(at_head: Evidence) -> None:
    assert heads_title(grid(0.98), 0.44, 0.48, "en", at_head) == (
        "In layer 2 head 0, the antecedent gets more weight than every other candidate in 98 % of English development "
        "items; chance 44 %"
    )
    with spoken_in("zh"):
        assert heads_title(grid(0.98), 0.44, 0.48, "en", at_head) == (
            "第 2 层第 0 头在 98% 的英语开发集样例里给先行词的权重高于其他所有候选；随机水平 44%"
        )


@pytest.mark.parametrize(
    ("share", "untrained", "bar"),
    [(0.43, None, "chance (44 %)"), (0.46, 0.48, "the 95th percentile of untrained models (48 %)")],
)
def test_a_head_that_chance_or_untrained_models_reach_is_not_praised(
    share: float, untrained: float | None, bar: str, at_head: Evidence
) -> None:
    assert heads_title(grid(share, 0.4), 0.44, untrained, "en", at_head).endswith(f"not clearly above {bar}")
    with spoken_in("zh"):
        assert "没有明显高于" in heads_title(grid(share, 0.4), 0.44, untrained, "en", at_head)


def test_a_head_that_may_be_luck_is_not_praised(at_head: Evidence) -> None:
    lucky = replace(at_head, heads_on_development=HeadsOnDevelopment(p=((0.9, 0.9), (0.9, 0.9), (0.3, 0.9))))
    assert heads_title(grid(0.5), 0.44, None, "en", lucky).endswith("50 % of English development items, not clearly "
                                                                    "above chance (44 %)")  # fmt: skip


def test_a_head_that_is_better_than_the_chosen_one_in_this_language_is_named(at_head: Evidence) -> None:
    scores = grid(0.8)
    scores[1, 1] = 0.997
    assert heads_title(scores, 0.44, None, "zh", at_head).split("\n")[1] == (
        "Higher on these items: layer 1 head 1, 99.7 %"
    )


def test_the_scoreboard_says_the_head_and_its_share_in_every_language(at_head: Evidence) -> None:
    known = with_candidate_accuracy(with_candidate_accuracy(at_head, "en", 0.97), "zh", 0.95)
    assert scoreboard_title(known) == (
        "In English and Chinese, layer 2 head 0 gives the antecedent more weight than every other candidate in 97 % "
        "and 95 % of test items; chance 44 %"
    )
    same = with_candidate_accuracy(known, "zh", 0.97)
    assert "candidate in 97 % of test items" in scoreboard_title(same)
    with spoken_in("zh"):
        assert scoreboard_title(known) == (
            "英语、汉语：第 2 层第 0 头在 97%、95% 的测试集样例里给先行词的权重高于其他所有候选；随机水平 44%"
        )


def test_the_scoreboard_does_not_praise_a_head_at_chance(at_head: Evidence) -> None:
    known = with_candidate_accuracy(with_candidate_accuracy(at_head, "en", 0.97), "zh", 0.46)
    above, ordinary = scoreboard_title(known).split("\n")
    assert above.startswith("In English, layer 2 head 0")
    assert ordinary.startswith("In Chinese, layer 2 head 0")
    assert ordinary.endswith("46 % of test items, not clearly above the 95th percentile of untrained models (47 %)")


def test_chance_and_chance_among_the_cue_s_candidates_have_names_of_their_own(at_head: Evidence) -> None:
    known = with_candidate_accuracy(at_head, "en", 0.46)
    for of_cue, named in ((0.5, {"all_candidates": 0.44, "chance": 0.5}), (0.44, {"all_candidates": 0.44})):
        cell = replace(known.languages["en"], chance=0.44, baselines={"chance": of_cue})
        assert unmet_thresholds(cell) == named
    assert threshold_text("all_candidates", 0.44) == "chance (44 %)"
    assert threshold_text("chance", 0.5) == "chance among the cue’s candidates (50 %)"


def test_the_scoreboard_says_that_a_task_is_not_solved_rather_than_where_heads_point(at_head: Evidence) -> None:
    english = replace(at_head, languages={"en": at_head.languages["en"]})
    assert scoreboard_title(with_scores(english, "en", task_accuracy=0.5)) == (
        "In English, the model answers 50 % of test items correctly (chance 44 %): the task is not solved"
    )
    unanswered = scoreboard_title(with_scores(english, "en", task_accuracy=None))
    assert unanswered.endswith("the model’s answers are not measured")


def row(**weights: float) -> np.ndarray:
    values = np.full(len(WORDS), 0.0)
    for place, weight in weights.items():
        values[int(place[1:])] = weight
    return values


@pytest.mark.parametrize(
    ("weights", "antecedents", "distractors", "title"),
    [
        (row(w0=0.75, w4=0.2), [[0]], [[2, 3, 4]],
         "gives 75 % of its weight in layer 2 head 0 to its antecedent “Anna”"),
        (row(w0=0.4, w2=0.1, w3=0.2, w4=0.3), [[0]], [[2, 3, 4]],
         "gives 60 % of its weight in layer 2 head 0 to “the tall king” and 40 % to its antecedent “Anna”"),
        (row(w5=0.9), [], [], "gives 90 % of its weight in layer 2 head 0 to “because”"),
        (row(w6=0.9), [], [], "gives 90 % of its weight in layer 2 head 0 to itself"),
        (row(w0=0.3, w4=0.2), [[0]], [[4]],
         "spreads its weight in layer 2 head 0: nothing gets half of it, and “Anna” gets most (30 %)"),
        (row(w0=0.2, w4=0.3), [[0]], [[4]],
         "spreads its weight in layer 2 head 0: “king” gets most (30 %), and its antecedent “Anna” gets 20 %"),
        (row(w0=0.204, w4=0.196, w1=0.1), [[0]], [[4]],
         "spreads its weight in layer 2 head 0: “Anna” and “king” get most (20 % each)"),
        (row(w0=0.5, w4=0.5), [[0]], [[4]],
         "spreads its weight in layer 2 head 0: “Anna” and “king” get most (50 % each)"),
        (row(w0=0.1, w4=0.204, w5=0.196), [[0]], [[4]],
         "spreads its weight in layer 2 head 0: “king” and “because” get most (20 % each), and its antecedent “Anna” "
         "gets 10 %"),
        (row(w0=0.204, w1=0.2, w4=0.196), [[0]], [[4]],
         "spreads its weight in layer 2 head 0: no word stands out, and its antecedent “Anna” gets 20 %"),
        (row(w1=0.2, w4=0.2, w5=0.2), [], [],
         "spreads its weight in layer 2 head 0: no word stands out, and the largest share is 20 %"),
        (row(w0=0.498), [[0]], [[4]], "gives 50 % of its weight in layer 2 head 0 to its antecedent “Anna”"),
    ],
)  # fmt: skip
def test_a_sentence_s_map_says_what_gets_most_of_the_pronoun_s_weight_in_this_sentence(
    weights: np.ndarray, antecedents: Sequence[Sequence[int]], distractors: Sequence[Sequence[int]], title: str
) -> None:
    said = attention_title(WORDS, weights, [6], antecedents, distractors, CHOSEN)
    assert said == f"In this sentence, “she” {title}"
    with spoken_in("zh"):
        said = attention_title(CHINESE, weights, [6], antecedents, distractors, CHOSEN)
    assert said.startswith("在这个句子里，“她”在第 2 层第 0 头中")
    assert not re.search("[A-Za-z]", said)


def cell(words: Sequence[str], attended: int) -> QuadCell:
    weights = np.full(len(words), 0.05)
    weights[attended] = 0.6
    return QuadCell(words=words, weights=weights, pronoun=6, antecedents=[0], distractors=[3])


@pytest.mark.parametrize(
    ("attended", "english", "chinese"),
    [
        (
            (0, 0, 0, 0),
            "in all 4 sentences of this quad, layer 2 head 0 gives",
            "4 个句子里，第 2 层第 0 头给先行词的权重都高于",
        ),
        ((0, 3, 0, 0), "in 3 of the 4 sentences of this quad, layer 2 head 0 gives", "4 个句子里有 3 个，"),
        ((3, 3, 3, 3), "in none of the 4 sentences of this quad does layer 2 head 0 give", "都没有高于其他所有候选"),
    ],
)
def test_a_quad_says_in_how_many_of_its_sentences_the_head_is_right(
    attended: Sequence[int], english: str, chinese: str
) -> None:
    cells = [cell(WORDS, place) for place in attended]
    assert quad_title(cells, "en", "role", CHOSEN).startswith(f"English, role cues: {english}")
    with spoken_in("zh"):
        assert chinese in quad_title(cells, "en", "role", CHOSEN)


def test_weights_that_only_rounding_separates_are_no_lead_in_a_quad() -> None:
    weights = np.full(len(WORDS), 0.1)
    for lead, is_strongest in ((1e-9, False), (1e-3, True)):
        weights[0] = 0.1 + lead
        tied = QuadCell(words=WORDS, weights=weights, pronoun=6, antecedents=[0], distractors=[3])
        assert tied.antecedent_is_strongest() == is_strongest


@pytest.mark.parametrize("spoken", ["en", "zh"])
def test_no_title_is_cut_where_the_figure_is_smallest(spoken: str, at_head: Evidence) -> None:
    long = ["internationalisation-of-everything", "she"]
    with spoken_in(spoken):
        said = attention_title(long, np.array([0.9, 0.1]), [1], [[0]], [], CHOSEN)
        assert "…" in said
        title = heads_title(np.array([[0.2], [0.1], [0.9]]), 0.44, None, "en", at_head)
        figures = [
            heat_map_figure(long, np.eye(2), said, 1, [[0]]),
            pronoun_row_figure(long, [0.9, 0.1], 1, [[0]], [], said),
            quad_figure([cell(WORDS, 0)], quad_title([cell(WORDS, 0)], "en", "role", CHOSEN)),
            heads.head_grid_figure([[0.2], [0.1], [0.9]], 0.44, (2, 0), title, 0.5),
        ]
    for figure in figures:
        assert figure.get_figwidth() <= style.DOUBLE_COLUMN
        for text in figure.findobj(Text):
            if isinstance(text, Text) and text.get_text():
                box = text.get_window_extent().transformed(figure.dpi_scale_trans.inverted())
                assert box.x1 <= figure.get_figwidth() + 0.01


def test_a_title_keeps_a_number_with_its_unit_and_leaves_no_word_over() -> None:
    title = "In this sentence the pronoun gives most of its weight to another word in 22 % of all the cases that are"
    lines = wrapped_title(title, 3.6).split("\n")
    assert not any(line.startswith("%") for line in lines)
    widths = [text_width(line, style.TEXT + 1, bold=True) for line in lines]
    assert min(widths) > 0.6 * max(widths)
    assert not any(re.search(r"第( \d+)?$", line) for line in wrapped_title("第 12 层第 10 头" * 9, 3.4).split("\n"))

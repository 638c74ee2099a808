from __future__ import annotations

import io
import re
from collections import Counter
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console

from anaphora.analysis.evidence.evidence import ChosenHead, Control, Evidence, Verdict, VerdictRow
from anaphora.analysis.maps.answers import Answers
from anaphora.analysis.results.scores import AccuracyCell, Cell, LanguageScores, ScoreIntervals, WorstTemplate
from anaphora.analysis.results.typed_json import Interval, table_row
from anaphora.analysis.scores.heads import DROP_REASONS
from anaphora.analysis.tasks.task_accuracy import ItemAnswers, accuracy_table
from anaphora.base import console, translation
from anaphora.base.translation import spoken_in
from anaphora.commands.parts.tables import print_answers, print_decisions
from anaphora.data.example import Example
from anaphora.report import terminal
from anaphora.report.headline import headline_sentence, headline_table
from anaphora.report.page.elements import ReportRun
from anaphora.report.page.sections.scores import scoreboard_section
from anaphora.report.titles import scoreboard_title


def cell(task: float = 0.99, candidate: float = 0.95, untrained: float | None = 0.58, **more: Any) -> Cell:
    """Return the scores of one language or kind of cue, with intervals of one point to both sides."""
    nothing: dict[str, Any] = dict.fromkeys((each.name for each in fields(ScoreIntervals)), None)
    ends = {
        "task_accuracy": Interval(task - 0.01, min(task + 0.01, 1.0)),
        "candidate_accuracy": Interval(candidate - 0.01, min(candidate + 0.01, 1.0)),
    }
    measured: dict[str, Any] = {
        "items": 123456,
        "task_accuracy": task,
        "candidate_accuracy": candidate,
        "quad_accuracy": 0.9,
        "minimal_pair_accuracy": 0.9,
        "open_accuracy": 0.9,
        "focal_accuracy": 0.9,
        "antecedent_mass": 0.873,
        "lift": 12.31,
        "chance": 0.45,
        "intervals": ScoreIntervals(**nothing | ends),
        "baselines": {"nearest": 0.46, "most_mentioned": 0.48, "random_init": 0.47, "random_init_95": untrained},
    }
    return Cell(**measured | more)


def language(whole: Cell, **kinds: Cell) -> LanguageScores:
    values: dict[str, Any] = {each.name: getattr(whole, each.name) for each in fields(Cell)}
    return LanguageScores(**values | kinds)


def evidence(split: str = "test", **languages: Cell) -> Evidence:
    return Evidence(
        seed=0,
        split=split,
        head=ChosenHead(layer=2, head=0, chosen_on="dev"),
        languages={
            name: each if isinstance(each, LanguageScores) else language(each) for name, each in languages.items()
        },
        strata={},
        dropped={},
        untrained_models=20,
    )


def lines(summary: Evidence, width: int = 100) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(headline_table(summary))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_the_table_has_a_row_for_each_language_and_kind_and_wraps_none_at_100_columns() -> None:
    whole = language(cell(1.0, 1.0), set=cell(), role=cell(candidate=0.55))
    drawn = lines(evidence(en=whole, zh=whole))
    assert len(drawn) == 4 + 6
    assert max(map(len, drawn)) <= 100
    assert drawn[0].strip() == "test split, layer 2 head 0 (chosen on the development split), shares in %"
    assert " ".join(drawn[5].split()) == (
        "set cues 123456 99.0 95.0 [94.0, 96.0] 90.0 87.3 12.3 45.0 most mentioned 48.0 47.0 / 58.0"
    )


def test_the_best_baseline_is_never_an_untrained_model() -> None:
    assert "most mentioned 48.0" in lines(evidence(en=cell(untrained=0.99)))[-1]


def test_a_measure_that_does_not_apply_is_a_dash() -> None:
    numbers = [each.name for each in fields(Cell) if each.name not in ("items", "intervals", "baselines")]
    nothing = ScoreIntervals(**dict.fromkeys((each.name for each in fields(ScoreIntervals)), None))
    unknown: dict[str, Any] = dict.fromkeys(numbers)
    bare = replace(cell(items=0, baselines={}, intervals=nothing), **unknown)
    assert set(lines(evidence(en=bare))[-1].split()) == {"English", "0", "–"}


def test_a_long_baseline_name_is_cut_rather_than_wrapped() -> None:
    drawn = lines(evidence(en=cell(baselines={"bag_with_interactions": 0.6})))
    assert "bag with inte… 60.0" in drawn[-1]


def test_languages_of_one_case_share_a_sentence() -> None:
    said = headline_sentence(evidence(en=cell(candidate=0.97), zh=cell()))
    assert said == (
        "In English and Chinese, layer 2 head 0 picks the antecedent (gives it more weight than every other "
        "candidate) in 97 % (English) and 95 % (Chinese) of unseen items (chance 45 %), above every baseline and the "
        "95th percentile of untrained models; this shows what the head attends to; the causal tests and the verdict "
        "say whether the model uses it."
    )


def test_a_head_below_untrained_models_is_no_evidence() -> None:
    said = headline_sentence(evidence(en=cell(candidate=0.55)))
    assert "not clearly above the 95th percentile of untrained models (58 %): no evidence" in said
    assert "causal" not in said


def test_a_head_whose_interval_reaches_a_baseline_is_no_evidence() -> None:
    said = headline_sentence(evidence(en=cell(candidate=0.65, baselines={"nearest": 0.645, "random_init_95": 0.5})))
    assert "not clearly above nearest (64 %)" in said or "not clearly above nearest (65 %)" in said


def test_without_untrained_models_nothing_is_found() -> None:
    assert "untrained models were not measured" in headline_sentence(evidence(en=cell(untrained=None)))


@pytest.mark.parametrize("task", [0.44, 0.6])
def test_alignment_is_not_read_where_the_task_is_unsolved(task: float) -> None:
    said = headline_sentence(evidence(en=cell(task=task)))
    assert said.startswith(f"In English the model answers {100 * task:.0f} % of unseen items correctly (chance 45 %, ")
    assert "should not be read as alignment" in said
    assert "picks the antecedent" not in said


def test_a_model_without_answers_is_not_said_to_answer_wrongly() -> None:
    said = headline_sentence(evidence(en=replace(cell(), task_accuracy=None)))
    assert said.startswith(
        "In English these scores hold no answers of the model, so they do not show that the task is solved"
    )
    assert "correctly" not in said


def test_a_baseline_that_solves_the_task_leaves_it_unsolved() -> None:
    said = headline_sentence(evidence(en=cell(task=0.985, baselines={"bag_of_words": 0.985})))
    assert "should not be read" in said
    assert "no more than a rule that uses no attention" in said


def test_a_kind_of_cue_that_fails_is_named() -> None:
    said = headline_sentence(evidence(zh=language(cell(), set=cell(), role=cell(task=0.5))))
    assert "In Chinese, layer 2 head 0 picks the antecedent" in said
    assert "In Chinese role cues the model answers 50 %" in said
    assert "set cues" not in said


def test_without_an_interval_it_is_open_whether_a_head_stands_out() -> None:
    nothing: dict[str, Any] = dict.fromkeys((each.name for each in fields(ScoreIntervals)), None)
    said = headline_sentence(evidence(en=cell(intervals=ScoreIntervals(**nothing))))
    assert "too few templates or groups for an interval, so it is open whether the head is above" in said
    assert "no evidence" not in said and "points" not in said
    said = headline_sentence(evidence(en=cell(candidate=0.57, intervals=ScoreIntervals(**nothing))))
    assert "above every baseline" not in said and "no evidence that this head picks antecedents" in said


def test_items_that_chose_the_head_are_not_called_unseen() -> None:
    said = headline_sentence(evidence("dev", en=cell()))
    assert "unseen" not in said
    assert "dev items (the head was chosen on the development split)" in said


def test_nearly_all_is_not_rounded_to_all() -> None:
    assert "99.7 %" in headline_sentence(evidence(en=cell(candidate=0.997)))


def test_answers_below_chance_are_called_that() -> None:
    assert "In English that is below chance" in headline_sentence(evidence(en=cell(task=0.1)))
    assert "below chance" not in headline_sentence(evidence(en=cell(task=0.45)))
    unknown = ScoreIntervals(**dict.fromkeys((each.name for each in fields(ScoreIntervals)), None))
    assert "below chance" not in headline_sentence(evidence(en=cell(task=0.0, intervals=unknown)))  # of one item


def test_right_answers_that_are_not_clearly_above_a_bar_are_not_plainly_called_unsolved() -> None:
    nothing: dict[str, Any] = dict.fromkeys((each.name for each in fields(ScoreIntervals)), None)
    wide = ScoreIntervals(**nothing | {"task_accuracy": Interval(0.4, 1.0)})
    by_rule = evidence(en=cell(task=0.85, intervals=wide, baselines={"nearest": 0.7}))
    assert "correctly, not clearly above nearest (70 %): the task counts as not solved" in headline_sentence(by_rule)
    by_chance = evidence(en=cell(task=0.85, intervals=wide, baselines={}))
    assert "correctly, not clearly above chance (45 %): the task counts" in headline_sentence(by_chance)
    no_more = evidence(en=cell(task=0.85, intervals=wide, baselines={"nearest": 0.9}))
    assert "no more than a rule that uses no attention" in headline_sentence(no_more)
    for summary, bar in ((by_rule, "nearest (70 %)"), (by_chance, "chance (45 %)"), (no_more, "nearest (90 %)")):
        title = "In English, the model answers 85 % of test items correctly, not clearly above {}: the task counts as"
        assert scoreboard_title(summary) == f"{title.format(bar)} not solved"
        with spoken_in("zh"):
            assert "没有明显高于" in scoreboard_title(summary) and "任务算作没有解决" in headline_sentence(summary)


def test_a_prediction_head_that_needs_no_attention_to_the_candidates_is_named() -> None:
    named = "its answers need no attention between them"
    assert named in headline_sentence(replace(evidence(en=cell(candidate=0.97)), reads_candidates=True))
    assert named not in headline_sentence(replace(evidence(en=cell(candidate=0.97)), reads_candidates=False))
    assert named not in headline_sentence(replace(evidence(en=cell(task=0.5)), reads_candidates=True))


@pytest.mark.parametrize("task", [0.99, 0.5])
def test_a_head_that_labels_trained_is_named_in_the_headline_whether_the_task_is_solved_or_not(task: float) -> None:
    named = "The labels trained the attention of this head itself"
    assert named in headline_sentence(replace(evidence(en=cell(task=task)), head_is_supervised=True))
    assert named not in headline_sentence(replace(evidence(en=cell(task=task)), head_is_supervised=False))
    assert named not in headline_sentence(evidence(en=cell(task=task)))


@pytest.mark.parametrize(
    "summary",
    [
        evidence(en=cell(candidate=0.97), zh=cell()),
        evidence(en=cell(candidate=0.55), zh=cell(untrained=None)),
        evidence(en=cell(task=0.74, baselines={"nearest": 0.735}), zh=cell(task=0.8, baselines={"nearest": 0.9})),
        evidence("dev", en=language(cell(), set=cell(), role=cell(task=0.3))),
        replace(evidence(en=cell(), zh=cell(task=0.5, baselines={})), reads_candidates=True),
    ],
)
def test_the_sentence_says_the_same_in_chinese(summary: Evidence) -> None:
    english = headline_sentence(summary)
    with spoken_in("zh"):
        chinese = headline_sentence(summary)
    assert not re.search("[A-Za-z]{2}", chinese)
    numbers = [Counter(re.findall(r"[\d.]*\d(?= ?%)", text)) for text in (english, chinese)]
    assert numbers[0] == numbers[1]


def printed(monkeypatch: pytest.MonkeyPatch, summary: Evidence) -> str:
    """Return the terminal output on a run at the end of a command."""
    recorder = Console(file=io.StringIO(), width=100, markup=False)
    for module in (console, terminal):
        monkeypatch.setattr(module, "console", recorder)
    terminal.print_headline(summary)
    terminal.print_verdict(summary)
    console.say("report    {path}", path="outputs/demo/report.html")
    assert isinstance(recorder.file, io.StringIO)
    return recorder.file.getvalue()


def test_items_of_other_strata_alone_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    said = printed(monkeypatch, replace(evidence(), strata={"en": {"hard": cell(), "third": cell()}}))
    assert "test split: no item is of stratum main" in said and "has the scores of hard, third" in said


def test_the_terminal_is_wholly_chinese_where_messages_are(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = language(cell(baselines={"most_frequent": 0.6}), set=cell(), role=cell(candidate=0.55))
    summary = replace(evidence(en=whole, zh=whole), dropped=dict.fromkeys(DROP_REASONS, 2))
    rows = tuple(
        VerdictRow(rule=rule, question="", value=None, interval=None, needed="", passed=passed)
        for rule, passed in (("trained controls", None), ("lift", False))
    )
    judged = Verdict(verdict="not yet controlled", rows=rows)
    summary = replace(summary, verdict={"en": {"set": judged}}, verdict_at_head={"zh": {"role": judged}})
    english = printed(monkeypatch, summary)
    assert "English, set cues: not yet controlled (fails: lift; not measured: trained controls)\n" in english
    assert "Chinese, role cues, one head: not yet controlled (fails: lift" in english
    monkeypatch.setenv(translation.VARIABLE, "zh")
    chinese = printed(monkeypatch, summary)
    assert "英语，集合线索：尚无对照（不成立：提升；没有测量：训练对照）\n" in chinese
    assert "报告      outputs/demo/report.html\n" in chinese
    assert not re.search("[A-Za-z]{2}", chinese.replace("outputs/demo/report.html", ""))
    assert max(cell_len(line) for line in chinese.splitlines()[:10]) <= 100
    assert re.findall(r"\d+\.\d", english) == re.findall(r"\d+\.\d", chinese)


def test_what_trained_controls_show_is_reported_in_the_language_of_messages(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    statement = "Role cues: task and candidate accuracy within 5 points of chance, since a bag of words does not say "
    control = Control(
        run="no_positions",
        seed=0,
        languages={
            "zh": {"role": AccuracyCell(task_accuracy=0.46, candidate_accuracy=0.44, interval=None, chance=0.5)}
        },
        as_expected=True,
        expected=f"{statement}who did what.",
        observed="zh role cues task 46.0 % (chance 50.0 %); zh role cues candidate 44.0 % (chance 50.0 %).",
    )
    for name, expected in (("english", True), ("none", None), ("other", False)):
        terminal.print_controls("demo", "test", {"no_positions": replace(control, as_expected=expected, run=name)})
    english = " ".join(capsys.readouterr().out.split())
    assert "demo: trained controls, test split, shares in %" in english and " no_positions zh role 46.0 44.0" in english
    for result in ("as expected", "nothing to check", "NOT as expected"):
        assert f"no_positions: {result}. Expected: Role cues: task and " in english
    monkeypatch.setenv(translation.VARIABLE, "zh")
    terminal.print_controls("demo", "test", {"no_positions": control})
    chinese = capsys.readouterr().out
    assert "demo：训练对照，测试集，比例单位 %" in chinese and "无位置编码：符合预期。预期：角色线索" in chinese
    assert "实际：汉语角色线索的任务准确率 46.0%" in chinese.replace("\n", "")
    assert not re.search("[A-Za-z]{2}", chinese.replace("demo", ""))


@pytest.mark.parametrize(("low", "is_told"), [(1.0, True), (0.9999, False)])
def test_page_and_terminal_leave_out_an_interval_of_a_single_point_and_say_why(
    low: float, is_told: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nothing: dict[str, Any] = dict.fromkeys((each.name for each in fields(ScoreIntervals)), None)
    ends = ScoreIntervals(**nothing | {"candidate_accuracy": Interval(low, 1.0)})
    summary = evidence(en=cell(candidate=1.0, intervals=ends))
    assert ("no interval if all" in scoreboard_section(ReportRun(name="x", evidence=summary)).explanation) == is_told
    assert ("no interval if all" in printed(monkeypatch, summary)) == is_told
    examples = [
        Example(
            text="ab ab ab",
            language="en",
            pronoun=(6, 8),
            candidates=(((0, 2),), ((3, 5),)),
            antecedents=(0,),
            group=str(item),
        )
        for item in range(8)
    ]
    right = np.array([0] * 7 + [0 if is_told else 1])
    rows = accuracy_table(ItemAnswers(examples, [Answers.about(examples, right)], {}))
    print_answers([table_row(row) for row in rows], "x")
    assert ("no interval if all" in capsys.readouterr().out) == is_told


@pytest.mark.parametrize("low", [1.0, 0.9, float("nan")])
def test_the_table_of_name_decisions_leaves_out_an_interval_of_a_single_point(
    low: float, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"policy": "head", "f1": 1.0, "low": low, "high": low and 1.0, "bias": 1.0, "bias_low": 0.0, "bias_high": 0.0}
    print_decisions("x", [row], [])
    out = capsys.readouterr().out
    cells = next(line for line in out.splitlines() if "1.000" in line).split()[-6:]
    ends = ["0.900", "1.000"] if low == 0.9 else ["–", "–"]
    assert cells == ["1.000", *ends, "1.000", "–", "–"]
    assert ("no interval if all" in out) == (low == 1)


def test_the_worst_template_is_named_with_the_accuracy_that_ranks_it_and_only_if_templates_differ(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for candidate, told in ((0.5, "worst, template t1: candidate accuracy 50.0 %, task accuracy 99.0 %, 4 items"),
                            (0.95, "")):  # fmt: skip
        worst = WorstTemplate(template="t1", items=4, task_accuracy=0.99, candidate_accuracy=candidate)
        said = printed(monkeypatch, evidence(en=replace(language(cell()), worst_template=worst)))
        assert told in said and ("template t1" in said) == bool(told)


def test_scores_without_chance_are_told_without_it() -> None:
    assert "an unknown share" in headline_sentence(evidence(en=cell(chance=None, baselines={})))

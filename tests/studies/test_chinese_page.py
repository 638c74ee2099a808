"""Tests of study pages in both languages: each uses the study's texts in its own language."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from invented import cells, plan, records, rule

from anaphora.base.errors import UserError
from anaphora.base.files import write_json
from anaphora.base.translation import spoken_in
from anaphora.report.page.elements import VerdictElement
from anaphora.studies import run as engine
from anaphora.studies.page.conclusions import conclusions
from anaphora.studies.page.study import verdict_elements
from anaphora.studies.page.words import cell_label, condition_text, items_label, measure_label, names_of
from anaphora.studies.plan import StudyPlan
from anaphora.studies.schema import RuleOutcome, read_study
from anaphora.studies.summary import summarise

MARKUP = "<b>&"


def chinese_plan(tmp_path: Path) -> StudyPlan:
    """Return `invented.plan` in both languages, with markup in its own texts."""
    return plan(
        question_zh=f"成立吗{MARKUP}",
        prediction_zh=f"成立{MARKUP}",
        names_zh={"prediction head": f"预测头{MARKUP}", "bilinear": f"打分器{MARKUP}", "heads": "头", "one": "单头"},
        rules=[
            rule(measure="candidate_accuracy", at_least=0.9, at_most=1, statement_zh=f"它指向先行词{MARKUP}"),
            rule(statement=MARKUP, statement_zh="更低", seed_statistic="lowest", cell="one", baseline_cell="base",
                 group="distance 8", at_most=-1e-06),
        ],
        output=str(tmp_path),
        formats=["svg"],
        interface_language="both",
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a study, written in both languages."""
    place = tmp_path_factory.mktemp("studies")
    plan_of_study = chinese_plan(place)
    engine.write_study(plan_of_study, summarise(plan_of_study, cells(), records()))
    return place


@pytest.mark.parametrize("stem", ["invented/study", "index"])
def test_pages_in_both_languages_link_to_each_other_and_say_what_the_study_says_in_theirs(
    stem: str, folder: Path
) -> None:
    english, chinese = ((folder / f"{stem}{end}.html").read_text(encoding="utf-8") for end in ("", ".zh"))
    assert '<html lang="en">' in english and '<html lang="zh">' in chinese
    name = Path(stem).name
    assert f'<a href="{name}.zh.html" lang="zh" hreflang="zh">中文</a>' in english
    assert f'<a href="{name}.html" lang="en" hreflang="en">English</a>' in chinese
    assert "成立吗&lt;b&gt;" in chinese and "它指向先行词&lt;b&gt;" in chinese
    assert "成立吗" not in english and "它指向先行词" not in english
    for page in (english, chinese):
        assert MARKUP not in page and "&lt;b&gt;&amp;" in page


def test_every_condition_is_shown_in_the_language_of_the_page() -> None:
    rules = [
        RuleOutcome(
            statement="x",
            cell="base",
            measure=measure,
            group="all",
            baseline_cell=baseline,
            seed_statistic=statistic,
            needed="",
            passed=None,
            spreads={},
            **bounds,
        )
        for measure, baseline in (("entropy_bits", None), ("task_accuracy", None), ("task_accuracy", "other"))
        for statistic in ("median", "lowest", "highest")
        for bounds in ({"at_least": -0.5}, {"at_most": 1e-06}, {"at_least": 200, "at_most": 312})
    ]
    shown = [condition_text(one) for one in rules]
    assert shown[:4] == ["≥ −0.5", "≤ 1e−06", "≥ 200 and ≤ 312", "lowest ≥ −0.5"]
    assert shown[9] == "≥ −50 %" and shown[18] == "≥ −50 points"
    with spoken_in("zh"):
        shown = [condition_text(one) for one in rules]
    assert shown[18] == "≥ −50 个百分点"
    assert shown[2:6] == ["≥ 200 且 ≤ 312", "最低的种子 ≥ −0.5", "最低的种子 ≤ 1e−06", "最低的种子 ≥ 200 且 ≤ 312"]


def test_measures_and_groups_of_items_are_named_in_the_language_of_the_page() -> None:
    with spoken_in("zh"):
        assert items_label("key permuted, set") == "置换键，集合线索"
        assert measure_label("layer_2_candidate_accuracy") == "第 2 层的头，候选准确率"
        assert items_label("d_k 8") == "d_k 8" and items_label("unheard of") == "unheard of"
    assert items_label("key permuted, set") == "key permuted, set cues"


def test_a_study_that_has_no_chinese_is_shown_as_it_is(tmp_path: Path) -> None:
    bare = summarise(plan(rules=[rule(at_least=0.9)]), cells(), records())
    write_json(tmp_path / "study.json", bare.to_json())
    assert "_zh" not in (tmp_path / "study.json").read_text()
    older = read_study(tmp_path / "study.json", "")
    with spoken_in("zh"):
        (verdict,) = verdict_elements(older)
        assert isinstance(verdict, VerdictElement) and verdict.rows[0].rules[0].question == "it points"
        assert "英语，集合线索：4 个单元中有 3 个解决了任务" in conclusions(older)[0]
    named = replace(older, names={"one": "single"}, names_zh={"one": "单头"})
    assert names_of(named) == {"one": "single"}
    with spoken_in("zh"):
        assert names_of(named) == {"one": "单头"}
        assert cell_label("bilinear+one", named) == "bilinear + 单头"
    own_base = replace(older, names={"base": "pairwise scorer"})
    assert cell_label("base+one_head", own_base) == "pairwise scorer + one head"


def test_a_chinese_name_of_nothing_is_refused() -> None:
    with pytest.raises(
        UserError, match=r"names_zh \('two'\) must be a factor, a cell or a pool: prediction head, heads,"
    ):
        plan(names_zh={"two": "二"})
    with pytest.raises(UserError, match=r"interface_language \('fr'\) must be one of en, zh, both"):
        plan(interface_language="fr")


def test_a_study_in_one_language_leaves_no_outdated_page_in_the_other(tmp_path: Path) -> None:
    both = chinese_plan(tmp_path)
    study = summarise(both, cells(), records())
    engine.write_study(both, study)
    written = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.zh.*")}
    assert written == {"index.zh.html", "invented/study.zh.html", "invented/figures/cells_en.zh.svg"}
    engine.write_study(replace(both, interface_language="zh"), study)
    assert list(tmp_path.rglob("*.zh.*")) == []
    assert '<html lang="zh">' in (tmp_path / "invented" / "study.html").read_text(encoding="utf-8")

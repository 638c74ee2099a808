from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anaphora.analysis.tasks.cross_validation import answer_folds, require_same_recipe
from anaphora.analysis.tasks.task_accuracy import MODEL, NONE_OF_THEM
from anaphora.base.errors import UserError
from anaphora.base.translation import spoken_in
from anaphora.commands import train as train_command
from anaphora.commands.cross_validate import CrossValidation, cross_validate
from anaphora.commands.parts.tables import file_column_names, value_cell
from anaphora.data.store import load as load_corpus
from anaphora.runs.directory import Run, load
from anaphora.runs.warm_start import with_start_model
from anaphora.training.run import train


def test_every_item_is_answered_once_by_a_model_that_has_not_seen_its_group(folds: list[Path]) -> None:
    runs = [load(folder) for folder in folds]
    answers = answer_folds(runs)
    assert len(answers.examples) == 60
    assert len({example.group for example in answers.examples}) == 30
    start = 0
    for run in runs:
        corpus = load_corpus(run.config.data)
        examples = corpus.examples("dev")
        assert answers.examples[start : start + len(examples)] == examples
        assert not {one.group for one in corpus.examples("train")} & {one.group for one in examples}
        start += len(examples)


def test_the_table_tells_all_policies_on_the_same_items(folds: list[Path], tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    rows = cross_validate(CrossValidation(runs=[str(one) for one in folds], by=["template"], output=str(path)))
    with path.open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == len(rows)
    cells = {(row["factor"], row["value"]) for row in rows}
    assert cells == {("", ""), ("template", "t0"), ("template", "t1")}
    for factor, value in cells:
        here = {row["policy"]: row for row in rows if (row["factor"], row["value"]) == (factor, value)}
        assert {MODEL, "chance", "nearest", "bag_of_words"} <= set(here)
        assert here["chance"]["accuracy"] == 0.5
        assert len({row["items"] for row in here.values()}) == 1
        for row in here.values():
            assert row["model_minus"] == pytest.approx(here[MODEL]["accuracy"] - row["accuracy"])


@pytest.mark.parametrize(
    ("overrides", "warned"),
    [
        (("data.folds=3", "data.fold=1"), True),
        (("data.folds=3", "data.fold=1", "validation.keep=last"), False),
        ((), False),
    ],
)
def test_training_says_beforehand_that_a_fold_could_not_be_used(
    overrides: tuple[str, ...], warned: bool, tiny: Callable[..., Any], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    printed: list[str] = []

    def trained(_: Any) -> Path:
        printed.append(capsys.readouterr().out)
        return tmp_path

    monkeypatch.setattr("anaphora.training.run.train", trained)
    train_command.train(tiny(tmp_path, *overrides))
    assert [("will not take this run; with validation.keep=last it does" in line) for line in printed] == [warned]


def test_a_pattern_stands_for_the_runs_that_it_matches(folds: list[Path], tmp_path: Path) -> None:
    named = [str(shutil.copytree(one, tmp_path / f"fold_{fold}")) for fold, one in enumerate(folds)]
    (tmp_path / "fold_0.log").touch()
    rows = cross_validate(CrossValidation(runs=[f"{tmp_path}/fold_*"]))
    assert rows == cross_validate(CrossValidation(runs=named))


def test_runs_that_are_not_the_folds_of_one_corpus_are_refused(
    folds: list[Path], finished: Path, tiny: Callable[..., Any], plain: Path, tmp_path: Path
) -> None:
    def message(*runs: Path, **others: Any) -> str:
        with pytest.raises(ValueError, match=r".") as refused:
            cross_validate(CrossValidation(runs=[str(one) for one in runs], **others))
        return str(refused.value)

    assert "must name the runs" in message()
    assert "was not trained on folds" in message(finished)
    assert "fold 0: 1, fold 1: 0" in message(folds[0])
    copies = [Path(shutil.copytree(one, tmp_path / "copies" / str(fold))) for fold, one in enumerate(folds)]
    assert "same fold and seed" in message(*folds, *copies)
    assert "by ('colour') must be one of" in message(*folds, by=["colour"])
    arguments = ("data.folds=2", "data.fold=0", "data.test_share=0", f"data.path={plain}")
    best = train(tiny(tmp_path / "best", *arguments))
    assert "validation.keep=last" in message(best, folds[1])
    longer = train(tiny(tmp_path / "longer", *arguments, "validation.keep=last", "optimizer.clip=2"))
    assert "other settings" in message(folds[1], longer)


def test_a_factor_that_the_items_lack_is_refused_before_the_runs_answer(
    folds: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anaphora.analysis.tasks.cross_validation.predict_for_run", None)
    with pytest.raises(UserError, match=r"by \('colour'\) must be one of the factors"):
        cross_validate(CrossValidation(runs=[str(one) for one in folds], by=["colour"]))


def test_seeds_of_a_recipe_of_two_stages_are_one_recipe(folds: list[Path], tmp_path: Path) -> None:
    def started(name: str) -> Run:
        """Return a copy of the first fold's run that was started from another run with this name."""
        origin = tmp_path / name
        origin.mkdir()
        written = (folds[1] / "config.yaml").read_text(encoding="utf-8")
        (origin / "config.yaml").write_text(written.replace("seed: 0", "seed: 5", 1), encoding="utf-8")
        run = load(folds[0])
        return replace(run, config=replace(run.config, start=str(origin)))

    one, other = started("one"), started("other")
    require_same_recipe([one, other])
    written = tmp_path / "other" / "config.yaml"
    written.write_text(written.read_text(encoding="utf-8").replace("clip: 1.0", "clip: 2.0"), encoding="utf-8")
    with pytest.raises(UserError, match="other settings"):
        require_same_recipe([one, other])
    with pytest.raises(UserError, match="other settings"):
        require_same_recipe([one, load(folds[0])])


def test_a_run_pre_trained_on_chinese_text_is_asked_about_pronouns_fold_by_fold(
    settings: Callable[..., Any], tmp_path: Path
) -> None:
    places = ("学校", "公园", "商店", "银行", "医院", "车站")
    (tmp_path / "text.txt").write_text(
        "\n\n".join(f"小红和小明一起去了{place},因为他们想去那里。" for place in places * 4), encoding="utf-8"
    )
    rows: list[dict[str, Any]] = []
    for number, place in enumerate(places):
        text = f"小红告诉小明,{'她' if number % 2 else '他'}明天要去{place}。"
        for index, name in ((0, "小红"), (4, "小明")):
            target = {"span1_index": index, "span1_text": name, "span2_index": 7, "span2_text": text[7]}
            right = (name == "小红") == bool(number % 2) and number > 0
            rows.append({"target": target, "label": str(right).lower(), "text": text, "idx": len(rows)})
    (tmp_path / "train.json").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    small = (
        "trainer=smoke",
        "trainer.limit_steps=2",
        f"output={tmp_path}",
        "batching.tokens=64",
        "batching.row_tokens=32",
    )
    shape = ("vocabulary=character", "model.width=16", "model.layers=3", "data.dev_share=0.2")
    named = (f"data.path={tmp_path / 'text.txt'}", "name=text", *shape)
    start = train(settings("experiment=pretrain", *small, *named))
    fine = ("experiment=chinese_pronouns", *small, f"start={start}", f"data.path={tmp_path / 'train.json'}")
    folds = [
        train(with_start_model(settings(*fine, "data.folds=2", f"data.fold={fold}", f"name=fold_{fold}")))
        for fold in range(2)
    ]
    rows_by_policy = {row["policy"]: row for row in cross_validate(CrossValidation(runs=[str(one) for one in folds]))}
    assert rows_by_policy[MODEL]["items"] == 6
    assert rows_by_policy[NONE_OF_THEM]["accuracy"] == pytest.approx(1 / 6)
    assert rows_by_policy[NONE_OF_THEM]["decision_accuracy"] == pytest.approx(7 / 12)


def test_joined_values_of_factors_have_their_own_names_in_chinese() -> None:
    with spoken_in("zh"):
        assert value_cell("value", "female, gap") == "女、gap"
    assert value_cell("value", "female, gap") == "female, gap"


def test_a_heading_is_f1_as_the_field_writes_it_and_a_negative_number_has_a_minus_sign() -> None:
    assert file_column_names()["f1"] == "F1"
    assert value_cell("bias", -0.25) == "−0.250"

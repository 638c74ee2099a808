from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anaphora.analysis.settings import CrossValidation
from anaphora.checkpoint import load
from anaphora.cross_validation import MODEL, Folds, answered, cross_validate, table
from anaphora.data.example import Example
from anaphora.data.store import load as load_corpus
from anaphora.errors import UserError
from anaphora.training.run import train


@pytest.fixture(scope="module")
def plain(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table without its own splits, which folds are not for."""
    path = tmp_path_factory.mktemp("plain") / "items.jsonl"
    path.write_text(
        "".join(line.partition(', "split"')[0] + "}\n" for line in table.read_text(encoding="utf-8").splitlines()),
        encoding="utf-8",
    )
    return path


@pytest.fixture(scope="module")
def folds(tmp_path_factory: pytest.TempPathFactory, tiny: Callable[..., Any], plain: Path) -> list[Path]:
    """Two finished runs, one a fold."""
    made = []
    for fold in range(2):
        asked = ("data.folds=2", f"data.fold={fold}", "data.test_share=0", "validation.keep=last")
        folder = tmp_path_factory.mktemp("fold")
        made.append(Path(train(tiny(folder, f"data.path={plain}", *asked)).directory))
    return made


def test_every_item_is_answered_once_by_a_model_that_has_not_seen_its_group(folds: list[Path]) -> None:
    runs = [load(folder) for folder in folds]
    found = answered(runs)
    assert len(found.examples) == 60
    assert len({example.group for example in found.examples}) == 30
    start = 0
    for run in runs:
        corpus = load_corpus(run.config.data)
        asked = corpus.examples("dev")
        assert found.examples[start : start + len(asked)] == asked
        assert not {one.group for one in corpus.examples("train")} & {one.group for one in asked}
        start += len(asked)


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


def items(count: int) -> list[Example]:
    return [
        Example(
            text="Anna saw Emma and she left",
            language="en",
            pronoun=(18, 21),
            candidates=(((0, 4),), ((9, 13),)),
            antecedents=(number % 2,),
            group=f"g{number // 2}",
            twin=f"g{number // 2}",
        )
        for number in range(count)
    ]


def test_differences_are_paired_and_twins_are_right_together() -> None:
    right = np.array([1.0, 1, 1, 0, 1, 1, 1, 0])
    found = Folds(items(8), {MODEL: right, "same": right, "first": np.array([1.0, 0] * 4)}, 1)
    rows = {row["policy"]: row for row in table(found)}
    assert (rows["same"]["model_minus_low"], rows["same"]["model_minus_high"]) == (0, 0)
    assert rows["first"]["model_minus"] == 0.25
    assert (rows[MODEL]["twin_accuracy"], rows["first"]["twin_accuracy"]) == (0.5, 0)


def test_a_shortcut_that_does_not_apply_to_all_items_is_left_out() -> None:
    found = Folds(items(4), {MODEL: np.ones(4), "half": np.array([1.0, 0, np.nan, 1])}, 1)
    assert [row["policy"] for row in table(found)] == [MODEL]


def test_runs_that_are_not_the_folds_of_one_corpus_are_refused(
    folds: list[Path], finished: Path, tiny: Callable[..., Any], plain: Path, tmp_path: Path
) -> None:
    def said(*runs: Path, **others: Any) -> str:
        with pytest.raises(UserError) as refused:
            cross_validate(CrossValidation(runs=[str(one) for one in runs], **others))
        return str(refused.value)

    assert "must name the runs" in said()
    assert "was not trained on folds" in said(finished)
    assert "fold 0: 1, fold 1: 0" in said(folds[0])
    assert "same fold and seed" in said(folds[0], folds[1], folds[0], folds[1])
    assert "by ('colour') must be taken from" in said(*folds, by=["colour"])
    asked = ("data.folds=2", "data.fold=0", "data.test_share=0", f"data.path={plain}")
    best = Path(train(tiny(tmp_path / "best", *asked)).directory)
    assert "validation.keep=last" in said(best, folds[1])
    longer = Path(train(tiny(tmp_path / "longer", *asked, "validation.keep=last", "optimizer.clip=2")).directory)
    assert "other settings" in said(folds[1], longer)

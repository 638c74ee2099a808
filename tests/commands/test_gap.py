from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from published import write_folder

from anaphora.analysis.maps.answers import shares_chosen
from anaphora.analysis.maps.capture import capture_run, log_probabilities
from anaphora.commands.gap import evaluate_runs
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.names import with_exchanged_names
from anaphora.data.store import load as load_corpus
from anaphora.report.numbers import format_signed
from anaphora.runs.directory import load


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("published") / "bert", "bert")


def written(path: Path) -> dict[str, dict[str, float]]:
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {row.pop("policy"): {name: float(value) for name, value in row.items()} for row in rows}


def test_shortcuts_heads_and_probe_are_reported_without_training(
    gap: Path, weights: Path, tmp_path: Path, script: Callable[..., Any]
) -> None:
    output = tmp_path / "table.csv"
    arguments = (f"weights={weights}", f"data.path={gap}", "folds=3", f"output={output}")
    status, _, err = script("gap", *arguments)
    assert status == 0, err
    rows = written(output)
    assert rows["first"]["f1"] == pytest.approx(2 * 54 / (60 + 54), abs=1e-6)
    assert rows["first"]["recall"] == 1
    assert rows["nearest"]["f1"] == 0
    assert rows["random"]["f1"] == pytest.approx(0.5 * rows["first"]["f1"], abs=0.03)
    assert rows["probe over heads"]["f1"] > 0.8
    assert {"best head", "best head, with threshold", "best head, either direction"} <= set(rows)


def test_fine_tuned_runs_are_reported_one_by_one_and_together(
    gap: Path, weights: Path, tmp_path: Path, script: Callable[..., Any]
) -> None:
    runs = []
    for seed in range(2):
        short = ("trainer=smoke", "trainer.limit_items=null", "data.dev_share=0.1", "batching.tokens=256")
        folders = (f"output={tmp_path}", f"name=seed{seed}", f"data.path={gap}", f"start={weights}", f"seed={seed}")
        status, _, err = script("train", "experiment=gap", *short, *folders)
        assert status == 0, err
        runs.append(str(tmp_path / f"seed{seed}"))
    arguments = (f"runs=[{','.join(runs)}]", f"data.path={gap}", f"output={tmp_path / 'table.csv'}")
    status, _, err = script("gap", *arguments)
    assert status == 0, err
    rows = written(tmp_path / "table.csv")
    assert list(rows) == ["seed0", "seed1", "mean of 2"]
    assert rows["mean of 2"]["f1"] == pytest.approx((rows["seed0"]["f1"] + rows["seed1"]["f1"]) / 2)
    alone = script("gap", f"runs=[{runs[1]}]", f"data.path={gap / 'gap-development.tsv'}")
    assert alone.status == 0 and re.search(
        r"seen in training: of \d+ items of test, \d+ (is a|are) training items? of .*seed1", alone.out
    )
    both = script("gap", *arguments, "exchanged=true", "overwrite=true")
    assert both.status == 0, both.err
    twice = written(tmp_path / "table.csv")
    assert list(twice) == [f"{name}{way}" for name in rows for way in ("", ", both ways")]
    assert {name: twice[name]["f1"] for name in rows} == {name: row["f1"] for name, row in rows.items()}
    gain = twice["mean of 2, both ways"]["f1"] - twice["mean of 2"]["f1"]
    assert f"both ways, minus once: F1 {format_signed(gain, 3)} [" in both.out
    assert (
        "needs answers, which weights=... does not have"
        in script("gap", f"weights={weights}", f"data.path={gap}", "exchanged=true").err
    )
    assert "gives no answers" in script("gap", f"runs=[{weights}]", f"data.path={gap}").err
    assert "give either runs=" in script("gap", f"data.path={gap}").err
    shutil.copytree(runs[0], tmp_path / "again" / "seed0")
    alike = script("gap", f"runs=[{runs[0]},{tmp_path / 'again' / 'seed0'}]", f"data.path={gap}")
    assert alike.status == 2 and "two are called seed0; rename one of the run directories" in alike.err


def test_asked_both_ways_an_answer_does_not_hang_on_who_bears_which_name(
    gap: Path, weights: Path, tmp_path: Path, script: Callable[..., Any]
) -> None:
    short = ("trainer=smoke", "trainer.limit_items=null", "data.dev_share=0.5", "batching.tokens=256")
    folders = (f"output={tmp_path}", "name=run", f"data.path={gap}", f"start={weights}")
    assert script("train", "experiment=gap", *short, *folders).status == 0
    run = load(tmp_path / "run")
    examples = [example for split in ("dev", "test") for example in load_corpus(run.config.data).examples(split)]
    exchanged = [with_exchanged_names(example) for example in examples]
    here, there = (evaluate_runs([run], items, exchanged=True).decisions[0] for items in (examples, exchanged))
    assert here.shape == (2, len(examples), 2)
    assert (here[1] == there[1]).all()
    # Asked once they may differ, and what is said then is what the run says.
    own = capture_run(run, examples).answers
    assert own is not None
    assert (here[0].argmax(axis=1) == own.candidates)[own.candidates >= 0].all()
    assert (here[0].sum(axis=1) == 1 - own.silent).all()
    shares = [
        log_probabilities(run.model, EncodedSplit(each, run.tokenizer), run.config.batching)
        for each in (examples, exchanged)
    ]
    assert np.allclose(np.exp(shares[0]).sum(axis=1), 1)
    assert (here[1] == shares_chosen(np.mean(shares, axis=0))[:, :2]).all()


def test_items_that_are_not_two_names_with_a_gender_are_refused(
    table: Path, weights: Path, script: Callable[..., Any]
) -> None:
    status, _, err = script("gap", f"weights={weights}", "data=jsonl", f"data.path={table}")
    assert status == 2
    assert "two names and male or female are needed" in err


def test_there_are_no_more_folds_than_texts(gap: Path, weights: Path, script: Callable[..., Any]) -> None:
    status, _, err = script("gap", f"weights={weights}", f"data.path={gap}", "folds=1000")
    assert status == 2 and re.search(
        r"error: folds \(1000\) must be at most \d+, the number of development texts\n", err
    )


def test_each_run_is_asked_the_fold_that_it_has_not_seen(
    gap: Path, table: Path, weights: Path, tmp_path: Path, script: Callable[..., Any]
) -> None:
    for fold in range(2):
        short = ("trainer=smoke", "trainer.limit_items=null", "batching.tokens=256", "data.folds=2")
        folders = (
            f"output={tmp_path}",
            f"name=fold{fold}",
            f"data.path={gap}",
            f"start={weights}",
            f"data.fold={fold}",
        )
        assert script("train", "experiment=gap", *short, *folders).status == 0
    runs = f"runs=[{tmp_path / 'fold0'},{tmp_path / 'fold1'}]"
    arguments = (f"data.path={gap}", "split=folds", f"output={tmp_path / 'table.csv'}")
    status, _, err = script("gap", runs, "data.folds=2", *arguments)
    assert status == 0, err
    rows = written(tmp_path / "table.csv")
    assert list(rows) == ["fold0", "fold1", "all 2 folds"]
    each = [load(tmp_path / f"fold{fold}") for fold in range(2)]
    parts = [load_corpus(run.config.data).examples("dev") for run in each]
    assert {one.text for one in parts[0]} & {one.text for one in parts[1]} == set()
    for run, examples in zip(each, parts, strict=True):
        assert rows[run.name]["f1"] == pytest.approx(evaluate_runs([run], examples).scores[run.name].f1, abs=1e-6)
    low, high = sorted(rows[f"fold{fold}"]["f1"] for fold in range(2))
    assert low <= rows["all 2 folds"]["f1"] <= high
    assert "was trained with other data settings" in script("gap", runs, "data.folds=3", *arguments[:-1]).err
    alone = script("gap", f"runs=[{tmp_path / 'fold0'}]", "data.folds=2", *arguments[:-1])
    assert "every fold must have the same number of runs" in alone.err
    # The development file alone is divided otherwise than the folder, so that folds overlap with what was trained on.
    part = f"data.path={gap / 'gap-development.tsv'}"
    assert "may have seen" in script("gap", runs, part, "split=folds", "data.folds=2").err
    one = (f"runs=[{tmp_path / 'fold0'}]", "split=dev", "data.folds=2")
    assert script("gap", *one, f"data.path={gap}", "data.fold=0").status == 0
    assert "may have seen" in script("gap", *one, f"data.path={gap}", "data.fold=1").err
    assert "may have seen" in script("gap", *one, part, "data.fold=0").err
    # The same rows at another place are the same data; another corpus has no fold of theirs.
    copied = shutil.copytree(gap, tmp_path / "copied")
    assert script("gap", *one, f"data.path={copied}", "data.fold=0").status == 0
    assert script("gap", runs, "data.folds=2", f"data.path={copied}", "split=folds").status == 0
    other = ("data=jsonl", f"data.path={table}", "data.folds=2")
    assert "may have seen" in script("gap", runs, "split=folds", *other).err

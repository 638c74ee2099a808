from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anaphora.analysis.results.typed_json import table_row
from anaphora.analysis.tasks.labels import (
    LabelAccuracy,
    LabelsOfPolicy,
    accuracy_by_label,
    accuracy_by_policy,
    bag_of_tokens,
    bag_of_words,
    perplexity,
)
from anaphora.base.errors import UserError
from anaphora.data.store import load as load_corpus
from anaphora.data.text import Text
from anaphora.runs.directory import load
from anaphora.settings.run import Config
from anaphora.training.run import train

Script = Callable[..., tuple[int, str, str]]
TINY = (
    "trainer=smoke",
    "trainer.limit_items=null",
    "trainer.limit_steps=30",
    "model.width=16",
    "model.layers=1",
    "optimizer.learning_rate=0.01",
    "validation.every=10",
)


def columns(row: LabelsOfPolicy | LabelAccuracy) -> dict[str, Any]:
    return dict(table_row(row))


def text(written: str, label: str) -> Text:
    return Text(text=written, language="en", label=label)


def test_the_bag_of_words_knows_pairs_of_neighbours() -> None:
    # Without their order both kinds of text hold the same words.
    train = [text(f"{number} white black", "+") for number in range(9)]
    train += [text(f"{number} black white", "-") for number in range(9)]
    assert bag_of_words(train, train, [text("white black", "+"), text("black white", "-")]) == ["+", "-"]


def test_chinese_characters_are_the_words_of_a_bag() -> None:
    train = [text(written, label) for written, label in (("房间很好", "+"), ("房间不好", "-")) for _ in range(5)]
    assert bag_of_words(train, train, [text("不好", "-"), text("很好", "+")]) == ["-", "+"]


def test_rows_tell_all_and_each_label_with_intervals_and_the_difference() -> None:
    texts = [text("a", "x")] * 60 + [text("a", "y")] * 40
    answers, bag = ["x"] * 100, ["x"] * 30 + ["y"] * 70
    rows = {row.label: columns(row) for row in accuracy_by_label(texts, answers, bag)}
    assert {name: row["texts"] for name, row in rows.items()} == {"all": 100, "x": 60, "y": 40}
    assert {name: (row["accuracy"], row["bag"]) for name, row in rows.items()} == {
        "all": (0.6, 0.7),
        "x": (1.0, 0.5),
        "y": (0.0, 1.0),
    }
    assert rows["all"]["more"] == pytest.approx(-0.1)
    assert rows["all"]["accuracy_low"] < 0.6 < rows["all"]["accuracy_high"]
    assert rows["all"]["more_low"] < -0.1 < rows["all"]["more_high"]


def test_policies_are_compared_text_by_text_and_runs_are_distinguished() -> None:
    texts = [text("a", "x")] * 60 + [text("a", "y")] * 40
    rows = {
        row.policy: columns(row)
        for row in accuracy_by_policy(
            texts, {"runs": [["x"] * 100, ["y"] * 100], "same": [["x"] * 100], "good": [["x"] * 60 + ["y"] * 40]}
        )
    }
    assert (rows["runs"]["accuracy"], rows["runs"]["lowest"], rows["runs"]["highest"]) == (0.5, 0.4, 0.6)
    assert rows["same"]["first_minus"] == pytest.approx(-0.1)
    assert [rows["good"][name] for name in ("first_minus", "first_minus_low", "first_minus_high")] == [-0.5] * 3


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory: pytest.TempPathFactory, settings: Callable[..., Config]) -> Path:
    """Train a masked language model, and return its run directory."""
    folder = tmp_path_factory.mktemp("pretrained")
    names = ("Anna", "Tom", "Mary", "Peter")
    paragraphs = [f"{names[number % 4]} met {names[number // 4 % 4]} before she left." for number in range(80)]
    (folder / "tales.txt").write_text("\n\n".join(paragraphs))
    chosen = ("experiment=pretrain", f"data.path={folder / 'tales.txt'}", "data.dev_share=0.1", "data.test_share=0.1")
    return train(settings(*chosen, *TINY, f"output={folder}", "name=run"))


def test_labels_are_evaluated_beside_a_bag_of_words(labelled: Path, script: Script) -> None:
    status, out, err = script("evaluate", f"run={labelled}", "split=test")
    assert status == 0, err
    assert "bag of words" in out and "all" in out
    answers = json.loads((labelled / "evaluation" / "test_answers.json").read_text())
    gold = [one.label for one in load_corpus(load(labelled).config.data).texts("test")]
    assert [one["label"] for one in answers] == gold
    assert np.mean([one["answer"] == one["label"] for one in answers]) > 0.8
    assert (labelled / "evaluation" / "test_labels.csv").read_text().startswith("label,texts,accuracy,")


def test_runs_are_tabled_beside_linear_models_of_the_same_split(labelled: Path, tmp_path: Path, script: Script) -> None:
    status, out, err = script("evaluate", f"runs=[{labelled}]", f"output={tmp_path / 'table.csv'}")
    assert status == 0, err
    with (tmp_path / "table.csv").open(encoding="utf-8") as file:
        rows = {row["policy"]: row for row in csv.DictReader(file)}
    assert list(rows) == ["encoder", "bag of its tokens", "bag of words and pairs", "most frequent label"]
    assert len({row["texts"] for row in rows.values()}) == 1
    assert all(policy in out for policy in rows)
    assert float(rows["encoder"]["accuracy"]) > 0.8 and float(rows["bag of its tokens"]["accuracy"]) == 1


def test_runs_without_labels_have_no_table_of_labels(pretrained: Path, script: Script) -> None:
    status, _, err = script("evaluate", f"runs=[{pretrained}]")
    assert status == 2 and "task.prediction=none" in err


def test_the_bag_of_tokens_sees_no_order_and_nothing_behind_the_cut(labelled: Path) -> None:
    run = load(labelled)
    corpus = load_corpus(run.config.data)
    training, development = corpus.texts("train"), corpus.texts("dev")
    long = "very " * run.config.batching.row_tokens
    contents = ["well went It", "badly went It", f"{long}well", f"{long}badly"]
    answers = bag_of_tokens(run, training, development, [text(one, "a") for one in contents])
    assert answers[:2] == ["a", "b"]
    assert answers[2] == answers[3]


def test_the_perplexity_of_a_split_is_reported_and_does_not_depend_on_the_batches(
    pretrained: Path, script: Script
) -> None:
    status, out, err = script("evaluate", f"run={pretrained}", "split=dev")
    assert status == 0, err
    run = load(pretrained)
    texts = load_corpus(run.config.data).texts("dev")
    reached, hidden = perplexity(run, texts)
    assert f"perplexity of {hidden} masked tokens, dev split: {reached:.2f}" in out
    best = min(
        one["validation/perplexity"] for one in json.loads((pretrained / "training.json").read_text())["validations"]
    )
    assert reached == pytest.approx(best, rel=1e-4)
    with pytest.raises(UserError, match=r"data: none of the words of 1 text is masked at task.masked_lm=0"):
        perplexity(run, [text("\N{SNOWMAN}", "a")])


@pytest.mark.parametrize("name", ["score", "attention", "report", "controls"])
def test_a_run_on_texts_answers_no_pronoun_question(name: str, labelled: Path, script: Script) -> None:
    status, _, err = script(name, f"run={labelled}")
    assert status == 2
    assert err.startswith("error: this run answers no pronoun question: its data=labelled_text")
    assert err.count("\n") == 1


def test_other_data_must_ask_what_the_run_can_answer(
    labelled: Path, pretrained: Path, finished: Path, script: Script
) -> None:
    own = ("data=labelled_text", f"data.path={labelled.parent / 'own.jsonl'}")
    status, _, err = script("evaluate", f"run={pretrained}", *own)
    assert status == 2 and "is masked at task.masked_lm=" in err  # it knows none of their words
    tales = ("data=plain_text", f"data.path={pretrained.parent / 'tales.txt'}", "data.seed=1")
    status, out, _ = script("evaluate", f"run={pretrained}", "split=train", *tales)
    assert status == 0 and "perplexity" in out
    status, _, err = script("evaluate", f"run={finished}", *own)
    assert status == 2 and "the run's task.prediction=word cannot label data=labelled_text" in err
    status, _, err = script("score", f"run={finished}", *own)
    assert status == 2 and "data=labelled_text holds texts without pronoun questions" in err
    for setting in (["calibrate=dev"], ["layer=0", "head=0"]):
        status, _, err = script("evaluate", f"run={labelled}", *setting)
        assert status == 2 and f"{setting[0].partition('=')[0]} (" in err and "these data are texts" in err


def test_heads_of_a_pretrained_encoder_are_scored_on_pronouns(
    pretrained: Path, labelled: Path, table: Path, tmp_path: Path, script: Script
) -> None:
    for run in (pretrained, labelled):
        arguments = (
            f"run={run}",
            "data=jsonl",
            f"data.path={table}",
            f"output={tmp_path / run.parent.name}",
            "untrained=1",
        )
        status, _, err = script("score", *arguments)
        assert status == 0, err
        metrics = json.loads((tmp_path / run.parent.name / "metrics.json").read_text())
        assert set(metrics["languages"]) == {"en", "zh"}


def test_a_text_corpus_is_described(labelled: Path, script: Script, tmp_path: Path) -> None:
    own = ("data=labelled_text", f"data.path={labelled.parent / 'own.jsonl'}")
    status, out, err = script("corpus", *own, f"output={tmp_path}")
    assert status == 0, err
    assert "train" in out and "characters" in out
    assert (tmp_path / "counts.csv").read_text().startswith("split,label,texts,words,characters")


def test_texts_of_a_group_are_drawn_together_and_a_difference_may_be_negative() -> None:
    """Twenty documents of five identical texts give wider intervals than a hundred texts."""
    alone = [text("a", "x") for _ in range(100)]
    grouped = [replace(one, group=f"document {number // 5}") for number, one in enumerate(alone)]
    answers = ["x" if number // 5 % 2 else "y" for number in range(100)]
    (single, *_), (whole, *_) = (
        map(columns, accuracy_by_label(texts, answers, ["x"] * 100)) for texts in (alone, grouped)
    )
    assert whole["accuracy_high"] - whole["accuracy_low"] > 1.5 * (single["accuracy_high"] - single["accuracy_low"])
    [_, compared] = map(columns, accuracy_by_policy(grouped, {"run": [answers], "bag": [["x"] * 100]}))
    assert compared["high"] == 1
    assert compared["first_minus_low"] < compared["first_minus"] < compared["first_minus_high"]
    few = columns(accuracy_by_label(alone[:4], ["y", "y", "y", "x"], ["x"] * 4)[0])
    assert few["more_low"] <= few["more"] == -0.75 < few["more_high"]

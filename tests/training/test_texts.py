from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from anaphora.base.batch import Batch
from anaphora.base.errors import UserError
from anaphora.commands.evaluate import Evaluation, evaluate
from anaphora.runs.directory import RunFiles, load, training_record
from anaphora.settings.model.prediction import Label
from anaphora.settings.run import Config
from anaphora.training.module import TrainingModule
from anaphora.training.reuse import finish_training, load_or_train
from anaphora.training.run import train

NAMES, VERBS, PLACES = ("Anna", "Tom", "Mary"), ("walked", "talked", "jumped"), ("in the garden", "on the bridge")
SMALL = (
    "trainer=smoke",
    "trainer.limit_steps=null",
    "trainer.limit_items=null",
    "model.width=16",
    "model.layers=2",
    "model/initialisation=xavier",
    "batching.tokens=256",
    "batching.row_tokens=32",
    "optimizer.matrices=adamw",
    "optimizer.matrices_learning_rate=null",
    "optimizer.learning_rate=0.01",
    "optimizer.steps=8",
    "validation.every=2",
)
Settings = Callable[..., Config]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write thirty small documents."""
    path = tmp_path_factory.mktemp("pages") / "pages.jsonl"
    rows = []
    for number in range(30):
        lines = [f"{NAMES[(number + line) % 3]} {VERBS[line % 3]} {PLACES[number % 2]}." for line in range(6)]
        rows.append(json.dumps({"text": "\n".join(lines), "title": f"Page {number}"}))
    path.write_text("\n".join(rows))
    return path


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write sixty reviews, whose labels are given by the adverb of the second clause."""
    path = tmp_path_factory.mktemp("reviews") / "reviews.jsonl"
    rows = []
    for number in range(60):
        word, label = (("well", "good"), ("badly", "poor"))[number % 2]
        text = f"{NAMES[number % 3]} {VERBS[number // 3 % 3]} {PLACES[number // 9 % 2]} and it"
        text += f" {'really ' * (number % 5)}went {word}. {number}"
        rows.append(json.dumps({"text": text, "label": label}))
    path.write_text("\n".join(rows))
    return path


def pretraining(settings: Settings, pages: Path, output: Path, *more: str) -> Config:
    shares = ("data.dev_share=0.2", "data.test_share=0.1", "vocabulary.size=80")
    return settings("experiment=pretrain", f"data.path={pages}", *shares, *SMALL, f"output={output}", "name=run", *more)


def classifying(settings: Settings, reviews: Path, output: Path, *more: str) -> Config:
    chosen = ("experiment=sentiment", "data=labelled_text", f"data.path={reviews}")
    return settings(*chosen, *SMALL, "model.dropout=0.1", f"output={output}", "name=run", *more)


class KilledError(Exception):
    pass


def broken_at(step: int, config: Config) -> None:
    whole_step = TrainingModule.training_step

    def dies(module: TrainingModule, batch: Batch, batch_idx: int) -> Any:
        if module.global_step == step:
            raise KilledError
        return whole_step(module, batch, batch_idx)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(TrainingModule, "training_step", dies)
        with pytest.raises(KilledError):
            train(config)


@pytest.mark.usefixtures("checkpoints_stay")
@pytest.mark.parametrize("task", ["masked_lm", "classification"])
def test_two_rounds_and_two_resumed_are_four_unbroken_ones(
    task: str, settings: Settings, pages: Path, reviews: Path, tmp_path: Path
) -> None:
    def config(output: Path, *more: str) -> Config:
        if task == "masked_lm":
            return pretraining(settings, pages, output, "model.dropout=0.1", *more)
        return classifying(settings, reviews, output, "task.masked_lm=0.2", *more)

    unbroken = train(config(tmp_path / "unbroken"))
    broken_at(5, config(tmp_path / "broken"))
    directory = tmp_path / "broken" / "run"
    assert not RunFiles(directory).weights.exists()
    train(config(tmp_path / "broken", f"resume={directory}"))
    first, second = (torch.load(RunFiles(one).last_checkpoint, weights_only=True) for one in (unbroken, directory))
    assert first["global_step"] == second["global_step"] == 8
    for name, value in first["state_dict"].items():
        assert torch.equal(value, second["state_dict"][name]), name
    assert training_record(unbroken)["validations"] == training_record(directory)["validations"]


def test_perplexity_falls_and_is_that_of_the_loss(settings: Settings, pages: Path, tmp_path: Path) -> None:
    run = train(pretraining(settings, pages, tmp_path, "optimizer.steps=60", "validation.every=20"))
    perplexities = [one["validation/perplexity"] for one in training_record(run)["validations"]]
    assert perplexities[-1] < 0.5 * perplexities[0]
    last = training_record(run)["validations"][-1]
    assert last["validation/perplexity"] == pytest.approx(math.exp(last["validation/loss"]), rel=1e-5)
    assert not [name for name in last if name.startswith("attention")]
    with pytest.raises(UserError, match=r"^output \(there\) is for runs with a prediction head; a perplexity is only"):
        evaluate(Evaluation(run=str(run), output="there"))


@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_labels_are_learned_and_the_run_knows_their_names(
    pooling: str, settings: Settings, reviews: Path, tmp_path: Path
) -> None:
    more = ("optimizer.steps=60", "validation.every=20", f"task.prediction.pooling={pooling}")
    directory = train(classifying(settings, reviews, tmp_path, *more))
    assert max(one["validation/accuracy"] for one in training_record(directory)["validations"]) == 1.0
    prediction = load(directory).config.task.prediction
    assert isinstance(prediction, Label)
    assert prediction.labels == ["good", "poor"]


def test_a_repeated_job_finds_its_run_though_the_data_named_the_labels(
    settings: Settings, reviews: Path, tmp_path: Path
) -> None:
    config = classifying(settings, reviews, tmp_path)
    stages: list[str] = []
    for _ in range(2):
        finish_training(config, "choose another name=", stages.append)
    assert [stage.rpartition(": ")[2] for stage in stages] == ["training", "finished; its weights are reused"]
    with pytest.raises(UserError, match="holds a run with other settings"):
        finish_training(classifying(settings, reviews, tmp_path, "task.prediction.labels=[poor,good]"), "stop")
    moved = tmp_path / "moved" / reviews.name
    moved.parent.mkdir()
    moved.write_bytes(reviews.read_bytes())
    config = classifying(settings, moved, tmp_path)
    assert load_or_train(config, "choose another name=", stages.append).config.data == config.data
    assert stages[-1].endswith("its weights are reused")
    moved.write_text(moved.read_text(encoding="utf-8").replace("went", "ran"), encoding="utf-8")
    with pytest.raises(UserError, match="no longer gives the training items"):
        finish_training(config, "choose another name=")


def test_shuffled_labels_are_a_control_of_texts_too(settings: Settings, reviews: Path, tmp_path: Path) -> None:
    still = ("optimizer.learning_rate=1e-30", "trainer.limit_steps=2")
    losses = []
    for shuffled in ("gold", "shuffled"):
        config = classifying(settings, reviews, tmp_path / shuffled, *still, f"task.labels={shuffled}")
        losses.append(training_record(train(config))["validations"][0]["validation/loss"])
    assert losses[0] != losses[1]


def test_the_vocabulary_holds_words_of_the_training_split_alone(
    settings: Settings, pages: Path, tmp_path: Path
) -> None:
    path = tmp_path / "pages.jsonl"
    rows = [json.dumps({"text": f"zebra{'qxjvkw'[number % 6] * 3} {number}"}) for number in range(12)]
    path.write_text("\n".join(rows))
    config = pretraining(settings, path, tmp_path, "trainer.limit_steps=2", "task.masked_lm=0.5")
    run = load(train(config))
    from anaphora.data.store import load as load_corpus

    characters = {character for one in load_corpus(config.data).texts("train") for character in one.text}
    known = {run.tokenizer.token(number).removeprefix("##") for number in range(5, run.tokenizer.size)}
    assert set("".join(known)) <= characters
    assert len(known) > len(set("".join(known)))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            ("data.dev_share=0",),
            r"the dev split is empty; give more rows \(the default shares need six groups of rows at least\) or larger",
        ),
        (
            ("data.folds=999", "data.fold=998"),
            r"the dev split is empty; give more rows, or fewer folds \(data.folds\), at most one for each group",
        ),
        (("task.prediction.labels=[good,fair]",), r"label: 'poor' of .* must be one of good, fair"),
    ],
)
def test_texts_that_cannot_be_trained_on_are_reported(
    more: tuple[str, ...], message: str, settings: Settings, reviews: Path, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=message):
        train(classifying(settings, reviews, tmp_path, *more))


def test_a_development_split_without_a_masked_word_is_reported_before_training(
    settings: Settings, pages: Path, tmp_path: Path
) -> None:
    reason = r"no word of the dev split is masked at task.masked_lm=1e-06, so that no weights are best"
    with pytest.raises(UserError, match=reason):
        train(pretraining(settings, pages, tmp_path, "task.masked_lm=1e-06"))


def test_one_label_alone_is_reported(settings: Settings, tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text("\n".join(json.dumps({"text": f"text {number}", "label": "a"}) for number in range(20)))
    with pytest.raises(
        UserError, match=r"task.prediction=label needs texts of at least two labels; the training split has"
    ):
        train(classifying(settings, path, tmp_path))


def test_tensorboard_shows_labelled_texts_with_their_answers_and_no_head(
    settings: Settings, reviews: Path, tmp_path: Path
) -> None:
    directory = train(classifying(settings, reviews, tmp_path, "trainer.pictures=8"))
    events = EventAccumulator(str(directory)).Reload()
    assert not [tag for tag in events.Tags()["scalars"] if tag.startswith("heads_") or "best_head" in tag]
    assert events.Tags()["images"] == []
    tables = [one.tensor_proto.string_val[0].decode() for one in events.Tensors("answers/english")]
    assert len(tables) == 4
    assert "| text | label | answer\u00a0(p) |" in tables[-1]
    rows = tables[-1].split("\n")[4:]
    assert rows
    for row in rows:
        right, text, label, told = (cell.strip() for cell in row.strip("|").split(" | "))
        answer, _, _ = told.partition("\u00a0")
        assert label == ("good" if " well" in text else "poor")
        assert (right == "✓") == (label == answer)


def test_tensorboard_shows_the_perplexity_of_pre_training_and_no_answers(
    settings: Settings, pages: Path, tmp_path: Path
) -> None:
    directory = train(pretraining(settings, pages, tmp_path, "trainer.pictures=8"))
    tags = EventAccumulator(str(directory)).Reload().Tags()
    assert {"curves/validation_loss", "curves/validation_perplexity", "final/loss"} <= set(tags["scalars"])
    assert not [tag for tag in tags["scalars"] if "accuracy" in tag or tag.startswith("heads_")]
    assert set(tags["tensors"]) == {"custom_scalars__config__", "settings"}
    assert tags["images"] == []


def test_a_label_that_only_a_test_text_has_is_reported_before_training(
    settings: Settings, reviews: Path, tmp_path: Path
) -> None:
    rows = [json.loads(line) for line in reviews.read_text().splitlines()]
    for number, row in enumerate(rows):
        row["split"] = ("train", "train", "dev", "test")[number // 2 % 4]
    rows[-1] |= {"split": "test", "label": "so-so"}
    path = tmp_path / "reviews.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(UserError, match=r"label: 'so-so' of 'Mary talked.*' must be one of good, poor"):
        train(classifying(settings, path, tmp_path))
    assert not RunFiles(tmp_path / "run").config.exists()

from __future__ import annotations

import contextlib
import json
import math
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from anaphora.base.batch import Batch
from anaphora.base.errors import UserError
from anaphora.base.files import locked_directory
from anaphora.model.linear import has_faster_kernel
from anaphora.runs.directory import RunFiles, load
from anaphora.runs.machine import Machine
from anaphora.runs.processes import Terminated
from anaphora.settings.data import ExternalCorpus, PlainText
from anaphora.settings.run import Config, read_config
from anaphora.training import run
from anaphora.training.callbacks import ValidationCheckpoint
from anaphora.training.module import TrainingModule
from anaphora.training.reuse import finish_training
from anaphora.training.run import train

Tiny = Callable[..., Config]
GOLDEN = [4.27591, 3.91288, 3.71905, 3.07339, 2.37620]
"""Losses of the first five steps of the tiny run, which change only if the computation of training changes."""


def files(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def record(directory: Path) -> dict[str, Any]:
    return dict(json.loads(RunFiles(directory).training.read_text()))


class KilledError(Exception):
    pass


def stop_at(step: int, patched: pytest.MonkeyPatch, error: type[BaseException] = KilledError) -> None:
    """Make the run fail in the middle of a step, as if the machine crashed."""
    whole_step = TrainingModule.training_step

    def dies(module: TrainingModule, batch: Batch, batch_idx: int) -> Tensor:
        if module.global_step == step:
            raise error
        return whole_step(module, batch, batch_idx)

    patched.setattr(TrainingModule, "training_step", dies)


def losses_of(config: Config, patched: pytest.MonkeyPatch) -> list[float]:
    losses: list[float] = []
    whole_step = TrainingModule.training_step

    def noted(module: TrainingModule, batch: Batch, batch_idx: int) -> Tensor:
        loss = whole_step(module, batch, batch_idx)
        losses.append(loss.item())
        return loss

    patched.setattr(TrainingModule, "training_step", noted)
    train(config)
    patched.undo()
    return losses


@pytest.mark.usefixtures("checkpoints_stay")
@pytest.mark.parametrize("matrices", ["adamw", "muon"])
def test_two_rounds_and_two_resumed_are_four_unbroken_ones(tiny: Tiny, tmp_path: Path, matrices: str) -> None:
    noisy = (
        "model.dropout=0.2",
        "task.masked_lm=0.2",
        "task/prediction=slot",
        "model.attention.head_dropout=0.2",
        f"optimizer.matrices={matrices}",
    )
    unbroken = train(tiny(tmp_path / "unbroken", *noisy))
    broken = tiny(tmp_path / "broken", *noisy)
    with pytest.MonkeyPatch.context() as patched:
        stop_at(5, patched)
        with pytest.raises(KilledError):
            train(broken)
    directory = tmp_path / "broken" / "run"
    assert not RunFiles(directory).weights.exists()
    resumed = tiny(tmp_path / "broken", f"resume={directory}")
    assert record(train(resumed))["steps"] == 8
    first, second = (torch.load(RunFiles(one).last_checkpoint, weights_only=True) for one in (unbroken, directory))
    assert first["global_step"] == second["global_step"] == 8
    for name, value in first["state_dict"].items():
        assert torch.equal(value, second["state_dict"][name]), name
    assert record(unbroken)["validations"] == record(directory)["validations"]


@pytest.mark.usefixtures("checkpoints_stay")
def test_a_curriculum_on_values_ends_at_hidden_states_and_resumes_where_it_was(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    curriculum = (
        "optimizer.value_curriculum.start=0.25",
        "optimizer.value_curriculum.end=0.625",
        "validation.keep=last",
    )
    shares: list[float] = []
    whole_step = TrainingModule.training_step

    def noted(module: TrainingModule, batch: Batch, batch_idx: int) -> Tensor:
        shares.append(module.model.encoder.hidden_share)
        return whole_step(module, batch, batch_idx)

    with monkeypatch.context() as patched:
        patched.setattr(TrainingModule, "training_step", noted)
        unbroken = train(tiny(tmp_path / "unbroken", *curriculum))
    assert shares == [0, 0, 0, pytest.approx(1 / 3), pytest.approx(2 / 3), 1, 1, 1]
    with monkeypatch.context() as patched:
        stop_at(5, patched)
        with pytest.raises(KilledError):
            train(tiny(tmp_path / "broken", *curriculum))
    directory = tmp_path / "broken" / "run"
    train(tiny(tmp_path / "broken", f"resume={directory}"))
    first, second = (load_file(RunFiles(one).weights) for one in (unbroken, directory))
    assert all(torch.equal(value, second[name]) for name, value in first.items())
    assert record(unbroken)["validations"] == record(directory)["validations"]
    assert load(unbroken).model.encoder.hidden_share == 1.0


def test_the_first_five_losses_are_the_stored_ones(tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert losses_of(tiny(tmp_path), monkeypatch)[:5] == pytest.approx(GOLDEN, abs=1e-4)


def test_training_counts_denormal_numbers_as_zero_and_what_follows_does_not(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Matrix products with denormals are slow; see benchmarks/denormals.py."""
    products: list[float] = []
    whole_step = TrainingModule.training_step

    def noted(module: TrainingModule, batch: Batch, batch_idx: int) -> Tensor:
        products.append(denormal_product())
        return whole_step(module, batch, batch_idx)

    monkeypatch.setattr(TrainingModule, "training_step", noted)
    train(tiny(tmp_path))
    assert products == [0.0] * len(products) != []
    assert denormal_product() > 0


def denormal_product() -> float:
    return (torch.full((1,), 1e-38) * 0.1).item()


def test_a_killed_run_leaves_whole_files_only(tiny: Tiny, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patched:
        stop_at(5, patched)
        with pytest.raises(KilledError):
            train(tiny(tmp_path))
    left = files(tmp_path / "run")
    assert not [name for name in left if Path(name).name.startswith(".")]
    assert {"config.yaml", "tokenizer.json", "checkpoints/last.ckpt", "checkpoints/best.safetensors"} <= set(left)
    assert "model.safetensors" not in left
    assert torch.load(tmp_path / "run/checkpoints/last.ckpt", weights_only=True)["global_step"] == 4


def test_a_finished_run_keeps_its_weights_once_and_nothing_to_resume_from(finished: Path) -> None:
    assert [name for name in files(finished) if name.endswith((".safetensors", ".ckpt"))] == ["model.safetensors"]
    assert not (finished / "checkpoints").exists()


def test_a_run_that_another_process_ends_meanwhile_is_not_trained_again(
    tiny: Tiny, tmp_path: Path, unfinished: Path, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = Path(shutil.copytree(unfinished, tmp_path / "run"))

    @contextlib.contextmanager
    def waited(*_: object) -> Iterator[None]:
        shutil.copy(RunFiles(finished).weights, RunFiles(directory).weights)
        shutil.rmtree(RunFiles(directory).checkpoints)
        yield

    monkeypatch.setattr("anaphora.training.run.locked_run", waited)
    with pytest.raises(UserError, match="this run has finished"):
        train(tiny(tmp_path, f"resume={directory}"))
    assert RunFiles(directory).weights.read_bytes() == RunFiles(finished).weights.read_bytes()


def test_a_run_killed_while_it_writes_a_checkpoint_keeps_the_one_before(tiny: Tiny, tmp_path: Path) -> None:
    import pytorch_lightning as lightning

    save = lightning.Trainer.save_checkpoint

    def dies(trainer: lightning.Trainer, path: Path) -> None:
        if trainer.global_step == 6:
            Path(path).write_bytes(b"half")
            raise KilledError
        save(trainer, path)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(lightning.Trainer, "save_checkpoint", dies)
        with pytest.raises(KilledError):
            train(tiny(tmp_path))
    assert torch.load(tmp_path / "run/checkpoints/last.ckpt", weights_only=True)["global_step"] == 4
    assert record(train(tiny(tmp_path, f"resume={tmp_path / 'run'}")))["steps"] == 8


@pytest.mark.parametrize("kind", [KeyboardInterrupt, Terminated])
def test_an_interrupted_run_is_reported_as_such_and_resumes(
    kind: type[KeyboardInterrupt], tiny: Tiny, tmp_path: Path
) -> None:
    before = signal.getsignal(signal.SIGINT)  # Lightning ignores further ones while it shuts down
    try:
        with pytest.MonkeyPatch.context() as patched:
            stop_at(3, patched, kind)
            with pytest.raises(KeyboardInterrupt) as stopped:
                train(tiny(tmp_path))
            assert stopped.type is kind
    finally:
        signal.signal(signal.SIGINT, before)
    assert not RunFiles(tmp_path / "run").weights.exists()
    assert record(train(tiny(tmp_path, f"resume={tmp_path / 'run'}")))["steps"] == 8


def test_a_run_killed_after_its_last_validation_needs_no_more_steps(tiny: Tiny, tmp_path: Path, finished: Path) -> None:
    def dies(history: ValidationCheckpoint) -> None:
        raise KilledError

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ValidationCheckpoint, "finish", dies)
        with pytest.raises(KilledError):
            train(tiny(tmp_path))
    directory = train(tiny(tmp_path, f"resume={tmp_path / 'run'}"))
    assert RunFiles(directory).weights.read_bytes() == RunFiles(finished).weights.read_bytes()
    assert record(directory)["validations"] == record(finished)["validations"]


def test_a_run_killed_before_its_first_validation_begins_again(tiny: Tiny, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patched:
        stop_at(1, patched)
        with pytest.raises(KilledError):
            train(tiny(tmp_path))
    assert record(train(tiny(tmp_path, f"resume={tmp_path / 'run'}")))["steps"] == 8


def test_training_twice_gives_the_same_weights(tiny: Tiny, tmp_path: Path, finished: Path) -> None:
    again = train(tiny(tmp_path))
    assert RunFiles(again).weights.read_bytes() == RunFiles(finished).weights.read_bytes()


def test_the_run_records_every_validation_and_keeps_the_weights_of_the_lowest_loss(finished: Path) -> None:
    recorded = record(finished)
    losses = [one["validation/loss"] for one in recorded["validations"]]
    assert [one["step"] for one in recorded["validations"]] == [2, 4, 6, 8]
    assert recorded["best_validation"] == losses.index(min(losses))
    assert {
        "validation/accuracy",
        "attention_candidate_accuracy/layer_1_head_1",
        "attention_mass/layer_0_head_0",
    } <= set(recorded["validations"][0])
    assert all(0 <= one["attention_candidate_accuracy/layer_0_head_0"] <= 1 for one in recorded["validations"])


@pytest.mark.parametrize(("precision", "recorded"), [("32", "32-true"), ("bf16-mixed", "bf16-mixed")])
def test_the_run_records_what_decides_its_rounding(tiny: Tiny, tmp_path: Path, precision: str, recorded: str) -> None:
    computed_with = record(train(tiny(tmp_path, f"trainer.precision={precision}")))["computed_with"]
    by_one_dnn = precision == "32" and has_faster_kernel()
    assert computed_with == {
        "torch": torch.__version__,
        "device": "cpu",
        "precision": recorded,
        "compiled": False,
        "threads": torch.get_num_threads(),
        "processes": 1,
        "products": "oneDNN" if by_one_dnn else "torch",
    }


def overfits(tiny: Tiny, output: Path, *more: str) -> Config:
    """Return the settings of a run whose validation loss rises, because its learning rate is too high."""
    return tiny(output, "optimizer.learning_rate=3", "optimizer.clip=100", "optimizer.warmup=0.9", *more)


@pytest.mark.usefixtures("checkpoints_stay")
def test_best_weights_are_those_of_the_lowest_validation_loss_not_the_last(tiny: Tiny, tmp_path: Path) -> None:
    directory = train(overfits(tiny, tmp_path))
    best = record(directory)["best_validation"]
    assert best < 3
    last = torch.load(RunFiles(directory).last_checkpoint, weights_only=True)["state_dict"]
    kept = load_file(RunFiles(directory).weights)
    assert any(not torch.equal(value, last[f"model.{name}"]) for name, value in kept.items())
    steps = str(2 * (best + 1))
    short = train(overfits(tiny, tmp_path, "name=short", f"trainer.limit_steps={steps}"))
    for name, value in load_file(RunFiles(short).weights).items():
        assert torch.equal(value, kept[name]), name


def test_early_stopping_stops(tiny: Tiny, tmp_path: Path) -> None:
    patient = train(overfits(tiny, tmp_path, "validation.patience=1"))
    recorded = record(patient)
    losses = [one["validation/loss"] for one in recorded["validations"]]
    assert recorded["steps"] < 8
    assert losses[-1] >= losses[-2]
    assert recorded["best_validation"] == len(losses) - 2


@pytest.mark.usefixtures("checkpoints_stay")
def test_a_run_that_ran_out_of_patience_and_was_killed_then_ends_there_when_it_is_resumed(
    tiny: Tiny, tmp_path: Path
) -> None:
    patient = train(overfits(tiny, tmp_path, "validation.patience=1"))
    kept, steps = load_file(RunFiles(patient).weights), record(patient)["steps"]
    RunFiles(patient).weights.unlink()
    resumed = train(tiny(tmp_path, f"resume={patient}"))
    assert record(resumed)["steps"] == steps
    for name, value in load_file(RunFiles(resumed).weights).items():
        assert torch.equal(value, kept[name]), name


@pytest.mark.usefixtures("checkpoints_stay")
@pytest.mark.parametrize(
    "override",
    [
        "seed=1",
        "optimizer.steps=4",
        "optimizer.learning_rate=0.02",
        "optimizer.warmup=0.5",
        "optimizer.decay=cosine",
        "optimizer.decay=constant",
        "optimizer.decay=cooldown",
        "optimizer.weight_decay=0.5",
        "optimizer.beta2=0.5",
        "optimizer.clip=0.01",
        "task/prediction=slot",
        "task/prediction=pointer",
        "task/prediction=bilinear",
        "task.prediction.none_of_them=true",
        "task.masked_lm=0.3",
        "task.own_token=0.3",
        "task.supervision.weight=1",
        "vocabulary.min_count=20",
        "vocabulary.dropout=0.5",
        "batching.kind=buckets",
        "batching.tokens=64",
        "batching.window=8",
        "optimizer.value_curriculum.end=0.5,validation.keep=last",
        "optimizer.value_curriculum.start=0.3,optimizer.value_curriculum.end=0.5,validation.keep=last",
        "trainer.limit_steps=4",
        "trainer.limit_items=10",
    ],
)
def test_every_setting_of_training_changes_the_weights(
    tiny: Tiny, tmp_path: Path, unfinished: Path, override: str
) -> None:
    if override == "task.prediction.none_of_them=true":
        override = "task/prediction=slot,task.prediction.none_of_them=true"
        compared = train(tiny(tmp_path / "slot", "task/prediction=slot"))
    else:
        compared = unfinished
    other = train(tiny(tmp_path, *override.split(",")))
    first, second = (
        torch.load(RunFiles(one).last_checkpoint, weights_only=True)["state_dict"] for one in (compared, other)
    )
    same = first.keys() == second.keys() and all(
        first[name].shape == value.shape and torch.equal(first[name], value) for name, value in second.items()
    )
    if override.endswith("none_of_them=true"):
        # A label always has an antecedent here: the further answer shows in the loss.
        assert record(other)["validations"] != record(compared)["validations"]
    assert not same


@pytest.mark.parametrize(
    ("override", "base"),
    [
        ("task.masked_lm_weight=0.1", "task.masked_lm=0.3"),
        ("task.own_token_weight=0.1", "task.own_token=0.3"),
        ("task.supervision.layers=[0]", "task.supervision.weight=1"),
        ("task.supervision.heads=[1]", "task.supervision.weight=1"),
        ("task.supervision.weight=2", "task.supervision.weight=1"),
    ],
)
def test_every_setting_of_a_further_loss_changes_the_losses(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, override: str, base: str
) -> None:
    few = "trainer.limit_steps=3"
    before = losses_of(tiny(tmp_path / "before", base, few), monkeypatch)
    after = losses_of(tiny(tmp_path / "after", base, few, override), monkeypatch)
    assert before != after


def test_validation_every_and_items_change_what_is_validated(tiny: Tiny, tmp_path: Path, finished: Path) -> None:
    rare = record(train(tiny(tmp_path, "validation.every=4", "validation.items=3")))["validations"]
    assert [one["step"] for one in rare] == [4, 8]
    assert rare[0]["validation/loss"] != record(finished)["validations"][1]["validation/loss"]


@pytest.mark.usefixtures("checkpoints_stay")
def test_how_often_one_validates_does_not_change_what_is_learnt(tiny: Tiny, tmp_path: Path, unfinished: Path) -> None:
    rare = train(tiny(tmp_path, "validation.every=8"))
    first, second = (
        torch.load(RunFiles(one).last_checkpoint, weights_only=True)["state_dict"] for one in (unfinished, rare)
    )
    assert all(torch.equal(value, second[name]) for name, value in first.items())


def test_the_progress_bar_changes_nothing_and_speaks_the_interface_s_language(
    tiny: Tiny, tmp_path: Path, finished: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ANAPHORA_LANGUAGE", "zh")
    with_bar = train(tiny(tmp_path, "trainer.progress=true"))
    bar = capsys.readouterr().err
    assert "训练步数" in bar and "train/loss=" in bar
    assert re.findall("[A-Za-z]{2,}", re.sub(rf"(?:train|validation)/\w+|{re.escape(str(tmp_path))}\S+", "", bar)) == []
    assert RunFiles(with_bar).weights.read_bytes() == RunFiles(finished).weights.read_bytes()


def test_bf16_is_close_to_full_precision(tiny: Tiny, tmp_path: Path, finished: Path) -> None:
    half = record(train(tiny(tmp_path, "trainer.precision=bf16-mixed")))["validations"][0]
    full = record(finished)["validations"][0]
    assert half["validation/loss"] == pytest.approx(full["validation/loss"], rel=0.02)
    assert half["validation/loss"] != full["validation/loss"]


def test_a_second_run_into_the_same_directory_is_refused_and_leaves_it_untouched(tiny: Tiny, finished: Path) -> None:
    before = files(finished)
    with pytest.raises(UserError, match=r"already holds a finished run; choose another name="):
        train(tiny(finished.parent, "seed=5"))
    assert files(finished) == before


def test_a_finished_run_is_not_resumed(tiny: Tiny, finished: Path) -> None:
    before = files(finished)
    with pytest.raises(UserError, match="this run has finished; there is nothing to resume"):
        train(tiny(finished.parent, f"resume={finished}"))
    assert files(finished) == before


def test_resuming_where_no_run_is_is_reported(tiny: Tiny, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"there is no run here \(config.yaml is missing\)"):
        train(tiny(tmp_path, f"resume={tmp_path / 'nowhere'}"))
    assert not (tmp_path / "nowhere").exists()


def test_a_resumed_run_keeps_the_settings_that_it_was_begun_with(tiny: Tiny, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patched:
        stop_at(3, patched)
        with pytest.raises(KilledError):
            train(tiny(tmp_path))
    before = RunFiles(tmp_path / "run").config.read_bytes()
    changed = (
        "seed=7",
        "model.width=32",
        "trainer.limit_steps=4",
        "trainer.limit_items=1",
        "trainer.precision=bf16-mixed",
    )
    resumed = train(tiny(tmp_path, f"resume={tmp_path / 'run'}", *changed))
    assert RunFiles(tmp_path / "run").config.read_bytes() == before
    recorded = record(resumed)
    assert recorded["steps"] == load(resumed).config.steps > 4
    assert recorded["computed_with"]["precision"] == "32-true"


def test_a_held_directory_is_refused(tiny: Tiny, tmp_path: Path) -> None:
    with (
        locked_directory(tmp_path / "run"),
        pytest.raises(UserError, match="another process is writing into this run directory"),
    ):
        train(tiny(tmp_path))
    assert not RunFiles(tmp_path / "run").config.exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has the device")
def test_a_device_that_is_not_there_is_reported_before_anything_is_made(tiny: Tiny, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"trainer.device \(cuda\) is not on this machine \(it has: cpu"):
        train(tiny(tmp_path, "trainer.device=cuda"))
    assert list(tmp_path.iterdir()) == []


def without_antecedent(table: Path, folder: Path) -> Path:
    lines = [json.loads(line) for line in table.read_text(encoding="utf-8").splitlines()]
    lines[0]["antecedents"] = []
    path = folder / "some.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    return path


def test_an_item_without_antecedent_is_reported_unless_none_of_them_is_an_answer(
    tiny: Tiny, table: Path, tmp_path: Path
) -> None:
    path = without_antecedent(table, tmp_path)
    with pytest.raises(UserError, match=r"some.jsonl.: .* has no antecedent.* set task.prediction.none_of_them=true"):
        train(tiny(tmp_path, f"data.path={path}"))
    assert not RunFiles(tmp_path / "run").config.exists()
    train(tiny(tmp_path, f"data.path={path}", "task.prediction.none_of_them=true", "trainer.limit_steps=2"))


def test_a_text_longer_than_learned_positions_is_reported(tiny: Tiny, tmp_path: Path) -> None:
    learned = ("model/position=learned", "model.position.max_length=5")
    with pytest.raises(UserError, match=r"'Anna met Tom .*' has \d+ tokens, more than model.position.max_length \(5\)"):
        train(tiny(tmp_path, *learned))
    assert not RunFiles(tmp_path / "run").config.exists()


@pytest.mark.parametrize("split", ["train", "dev"])
def test_a_text_that_no_batch_holds_is_reported(split: str, tiny: Tiny, table: Path, tmp_path: Path) -> None:
    """One whole book among sentences would otherwise take hours at step 0, without a word."""
    lines = [json.loads(line) for line in table.read_text(encoding="utf-8").splitlines()]
    next(line for line in lines if line["split"] == split)["text"] += " It rained." * 100
    path = tmp_path / "more.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    with pytest.raises(UserError, match=r"has \d+ tokens, more than a batch holds: .* batching.tokens \(256\)"):
        train(tiny(tmp_path, f"data.path={path}", "batching.tokens=256"))
    assert not RunFiles(tmp_path / "run").config.exists()


@pytest.mark.parametrize("split", ["dev", "test"])
def test_what_the_model_cannot_answer_in_dev_or_test_is_reported_before_training(
    split: str, tiny: Tiny, table: Path, tmp_path: Path
) -> None:
    lines = [json.loads(line) for line in table.read_text(encoding="utf-8").splitlines()]
    last = [line for line in lines if line["split"] == split][-1]  # validation reads less than the whole split
    more = (" and Kim", " and Lee", " and Joe")
    for name in more:
        last["candidates"].append([len(last["text"]) + 5, len(last["text"]) + 8])
        last["text"] += name
    path = tmp_path / "more.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    few = ("task/prediction=slot", "task.prediction.slots=4", "validation.items=2")
    with pytest.raises(UserError, match=r" and Kim .* has 5 candidates; task.prediction.slots \(4\) must be"):
        train(tiny(tmp_path, f"data.path={path}", *few))
    learned = ("model/position=learned", "model.position.max_length=20", "validation.items=2")
    with pytest.raises(UserError, match=r" and Kim .* has \d+ tokens, more than model.position.max_length \(20\)"):
        train(tiny(tmp_path, f"data.path={path}", *learned))
    assert not RunFiles(tmp_path / "run").config.exists()


def test_a_model_without_a_prediction_head_trains_on_masked_tokens(tiny: Tiny, tmp_path: Path) -> None:
    directory = train(tiny(tmp_path, "task/prediction=none", "task.masked_lm=0.3"))
    recorded = record(directory)
    assert recorded["best_validation"] == 3
    assert "validation/loss" not in recorded["validations"][0]
    assert "attention_mass/layer_0_head_0" in recorded["validations"][0]


def test_an_unnamed_run_is_called_by_its_time() -> None:
    assert len(run.default_run_name()) == len("2000-01-01_00-00-00")


def test_the_number_of_validations_without_progress_counts_from_the_best(tiny: Tiny, tmp_path: Path) -> None:
    history = ValidationCheckpoint(RunFiles(tmp_path), tiny(tmp_path), "", Machine.present())
    history.validations = [{"validation/loss": value} for value in (3.0, 1.0, 2.0, 1.0)]
    assert (history._best(), history._since_best()) == (1, 2)


def test_a_run_directory_can_be_moved(tiny: Tiny, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patched:
        stop_at(3, patched)
        with pytest.raises(KilledError):
            train(tiny(tmp_path / "here"))
    there = Path(shutil.move(tmp_path / "here" / "run", tmp_path / "there"))
    assert train(tiny(tmp_path, f"resume={there}")) == there


def test_a_training_that_diverges_stops_there_and_keeps_the_best_weights_before(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wild = ("optimizer.learning_rate=1e12", "optimizer.clip=1e12", "validation.keep=last")
    with pytest.raises(UserError, match=r"diverged at step 1: loss nan, .*; no weights are kept"):
        train(tiny(tmp_path, *wild, "name=wild"))
    whole_step = TrainingModule.training_step

    def diverges(module: TrainingModule, batch: Batch, batch_idx: int) -> Tensor:
        loss = whole_step(module, batch, batch_idx)
        module.step_metrics["loss"] = loss.detach() * (math.inf if module.global_step == 5 else 1)
        return loss

    monkeypatch.setattr(TrainingModule, "training_step", diverges)
    with pytest.raises(
        UserError, match=r"diverged at step 5: loss inf.*; the best weights before, of step 4, are kept in"
    ):
        train(tiny(tmp_path, "name=run"))
    assert load(tmp_path / "run").config.name == "run"
    assert record(tmp_path / "run")["steps"] == 4
    with pytest.raises(UserError, match="run: its training diverged; delete the run to train it again, or name it"):
        finish_training(tiny(tmp_path, "name=run"), "name it otherwise")


def test_data_that_were_moved_are_named_beside_resume_and_checked_by_their_digest(
    tiny: Tiny, tmp_path: Path, unfinished: Path, finished: Path
) -> None:
    directory = Path(shutil.copytree(unfinished, tmp_path / "run"))
    before = read_config(RunFiles(directory).config).data
    assert isinstance(before, ExternalCorpus)
    written = RunFiles(directory).config.read_text(encoding="utf-8")
    RunFiles(directory).config.write_text(written.replace(before.path, str(tmp_path / "gone.jsonl")), encoding="utf-8")
    rows = Path(before.path).read_text(encoding="utf-8").splitlines(keepends=True)
    there, other = tmp_path / "moved" / "items.jsonl", tmp_path / "other.jsonl"
    there.parent.mkdir()
    there.write_text("".join(rows), encoding="utf-8")
    other.write_text("".join(rows[8:]), encoding="utf-8")
    with pytest.raises(UserError, match=r"gone\.jsonl"):
        train(tiny(tmp_path, f"resume={directory}"))
    with pytest.raises(UserError, match=r"other\.jsonl\) no longer gives the training items of run"):
        train(tiny(tmp_path, f"resume={directory}", f"resume_data.path={other}"))
    assert record(train(tiny(tmp_path, f"resume={directory}", f"resume_data.path={there}")))["steps"] == 8
    assert RunFiles(directory).weights.read_bytes() == RunFiles(finished).weights.read_bytes()
    resumed = RunFiles(directory).config.read_text(encoding="utf-8")
    assert resumed == written.replace(before.path, str(there)) and "resume_data" not in resumed


def test_further_files_and_evaluation_data_that_were_moved_are_checked_too(
    tiny: Tiny, tmp_path: Path, checkpoints_stay: None
) -> None:
    for name in ("first", "more", "other"):
        lines = [" ".join(f"{name}{line}x{word}" for word in range(10)) for line in range(40)]
        (tmp_path / f"{name}.txt").write_text("\n\n".join(lines), encoding="utf-8")
    shared = [{"text": " ".join(f"more{line}x{word}" for word in range(10))} for line in range(20)]
    (tmp_path / "evaluation.jsonl").write_text("\n".join(map(json.dumps, shared)), encoding="utf-8")
    (tmp_path / "nothing.jsonl").write_text(json.dumps({"text": "a b c d e f g h i"}), encoding="utf-8")
    data = [
        *("data=plain_text", "task/prediction=none", "task.masked_lm=0.15", f"data.path={tmp_path / 'first.txt'}"),
        *(f"data.also=[{tmp_path / 'more.txt'}]", f"data.without=[{tmp_path / 'evaluation.jsonl'}]"),
    ]
    directory = train(tiny(tmp_path, *data, "name=run"))
    RunFiles(directory).weights.unlink()
    (tmp_path / "moved").mkdir()
    for name in ("more.txt", "evaluation.jsonl"):
        (tmp_path / name).rename(tmp_path / "moved" / name)
    also = f"resume_data.also=[{tmp_path / 'moved' / 'more.txt'}]"
    without = f"resume_data.without=[{tmp_path / 'moved' / 'evaluation.jsonl'}]"
    for wrong in (
        (also, f"resume_data.without=[{tmp_path / 'nothing.jsonl'}]"),
        (f"resume_data.also=[{tmp_path / 'other.txt'}]", without),
    ):
        with pytest.raises(UserError, match="no longer gives the training items of run"):
            train(tiny(tmp_path, f"resume={directory}", *wrong))
    train(tiny(tmp_path, f"resume={directory}", also, without))
    moved = read_config(RunFiles(directory).config).data
    assert isinstance(moved, PlainText)
    assert (moved.also, moved.without) == (
        [str(tmp_path / "moved" / "more.txt")],
        [str(tmp_path / "moved" / "evaluation.jsonl")],
    )


def test_moved_data_need_a_run_that_reads_a_file_and_has_a_checkpoint(
    tiny: Tiny, tmp_path: Path, unfinished: Path
) -> None:
    with pytest.raises(UserError, match=r"resume_data\.path \(here\) needs resume=\.\.\.; a new run takes data\.path"):
        tiny(tmp_path, "resume_data.path=here")
    begun = Path(shutil.copytree(unfinished, tmp_path / "begun"))
    shutil.rmtree(RunFiles(begun).checkpoints)
    data = read_config(RunFiles(begun).config).data
    assert isinstance(data, ExternalCorpus)
    with pytest.raises(UserError, match="has no checkpoint yet"):
        train(tiny(tmp_path, f"resume={begun}", f"resume_data.path={data.path}"))

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from anaphora.base.errors import UserError
from anaphora.base.files import locked_directory
from anaphora.base.tensors import read_arrays, write_arrays
from anaphora.runs.directory import Run, RunFiles, load, locked_run
from anaphora.settings.run import Config
from anaphora.training.checkpoints import check_checkpoint, read_checkpoint
from anaphora.training.run import train

FILES = ("config.yaml", "tokenizer.json", "model.safetensors", "training.json")


def damages(content: bytes, bits: int) -> Iterator[bytes]:
    """Yield a file's content truncated, emptied, replaced, and with single bits changed."""
    yield from (b"", content[:1], content[: len(content) // 2], content[:-1], content + b"\0")
    yield from (b"{}", b"[]", b"null", b"\xff\xfe", b"[" * 50_000)
    draw = random.Random(len(content))
    for _ in range(bits):
        damaged = bytearray(content)
        damaged[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        yield bytes(damaged)


def equal(one: Run, other: Run) -> bool:
    states = (run.model.state_dict() for run in (one, other))
    first, second = states
    same = first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)
    return same and one.tokenizer.dumps() == other.tokenizer.dumps() and one.config == other.config


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_refused_in_one_line_or_changes_nothing(name: str, finished: Path, own_run: Path) -> None:
    before = load(finished)
    path = own_run / name
    # In the settings and in the history another number may be as good a number: nothing but a reader can tell.
    bits = 0 if name in ("config.yaml", "training.json") else 24
    refused = 0
    for damaged in damages((finished / name).read_bytes(), bits):
        path.write_bytes(damaged)
        try:
            assert equal(load(own_run), before), damaged[:80]
        except UserError as error:
            assert str(path) in str(error) and "\n" not in str(error)  # noqa: PT017
            refused += 1
    assert refused >= 9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda values: values * np.nan, "holds numbers that are not finite"),
        (lambda values: values + np.inf, "holds numbers that are not finite"),
        (lambda values: values.astype(np.int64), "holds numbers of type int64, not float32 or float16"),
        (lambda values: values.astype(np.float64), "holds numbers of type float64, not float32 or float16"),
        (lambda values: values[:-1], "the weights do not match"),
    ],
)
def test_weights_that_are_none_are_refused(
    change: Callable[[np.ndarray], np.ndarray], message: str, own_run: Path
) -> None:
    path = RunFiles(own_run).weights
    arrays, _ = read_arrays(path)
    write_arrays(path, {**arrays, "encoder.norm.weight": change(arrays["encoder.norm.weight"])})
    with pytest.raises(UserError, match=message) as error:
        load(own_run)
    assert str(error.value).startswith(f"{path}: ")


def test_a_tokenizer_that_the_weights_were_not_trained_with_is_refused(own_run: Path) -> None:
    path = RunFiles(own_run).tokenizer
    text = path.read_text(encoding="utf-8")
    assert text.count('["芳"') == 1
    path.write_text(text.replace('["芳"', '["芬"'), encoding="utf-8")
    with pytest.raises(UserError, match=r"tokenizer.json: not the tokenizer that model.safetensors was trained with"):
        load(own_run)


def test_a_damaged_checkpoint_is_refused_before_the_data_are_read_or_is_the_same(
    unfinished: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(unfinished, tmp_path / "run"))
    layout, config = RunFiles(run), load_config(run)
    before = read_checkpoint(layout.last_checkpoint)
    check_checkpoint(layout, config)
    refused = 0
    for damaged in damages(RunFiles(unfinished).last_checkpoint.read_bytes(), bits=24):
        layout.last_checkpoint.write_bytes(damaged)
        try:
            check_checkpoint(layout, config)
        except UserError as error:
            assert str(layout.last_checkpoint) in str(error) and "resume=" in str(error)  # noqa: PT017
            refused += 1
            continue
        after = read_checkpoint(layout.last_checkpoint)
        assert str(after["callbacks"]) == str(before["callbacks"])
        assert all(torch.equal(value, before["state_dict"][name]) for name, value in after["state_dict"].items())
    assert refused > 20


def load_config(run: Path) -> Config:
    from anaphora.settings.run import read_config

    return read_config(RunFiles(run).config)


class Payload:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("run by the checkpoint",)


def test_a_checkpoint_that_would_run_code_is_refused_and_runs_none(
    own_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(own_run)
    torch.save({"state_dict": {}, "callbacks": Payload(), "global_step": 1}, own_run / "last.ckpt")
    with pytest.raises(UserError, match=r"last.ckpt: broken or cut off \(Weights only load failed"):
        read_checkpoint(own_run / "last.ckpt")
    assert not Path("run by the checkpoint").exists()


@pytest.mark.parametrize("damage", ["missing", "cut", "changed"])
def test_damaged_best_weights_are_refused_before_the_training_goes_on(
    damage: str, unfinished: Path, tmp_path: Path, tiny: Callable[..., Config], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Path(shutil.copytree(unfinished, tmp_path / "run"))
    best = RunFiles(run).best_weights
    content = best.read_bytes()
    best.unlink()
    if damage != "missing":
        best.write_bytes(content[:-9] if damage == "cut" else content[:-9] + b"\1" + content[-8:])
    monkeypatch.setattr("anaphora.training.run.prepare_examples", None)
    with pytest.raises(UserError, match=r"best.safetensors.*delete .*checkpoints, and resume=.* trains from the first"):
        train(tiny(tmp_path, f"resume={run}"))


def test_a_run_whose_checkpoints_are_deleted_is_trained_again_to_the_same_weights(
    unfinished: Path, finished: Path, tmp_path: Path, tiny: Callable[..., Config]
) -> None:
    run = Path(shutil.copytree(unfinished, tmp_path / "run"))
    shutil.rmtree(RunFiles(run).checkpoints)
    train(tiny(tmp_path, f"resume={run}"))
    assert RunFiles(run).weights.read_bytes() == RunFiles(finished).weights.read_bytes()


@pytest.mark.parametrize("content", ["", "step\n", "a,b\n1,2\n", "step,a\nx,1\n", "step,a\n1,x\n", "step,a\n1,2,3\n"])
def test_damaged_curves_are_refused_or_empty(content: str, unfinished: Path, tmp_path: Path) -> None:
    from anaphora.training.loggers import curves_file, read_curves

    path = curves_file(tmp_path)
    path.parent.mkdir()
    path.write_text(content)
    if content in ("", "step\n"):
        assert read_curves(path) == []
        return
    with pytest.raises(UserError, match=r"metrics.csv: damaged .*; delete it"):
        read_curves(path)


def test_checkpoints_of_a_finished_run_are_removed_by_the_next_command_that_writes_there(
    unfinished: Path, finished: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(unfinished, tmp_path / "run"))
    with locked_run(run):
        assert RunFiles(run).last_checkpoint.exists()
    shutil.copy(RunFiles(finished).weights, RunFiles(run).weights)  # killed before its last step
    with locked_run(run):
        assert not RunFiles(run).checkpoints.exists()
    with locked_directory(run):  # it has let the run go
        pass

"""Tests of the shipped run with a substitute, so that they do not depend on the released run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import anaphora
from anaphora.analysis.evidence.storage import chosen_head
from anaphora.analysis.results.scores import Head
from anaphora.api.live.questions import first_sentence
from anaphora.base.errors import UserError
from anaphora.cli import COMMANDS
from anaphora.runs import shipped
from anaphora.runs.directory import RunFiles, load
from anaphora.runs.items import read_training_corpus
from anaphora.runs.warm_start import with_start_model
from anaphora.settings.data import OwnExamples

Script = Callable[..., tuple[int, str, str]]
SENTENCE = ("Anna met Tom before she went to the park.", "she", ["Anna", "Tom"])
QUESTION = (f"text={SENTENCE[0]}", "pronoun=she", "candidates=[Anna,Tom]")


@pytest.fixture
def inside(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Replace the shipped run by one with a chosen head in each language, in an empty working directory."""
    folder = Path(shutil.copytree(finished, tmp_path / "package" / "shipped"))
    for number, language in enumerate(("en", "zh")):
        (folder / language).mkdir()
        head = {"layer": number, "head": 1, "chosen_on": "dev"}
        (folder / language / "metrics.json").write_text(json.dumps({"head": head}))
    shipped.write_release(folder)
    monkeypatch.setattr(shipped, "FOLDER", folder)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return folder


def test_without_a_name_the_run_inside_the_package_is_opened(inside: Path, finished: Path) -> None:
    run = anaphora.load()
    assert run.answer(*SENTENCE) == anaphora.load(finished).answer(*SENTENCE)
    assert (run.name, run.run.files.directory) == ("shipped", inside)
    assert run.run.directory == Path("outputs/shipped")


def test_each_language_has_the_head_that_was_chosen_in_it(inside: Path) -> None:
    run = anaphora.load()
    assert run.attention(*SENTENCE).chosen == Head(0, 1)
    assert run.attention("王芳碰到李强以后,她去了公园。", "她", ["王芳", "李强"]).chosen == Head(1, 1)
    assert chosen_head(run.run) == Head(0, 1)


def test_what_is_measured_on_it_goes_to_outputs_and_nothing_is_written_into_the_package(
    inside: Path, table: Path, script: Script
) -> None:
    before = {path: path.read_bytes() for path in inside.rglob("*") if path.is_file()}
    data = ("data=jsonl", f"data.path={table}")
    for name, *settings in (("score", "untrained=0", *data), ("evaluate", *data), ("explain", *QUESTION)):
        status, _, err = script(name, "run=shipped", *settings)
        assert status == 0, err
    assert Path("outputs/shipped/metrics.json").exists()
    assert {path: path.read_bytes() for path in inside.rglob("*") if path.is_file()} == before


def test_scores_on_other_data_need_no_folder_of_their_own(inside: Path, table: Path, script: Script) -> None:
    other = Path(shutil.copy(table, "other.jsonl"))
    status, _, err = script("score", "run=shipped", "untrained=0", "data=jsonl", f"data.path={other}")
    assert status == 0, err
    assert Path("outputs/shipped/metrics.json").exists()
    assert anaphora.load().chosen_head == Head(0, 1)  # still the one that was released


def test_nobody_is_sent_to_the_folder_where_it_was_trained(tmp_path: Path) -> None:
    data = OwnExamples(path="nowhere.jsonl")
    with pytest.raises(UserError, match="of run shipped does not come with the package; measure the run alone"):
        read_training_corpus(shipped.FOLDER, data)
    with pytest.raises(UserError, match="is not there; work in the folder where it was trained, or measure"):
        read_training_corpus(tmp_path, data)


def test_a_run_may_start_from_it(
    inside: Path, table: Path, settings: Callable[..., Any], tiny_settings: tuple[str, ...]
) -> None:
    untouched = [name for name in tiny_settings if not name.startswith("model")]
    config = settings("start=shipped", "data=jsonl", f"data.path={table}", "name=own", "output=own", *untouched)
    COMMANDS["train"].run(with_start_model(config))
    assert load("own/own").config.model == anaphora.load().run.config.model


def test_weights_of_16_bits_compute_in_32(inside: Path, own_run: Path) -> None:
    from anaphora.base.tensors import read_arrays, write_arrays

    path = RunFiles(own_run).weights
    arrays, files = read_arrays(path)
    halves = {name: values.astype(np.float16) for name, values in arrays.items()}
    write_arrays(path, halves, files)
    model = load(own_run).model
    assert {tensor.dtype for tensor in model.state_dict().values()} == {torch.float32}
    for name, values in halves.items():
        np.testing.assert_array_equal(model.state_dict()[name].numpy(), values.astype(np.float32))


@pytest.mark.parametrize(
    "name", ["config.yaml", "tokenizer.json", "model.safetensors", "training.json", "zh/metrics.json", "release.json"]
)
@pytest.mark.parametrize("damage", ["missing", "cut off", "emptied", "one bit", "longer"])
def test_a_damaged_file_of_it_gets_one_line_that_says_what_to_do(
    inside: Path, name: str, damage: str, script: Script
) -> None:
    path = inside / name
    content = path.read_bytes()
    path.unlink()
    changed = {
        "cut off": content[: len(content) // 2],
        "emptied": b"",
        "one bit": bytes([content[0] ^ 1]) + content[1:],
        "longer": content + b" ",
    }
    if damage != "missing":
        path.write_bytes(changed[damage])
    if (name, damage) == ("release.json", "longer"):
        return  # a space at the end changes nothing that is read
    with pytest.raises(UserError, match="install the package again") as error:
        anaphora.load()
    assert str(path) in str(error.value) and "\n" not in str(error.value)
    status, _, err = script("explain", "run=shipped", *QUESTION)
    assert status == 2 and err.count("\n") == 1 and "install the package again" in err


def test_look_prints_sentence_row_and_answer_without_a_display_and_opens_the_page_where_there_is_one(
    inside: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("werkzeug.serving.BaseWSGIServer.serve_forever", lambda self: None)
    for has_display in (False, True):
        monkeypatch.setattr("anaphora.commands.look.has_display", lambda answer=has_display: answer)
        status, out, err = script("look", "port=0")
        assert status == 0, err
        assert ("What “she” attends to" in out) != has_display and ("Anna was rescued" in out) != has_display
        assert len(opened) == has_display and "http://127.0.0.1" in out
    status, out, err = script("look", *QUESTION, "interface_language=zh")
    assert status == 0, err
    assert SENTENCE[0] in out and "127.0.0.1" not in out and "“she”" in out and "关注" in out


def test_look_says_how_to_choose_a_head_with_settings_that_exist(own_run: Path, script: Script) -> None:
    (own_run / "metrics.json").unlink(missing_ok=True)
    status, _, err = script("look", f"run={own_run}", *QUESTION)
    assert status == 2 and err.count("\n") == 1
    assert f"anaphora score run={own_run}" in err and "head=... in anaphora explain" in err


def test_an_installation_without_it_says_so_and_never_opens_another_run(
    own_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: Script
) -> None:
    monkeypatch.setattr(shipped, "FOLDER", tmp_path / "nowhere")
    shutil.copytree(own_run, tmp_path / "work" / "shipped")
    shutil.copytree(own_run, tmp_path / "work" / "outputs" / "shipped")
    monkeypatch.chdir(tmp_path / "work")
    named = ("run=shipped",)
    commands = (("explain", *named, *QUESTION), ("score", *named), ("look",), ("attention", *named, *QUESTION))
    for name, *settings in commands:
        status, _, err = script(name, *settings)
        assert status == 2 and err.count("\n") == 1, (name, err)
    with pytest.raises(UserError, match="there is no run inside the package"):
        anaphora.load()
    assert anaphora.load("./shipped").run.files.directory == Path("shipped")


@pytest.mark.parametrize("named", ["outputs/nowhere", "shipped/", "Shipped", "outputs/shipped"])
@pytest.mark.usefixtures("inside")
def test_a_run_that_is_not_there_never_becomes_the_one_inside_the_package(named: str, script: Script) -> None:
    for name, *settings in (("explain", *QUESTION), ("score",), ("look",), ("attention", *QUESTION)):
        status, _, err = script(name, f"run={named}", *settings)
        assert status == 2 and err.startswith("error: ") and err.count("\n") == 1, (name, err)
    with pytest.raises(UserError):
        anaphora.load(named)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_released_run_answers_its_first_sentence_or_is_said_to_be_missing(language: str) -> None:
    if not (shipped.FOLDER / shipped.RELEASE).exists():
        with pytest.raises(UserError, match="there is no run inside the package"):
            anaphora.load()
        return
    run = anaphora.load()
    text, pronoun, candidates = first_sentence(run, language)
    assert run.answer(text, pronoun, candidates) == candidates[0]
    assert run.head_for(text) is not None
    assert (shipped.FOLDER / "model.safetensors").stat().st_size <= 16_000_000
    assert {"README.md", "scores.json", "model.safetensors"} <= shipped.read_release().files.keys()

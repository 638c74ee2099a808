from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file

from anaphora.base.errors import UserError
from anaphora.cli import COMMANDS
from anaphora.data.batches.batching import evaluation_batches
from anaphora.data.store import load as load_corpus
from anaphora.runs.directory import RunFiles, load, randomly_initialised, save_settings, save_weights, training_record
from anaphora.runs.items import encode
from anaphora.runs.presence import run_directories
from anaphora.settings.run import Config, config_yaml, read_config

ROOT = Path(__file__).parents[2]
Script = Callable[..., tuple[int, str, str]]


def edit(run: Path, **changes: object) -> None:
    path = RunFiles(run).config
    content = yaml.safe_load(path.read_text())
    for name, value in changes.items():
        *folders, last = name.split("__")
        place = content
        for folder in folders:
            place = place[folder]
        place[last] = value
    path.write_text(yaml.safe_dump(content))


def refused(run: Path, match: str) -> None:
    with pytest.raises(UserError, match=match) as error:
        load(run)
    assert "\n" not in str(error.value)
    assert str(run) in str(error.value)


@pytest.mark.parametrize(
    "overrides", [(), ("model.tied_output=true",), ("task/prediction=slot", "model/position=learned")]
)
def test_what_is_stored_and_read_back_gives_equal_answers(
    finished: Path, tmp_path: Path, tiny: Callable[..., Config], overrides: tuple[str, ...]
) -> None:
    config = tiny(tmp_path, *overrides)
    tokenizer = load(finished).tokenizer
    model = randomly_initialised(config, tokenizer.size, seed=7)
    save_settings(RunFiles(tmp_path), config, tokenizer)
    save_weights(RunFiles(tmp_path).weights, model)
    back = load(tmp_path)
    assert back.config == config
    assert not back.model.training
    examples = load_corpus(config.data).examples("test")
    slots = 8 if "task/prediction=slot" in overrides else 0
    for batch in evaluation_batches(encode(back, examples), config.batching, slots):
        first, second = (one.prediction_head.scores(one(batch), batch) for one in (model, back.model))
        assert torch.equal(first, second)


def test_the_run_in_the_working_folder_has_its_name(own_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(own_run)
    assert load(".").name == own_run.name


def test_a_tied_matrix_is_stored_once(finished: Path, tmp_path: Path, tiny: Callable[..., Config]) -> None:
    model = randomly_initialised(tiny(tmp_path, "model.tied_output=true"), 20, seed=0)
    save_weights(tmp_path / "w.safetensors", model)
    names = load_file(tmp_path / "w.safetensors").keys()
    assert "encoder.tokens.weight" in names and "output.linear.weight" not in names


def test_the_start_of_a_model_depends_on_its_seed_and_disturbs_no_generator(
    tmp_path: Path, tiny: Callable[..., Config]
) -> None:
    config = tiny(tmp_path)
    torch.manual_seed(3)
    before = torch.get_rng_state()
    first, again, other = (randomly_initialised(config, 20, seed).state_dict() for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first["encoder.tokens.weight"], again["encoder.tokens.weight"])
    assert not torch.equal(first["encoder.tokens.weight"], other["encoder.tokens.weight"])


def test_a_missing_run_is_reported(tmp_path: Path) -> None:
    refused(tmp_path / "nowhere", r"there is no run here \(config.yaml is missing\)")


def test_an_unfinished_run_is_reported(own_run: Path) -> None:
    RunFiles(own_run).weights.unlink()
    refused(own_run, "training has not finished")


@pytest.mark.parametrize("length", [0, 5, 200, -10])
def test_truncated_weights_are_reported(own_run: Path, length: int) -> None:
    path = RunFiles(own_run).weights
    path.write_bytes(path.read_bytes()[:length])
    refused(own_run, r"model.safetensors: broken or cut off")


@pytest.mark.parametrize("damage", ["missing", "further", "shape"])
def test_weights_that_do_not_fit_are_reported(own_run: Path, damage: str) -> None:
    tensors = load_file(RunFiles(own_run).weights)
    if damage == "missing":
        del tensors["encoder.norm.weight"]
    elif damage == "further":
        tensors["encoder.more"] = torch.zeros(1)
    else:
        tensors["encoder.norm.weight"] = torch.zeros(3)
    save_file(tensors, RunFiles(own_run).weights)
    refused(own_run, "the weights do not match")


def test_weights_of_another_width_are_reported(own_run: Path) -> None:
    edit(own_run, model__width=32)
    refused(own_run, "the weights do not match")


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"_target_": "os.system"}, "unknown setting _target_"),
        ({"model___target_": "os.system"}, "unknown setting model._target_"),
        ({"model__wdth": 3}, r"unknown setting model.wdth; did you mean model.width\?"),
        ({"model__width": "wide"}, r"model.width \('wide'\) must be of type int"),
        ({"model__width": None}, r"model.width \(None\) must be of type int"),
        ({"model": 3}, r"model \(3\) must be a group of settings"),
        ({"model__position__kind": "magic"}, r"model.position.kind \('magic'\) must be one of none, sinusoidal"),
        ({"model__position__kind": ["rotary"]}, r"model.position.kind \(\['rotary'\]\) must be one of"),
        ({"model__layers": 0}, r"model.layers \(0\) must be at least 1"),
        ({"seed": "${oc.env:HOME}"}, "seed"),
        ({"seed": "${nothing}"}, "nothing"),
    ],
)
def test_a_config_with_a_wrong_setting_is_reported(own_run: Path, changes: dict[str, object], match: str) -> None:
    for name, value in changes.items():
        if name == "model___target_":
            content = yaml.safe_load(RunFiles(own_run).config.read_text())
            content["model"]["_target_"] = value
            RunFiles(own_run).config.write_text(yaml.safe_dump(content))
        elif name == "_target_":
            content = yaml.safe_load(RunFiles(own_run).config.read_text())
            content["_target_"] = value
            RunFiles(own_run).config.write_text(yaml.safe_dump(content))
        else:
            edit(own_run, **{name: value})
    refused(own_run, match)


@pytest.mark.parametrize("content", ["", "[1, 2]", "a: [", "!!python/object/apply:os.system ['true']", "\x00"])
def test_a_config_that_is_no_config_is_reported(own_run: Path, content: str) -> None:
    RunFiles(own_run).config.write_text(content)
    refused(own_run, "config.yaml")


def test_a_broken_tokenizer_is_reported(own_run: Path) -> None:
    RunFiles(own_run).tokenizer.write_text("{")
    refused(own_run, "not a readable tokenizer")


def test_settings_survive_being_written(finished: Path, tmp_path: Path) -> None:
    config = read_config(RunFiles(finished).config)
    (tmp_path / "again.yaml").write_text(config_yaml(config))
    assert read_config(tmp_path / "again.yaml") == config


def test_only_the_checkpoint_to_resume_from_is_no_plain_file_and_it_holds_primitives_alone(unfinished: Path) -> None:
    plain = (".yaml", ".json", ".safetensors", ".html")
    others = [
        path
        for path in unfinished.rglob("*")
        if path.is_file() and path.suffix not in plain and "tfevents" not in path.name
    ]
    assert others == [RunFiles(unfinished).last_checkpoint]
    content = torch.load(RunFiles(unfinished).last_checkpoint, weights_only=True)
    assert content["global_step"] == 8


def test_a_run_is_read_from_wherever_it_lies(finished: Path, tmp_path: Path) -> None:
    there = Path(shutil.copytree(finished, tmp_path / "她 run"))
    assert load(there).name == "她 run"
    assert training_record(there)["steps"] == 8
    assert training_record(tmp_path) == {}


def test_a_pattern_names_the_directories_that_it_matches_sorted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("b_1", "b_0", "b_10", "b_[0]", "a/run", "c/run"):
        Path(name).mkdir(parents=True)
    Path("b_2").touch()
    assert run_directories(["b_?"]) == ["b_0", "b_1"]
    assert run_directories(["c/run", "b_*", "a/r*"]) == ["c/run", "b_0", "b_1", "b_10", "b_[0]", "a/run"]
    assert run_directories(["?/run"]) == ["a/run", "c/run"]
    assert run_directories(["b_[*"]) == ["b_[0]"]
    assert run_directories(["nowhere"]) == ["nowhere"]
    assert run_directories([]) == []


OF_RUNS = {
    "look": (),
    "cross_validate": (),
    "gap": ("data.path=gap",),
    "report": (),
    "evaluate": ("data=jsonl", "data.path=items.jsonl"),
}
"""Scripts that take several runs, with their further arguments."""


def test_no_other_script_takes_several_runs() -> None:
    asking = {name for name, each in COMMANDS.items() if "runs" in each.schema.__dataclass_fields__}
    assert asking == set(OF_RUNS)


@pytest.mark.parametrize("name", OF_RUNS)
def test_every_script_of_several_runs_reads_patterns_and_refuses_a_run_that_is_there_twice(
    name: str, own_run: Path, script: Script
) -> None:
    status, _, err = script(name, f"runs=[{own_run.parent}/none_*]", *OF_RUNS[name])
    assert (status, err) == (2, f"error: runs ({own_run.parent}/none_*) matches no directory\n")
    status, _, err = script(name, f"runs=[{own_run},{own_run.parent}/o?n]", *OF_RUNS[name])
    assert status == 2 and f"must name each run once; {own_run} is listed twice" in err
    assert err.count("\n") == 1


def test_a_stored_run_reads_nothing_of_this_machine(own_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "hunter2")
    edit(own_run, name="${oc.env:SECRET}")
    with pytest.raises(UserError, match=r"name \('\$\{oc.env:SECRET\}'\) refers to another setting") as caught:
        load(own_run)
    assert "hunter2" not in str(caught.value)

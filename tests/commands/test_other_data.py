"""Tests that results on other data, or with other settings, never overwrite those on the run's own data."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from anaphora.data.store import load as load_corpus
from anaphora.runs.directory import WRITTEN, RunFiles, load
from anaphora.settings.run import Config
from anaphora.training.run import train

pytestmark = pytest.mark.usefixtures("undrawn")

Script = Callable[..., tuple[int, str, str]]
COMMANDS = {
    "attention": ("figures", (), "/x.svg"),
    "evaluate": ("evaluation", (), ""),
    "extract": ("attention", (), ""),
    "score": ("tables", ("untrained=0",), ""),
}
"""Commands that take other data, with the folder of results on a run's own data, further arguments, and the
output file."""


@pytest.mark.parametrize("name", COMMANDS)
def test_other_data_do_not_replace_what_was_measured_on_the_runs_own(
    name: str, own_run: Path, other: Path, tmp_path: Path, script: Script
) -> None:
    folder, more, file = COMMANDS[name]
    before = {path: path.read_bytes() for path in own_run.rglob("*") if path.is_file()}
    asked = (name, f"run={own_run}", "data=jsonl", f"data.path={other}", *more)
    status, _, err = script(*asked)
    assert (status, err.count("\n")) == (2, 1)
    assert f"output: it is missing; files on {other} need a folder of their own beside those on the run's data" in err
    example = "outputs/other/attention.png" if name == "attention" else "outputs/other"
    assert err.endswith(f"e.g. output={example}\n")
    for place in (own_run, own_run / folder, own_run / folder / "inner", own_run / ".." / own_run.name):
        status, _, err = script(*asked, f"output={place}{file}")
        assert (status, err.count("\n")) == (2, 1) and f"output ({place}{file}) holds the run's own files" in err
    assert {path: path.read_bytes() for path in own_run.rglob("*") if path.is_file()} == before
    assert script(*asked, f"output={own_run / 'other'}{file}")[0] == 0  # none of its own folders
    assert {path: path.read_bytes() for path in before} == before


def test_other_data_do_not_replace_the_scores_of_a_run_trained_on_masked_tokens(
    tmp_path: Path, table: Path, other: Path, tiny: Callable[..., Config], script: Script
) -> None:
    masked = ("task/prediction=none", "task.masked_lm=0.3", "data=jsonl", f"data.path={table}")
    run = train(tiny(tmp_path, *masked))
    status, _, err = script("evaluate", f"run={run}", "data=jsonl", f"data.path={other}")
    assert status == 2 and "output: it is missing" in err


def test_the_runs_own_data_may_be_named(own_run: Path, table: Path, script: Script) -> None:
    status, _, err = script("evaluate", f"run={own_run}", "data=jsonl", f"data.path={table}")
    assert status == 0, err
    assert (own_run / "evaluation" / "test_answers.json").exists()


@pytest.mark.parametrize("name", ["antecedents", "evaluate", "score"])
def test_items_of_other_data_on_which_the_run_was_trained_are_counted(
    name: str, own_run: Path, table: Path, tmp_path: Path, script: Script
) -> None:
    """With another seed, the same rows are divided otherwise."""
    run = load(own_run)
    divided = [load_corpus(replace(run.config.data, seed=seed)) for seed in (run.config.data.seed, 1)]
    trained, measured = divided[0].examples("train"), divided[1].examples("test")
    shared = sum(example.question in {one.question for one in trained} for example in measured)
    more = () if name == "evaluate" else ("untrained=0",)
    other = ("data=jsonl", f"data.path={table}", "data.seed=1", f"output={tmp_path / 'other'}")
    status, out, err = script(name, f"run={own_run}", *other, *more)
    assert status == 0, err
    counted = f"seen in training: of {len(measured)} items of test, {shared} are training items of {own_run.name}"
    assert shared and counted in " ".join(out.split())


def test_texts_with_labels_do_not_replace_the_answers_to_the_runs_own(
    labelled: Path, tmp_path: Path, script: Script
) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text(
        "".join(json.dumps({"text": f"It went {number}", "label": "ab"[number % 2]}) + "\n" for number in range(40))
    )
    asked = ("evaluate", f"run={labelled}", "data=labelled_text", f"data.path={other}")
    status, _, err = script(*asked)
    assert status == 2 and "output: it is missing" in err
    assert script(*asked, f"output={tmp_path / 'answers'}")[0] == 0


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("attention", ("split=dev", "items=6", "layer=0", "head=1")),
        ("evaluate", ("items=6",)),
        ("evaluate", ("layer=0", "head=1")),
    ],
)
def test_other_settings_replace_no_results(
    name: str, other: tuple[str, ...], own_run: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anaphora.commands.attention.FIGURE_FORMATS", ["png"])
    assert script(name, f"run={own_run}")[0] == 0
    before = {path: path.read_bytes() for path in own_run.rglob("*") if path.is_file() and path.name != WRITTEN}
    status, _, err = script(name, f"run={own_run}", *other)
    assert status == 0, err
    assert {path: path.read_bytes() for path in before} == before
    assert len([path for path in own_run.rglob("*") if path.is_file()]) > len(before)


def test_the_table_of_templates_is_about_the_chosen_head_or_about_none(own_run: Path, script: Script) -> None:
    def templates(name: str, *more: str) -> list[dict[str, str]]:
        status, _, err = script("evaluate", f"run={own_run}", *more)
        assert status == 0, err
        with (own_run / "evaluation" / f"{name}_templates.csv").open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    of_none = templates("test")
    assert list(of_none[0]) == ["language", "stratum", "template", "items", "task_accuracy"]
    named = {layer: templates(f"test_layer_{layer}_head_0", f"layer={layer}", "head=0") for layer in (0, 1)}
    assert named[0] != named[1]
    RunFiles(own_run).metrics.write_text('{"head": {"layer": 1, "head": 0}}')
    assert templates("test") == named[1]


@pytest.mark.parametrize("command", ["score", "evaluate"])
def test_long_work_on_long_texts_is_announced(
    command: str, finished: Path, table: Path, tmp_path: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [json.loads(line) for line in table.read_text(encoding="utf-8").splitlines()]
    next(line for line in lines if line["split"] == "test")["text"] += " It rained." * 1000
    path = tmp_path / "long.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    monkeypatch.setattr("anaphora.commands.parts.shared._LONG_WAIT", 0)
    for data, expected in ((table, False), (path, True)):
        given = (f"run={finished}", "data=jsonl", f"data.path={data}", f"output={tmp_path / data.stem}")
        status, out, err = script(command, *given, *(["untrained=0"] if command == "score" else []))
        assert status == 0, err
        assert ("Long texts: 1, up to " in out) == expected

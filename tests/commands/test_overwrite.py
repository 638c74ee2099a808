"""Tests of the rule that a command replaces nothing but its own result with the same settings, unless it is told to."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from anaphora.base.errors import UserError
from anaphora.commands.parts.settings import RunItems
from anaphora.runs.directory import WRITTEN, claimed, load, save_weights
from anaphora.runs.items import weights_digest

pytestmark = pytest.mark.usefixtures("undrawn")

Script = Callable[..., tuple[int, str, str]]
SENTENCE = ("text=Anna met Tom before she left.", "pronoun=she", "candidates=[Anna,Tom]")
FOLDERS: dict[str, tuple[tuple[str, ...], tuple[str, ...], str]] = {
    "antecedents": (("untrained=0", "formats=[]"), ("split=train",), "antecedents.json"),
    "corpus": ((), ("data.test_share=0.5",), "README.md"),
    "evaluate": ((), (), "test_answers.json"),
    "extract": ((), ("items=4",), "test.parquet"),
    "report": (("untrained=0", "items=4", "sentences=1", "formats=[]"), (), "report.html"),
    "score": (("untrained=0",), ("items=6",), "metrics.json"),
}
"""Commands that write to a folder: settings, other settings with which the same files are written, and one file."""
FILES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "attention": (SENTENCE, ("page.html",)),
    "attention of a head": ((*SENTENCE, "layer=0", "head=0"), ("head.png", "head_heat_map.png")),
    "attention as a table": (SENTENCE, ("rows.parquet",)),
    "evaluate": (("runs=[{run}]", "data=jsonl", "data.path={other}"), ("answers.csv",)),
    "explain": (("example=by_hand", "form=json"), ("walk.json",)),
    "export": (("format=page",), ("try.html",)),
    "report": (("runs=[{run},{second}]",), ("seeds.csv",)),
}
"""Commands that write a file, with settings, the file that `output` names, and the first file that is written."""


def other_run(run: Path, folder: Path) -> Path:
    """Copy a run to a folder, and change the weights of the copy."""
    shutil.copytree(run, folder)
    changed = load(folder)
    with torch.no_grad():
        next(changed.model.parameters()).add_(0.01 * len(folder.name))  # names differ in length
    save_weights(changed.files.weights, changed.model, changed.files.tokenizer)
    return folder


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_keeps_results_of_other_runs_and_settings_and_the_files_of_others(
    name: str, own_run: Path, other: Path, tmp_path: Path, script: Script
) -> None:
    settings, changed, file = FOLDERS[name]
    second = other_run(own_run, tmp_path / "second")
    of_run = ("data=jsonl", f"data.path={other}") if name == "corpus" else (f"run={own_run}",)
    (tmp_path / "fewer.jsonl").write_text("".join(other.read_text().splitlines(keepends=True)[:-1]))
    of_other = ("data=jsonl", f"data.path={tmp_path / 'fewer.jsonl'}")
    differently = [(*of_run, *changed)] if changed else []
    differently.append(of_other if name == "corpus" else (f"run={second}",))
    output = tmp_path / "out"
    command = (name, f"output={output}", *settings)
    assert script(*command, *of_run)[0] == 0
    before = contents(output)
    assert script(*command, *of_run)[0] == 0  # the same again
    for arguments in differently:
        status, _, err = script(*command, *arguments)
        assert (status, err.count("\n")) == (2, 1), err
        assert f"{output / file} holds the results with " in err and "set overwrite=true" in err
    assert {path: path.read_bytes() for path in before} == contents(output)
    status, _, err = script(*command, *differently[0], "overwrite=true")
    assert status == 0, err
    shutil.rmtree(output)
    output.mkdir()
    (output / file).write_text("mine")
    status, _, err = script(*command, *of_run)
    assert (status, err.count("\n")) == (2, 1) and f"{output / file} exists, and " in err
    assert contents(output) == {output / file: b"mine"}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_exists_is_not_replaced_unless_that_is_wanted(
    name: str, own_run: Path, other: Path, tmp_path: Path, script: Script
) -> None:
    settings, (output, *written) = FILES[name]
    second = shutil.copytree(own_run, tmp_path / "second")
    if name == "report":
        for run in (own_run, second):
            assert script("score", f"run={run}", "untrained=0")[0] == 0
    of_run = () if {"evaluate", "explain", "report"} & {name} else (f"run={own_run}",)
    command = (name.split()[0], f"output={tmp_path / output}", *of_run)
    command += tuple(word.format(run=own_run, second=second, other=other) for word in settings)
    path = tmp_path / (written[0] if written else output)
    path.write_text("mine")
    (tmp_path / "head_2_heat_map.png").write_text("mine")  # of no figure that is drawn
    status, _, err = script(*command)
    assert (status, err.count("\n")) == (2, 1)
    assert err == f"error: {path} exists; name another file, or set overwrite=true to replace it\n"
    assert path.read_text() == "mine"
    status, _, err = script(*command, "overwrite=true")
    assert status == 0, err
    assert path.read_bytes() != b"mine" and (tmp_path / "head_2_heat_map.png").read_text() == "mine"


@pytest.mark.parametrize("again", [("untrained=0", "items=6"), ("layer=0", "head=1", "untrained=0")])
def test_scores_with_other_settings_do_not_replace_those_in_a_run(
    again: tuple[str, ...], own_run: Path, script: Script
) -> None:
    assert script("score", f"run={own_run}", "untrained=0")[0] == 0
    before = contents(own_run)
    status, _, err = script("score", f"run={own_run}", *again)
    assert (status, err.count("\n")) == (2, 1) and f"{own_run / 'metrics.json'} holds the results with " in err
    assert contents(own_run) == before
    # The heads on the development split are those of all items, for each split.
    status, _, err = script("score", f"run={own_run}", "untrained=0", "split=train", "items=6")
    assert status == 2 and "heads_dev.csv holds the results with items=null" in err
    assert script("score", f"run={own_run}", "untrained=0", "split=train")[0] == 0
    assert {path: path.read_bytes() for path in before if path.name != WRITTEN}.items() <= contents(own_run).items()
    assert script("score", f"run={own_run}", *again, "overwrite=true")[0] == 0


def test_untrained_models_are_added_to_scores_without_any(own_run: Path, script: Script) -> None:
    def scored(untrained: int) -> tuple[int, str]:
        status, _, err = script("score", f"run={own_run}", f"untrained={untrained}")
        return status, err

    assert scored(0) == (0, "")  # as the scores of a study
    assert scored(1) == (0, "")
    for other in (0, 2):
        status, err = scored(other)
        assert status == 2 and "metrics.json holds the results with untrained=1, which would be overwritten by" in err


def test_a_report_replaces_neither_scores_nor_evidence_nor_figures_with_other_settings(
    own_run: Path, script: Script
) -> None:
    small = ("report", f"run={own_run}", "untrained=0", "sentences=1", "formats=[png]")
    assert script("score", f"run={own_run}", "untrained=1")[0] == 0
    status, _, err = script(*small, "items=4")
    assert status == 2 and "metrics.json holds the results with untrained=1, which" in err
    assert err.endswith("; set overwrite=true\n")  # its numbers go to the run whatever the output
    assert script(*small, "items=4", "overwrite=true")[0] == 0
    before = contents(own_run)
    status, _, err = script(*small, "items=6")
    assert status == 2 and "verdict_test.csv holds the results with items=4, which" in err
    status, _, err = script("score", f"run={own_run}", "untrained=0", "items=6")
    assert status == 2 and contents(own_run) == before
    for more in ("report", "split=dev"), ("attention",):
        status, _, err = script(more[0], f"run={own_run}", *(small[2:] if more[1:] else ()), "items=4", *more[1:])
        assert status == 0, err
    after = contents(own_run)
    assert {path for path in before if before[path] != after[path]} <= {own_run / WRITTEN}
    assert (own_run / "figures" / "report_dev_scoreboard.png").exists()


def test_a_second_calibration_on_other_items_is_refused(own_run: Path, script: Script) -> None:
    assert script("evaluate", f"run={own_run}", "calibrate=dev")[0] == 0
    before = (own_run / "calibration.json").read_bytes()
    status, _, err = script("evaluate", f"run={own_run}", "calibrate=train")
    assert status == 2 and "calibration.json holds the results with calibrate=dev, which" in err
    assert (own_run / "calibration.json").read_bytes() == before
    assert script("evaluate", f"run={own_run}", "calibrate=train", f"output={own_run}", "overwrite=true")[0] == 0


def test_a_page_of_other_runs_is_not_replaced(own_run: Path, tmp_path: Path, script: Script) -> None:
    second = other_run(own_run, own_run.parent / "second")
    small = ("report", "untrained=0", "items=4", "sentences=1", "formats=[]")
    assert script(*small, f"runs=[{own_run},{second}]")[0] == 0
    status, _, err = script(*small, f"runs=[{own_run}]", f"output={own_run.parent / 'report'}")
    assert status == 2 and f"{own_run.parent / 'report' / 'report.html'} holds the results with runs=" in err
    atlas = ("data=jsonl", f"data.path={tmp_path / 'none.jsonl'}", f"output={own_run.parent / 'report'}")
    (own_run.parent / "report" / "atlas.html").write_text("mine")
    shutil.copy(own_run.parent / "report" / "report.html", tmp_path / "none.jsonl")
    status, _, err = script("report", f"run={own_run}", *atlas)
    assert status == 2 and "atlas.html exists, and " in err


def test_what_fails_before_it_writes_leaves_the_record_as_it_was(tmp_path: Path) -> None:
    settings: Any = RunItems(output=str(tmp_path), overwrite=True)
    with claimed(tmp_path, {"a.json": {"split": "test"}}, settings):
        (tmp_path / "a.json").write_text("{}")
    record = (tmp_path / WRITTEN).read_bytes()

    def fail(*written: str) -> None:
        with claimed(tmp_path, {"a.json": {"split": "dev"}, "b.json": {}}, settings):
            for name in written:
                (tmp_path / name).write_text("{}")
            raise UserError("no items")

    with pytest.raises(UserError, match="no items"):
        fail()
    assert (tmp_path / WRITTEN).read_bytes() == record
    with pytest.raises(UserError, match="no items"):
        fail("b.json")
    assert json.loads((tmp_path / WRITTEN).read_text()) == {"a.json": {"split": "test"}, "b.json": {}}


def test_the_record_does_not_depend_on_which_result_was_written_first(tmp_path: Path) -> None:
    settings, texts = RunItems(output=str(tmp_path)), []
    for names in ("ab", "ba"):
        for name in names:
            with claimed(tmp_path, {name: {"split": "test"}}, settings):
                (tmp_path / name).touch()
        texts.append((tmp_path / WRITTEN).read_text())
        for name in ("a", "b", WRITTEN):
            (tmp_path / name).unlink()
    assert texts[0] == texts[1]


def test_a_file_that_another_process_has_written_meanwhile_is_kept(
    own_run: Path, tmp_path: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    from anaphora.api import models

    path, read = tmp_path / "page.html", models.attention

    def slow(*arguments: Any, **more: Any) -> Any:
        path.write_text("theirs")
        return read(*arguments, **more)

    monkeypatch.setattr(models, "attention", slow)
    status, _, err = script("attention", f"run={own_run}", *SENTENCE, f"output={path}")
    assert status == 2 and f"{path} exists; name another file" in err and path.read_text() == "theirs"


def test_commands_on_one_run_follow_one_another_in_any_order_without_being_told_to_replace(
    own_run: Path, script: Script
) -> None:
    of_run, untrained = f"run={own_run}", "untrained=0"
    small = ("report", of_run, untrained, "items=4", "sentences=1", "formats=[png]")
    commands = (
        ("evaluate", of_run),
        ("score", of_run, untrained),
        small,
        ("extract", of_run),
        ("evaluate", of_run, "calibrate=dev"),
        (*small, "interface_language=zh"),
        ("attention", of_run),
        (*small[:4], "sentences=2", "formats=[svg]", "interface_language=both"),
    )
    for command in (*commands, *reversed(commands)):
        status, _, err = script(*command)
        assert status == 0, err


def test_the_way_out_of_a_damaged_file_can_be_typed(own_run: Path, script: Script) -> None:
    assert script("score", f"run={own_run}", "untrained=0", "items=4")[0] == 0
    (own_run / "metrics.json").write_text("{")
    err = script("explain", f"run={own_run}", "text=Anna met Tom before she left.")[2]
    assert script(*err.split(" with anaphora ")[1].split())[0] == 0
    assert script("evaluate", f"run={own_run}", "calibrate=train")[0] == 0
    path = own_run / "calibration.json"
    path.write_text("{")
    err = script("evaluate", f"run={own_run}")[2]
    assert f"delete it; anaphora evaluate run={own_run} calibrate=dev writes it again" in err
    path.unlink()
    assert script("evaluate", f"run={own_run}", "calibrate=dev")[0] == 0 and path.exists()


def test_a_page_of_several_runs_can_lie_in_one_of_them(own_run: Path, tmp_path: Path, script: Script) -> None:
    second = shutil.copytree(own_run, tmp_path / "second")
    small = ("report", "untrained=0", "items=4", "sentences=1", "formats=[]", f"output={own_run / 'both'}")
    status, _, err = script(*small, f"runs=[{own_run},{second}]")
    assert status == 0, err
    status, _, err = script(*small, f"run={second}")
    digest = weights_digest(load(second))
    assert status == 2 and f'holds the results with runs=["own ({digest})", "second ({digest})"], which' in err
    assert f'by those with runs=["second ({digest})"]; ' in err


def test_runs_and_data_are_the_same_after_they_were_moved(
    own_run: Path, other: Path, tmp_path: Path, script: Script
) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    for name in ("run", "second"):
        shutil.copytree(own_run, before / name) if name == "run" else other_run(own_run, before / name)
    shutil.copy(other, before / "items.jsonl")

    def write(folder: Path, run: str, items: str) -> None:
        data = ("data=jsonl", f"data.path={folder / items}")
        of_run = (f"run={folder / run}", f"output={folder / 'out'}")
        for command in (
            ("evaluate", *of_run, *data),
            ("score", *of_run, *data, "untrained=0"),
            ("score", f"run={folder / run}", f"output={folder / 'scores'}", "untrained=0"),
            ("corpus", *data, f"output={folder / 'corpus'}"),
            (
                "report",
                f"runs=[{folder / run},{folder / 'second'}]",
                "untrained=0",
                "items=4",
                "sentences=1",
                "formats=[]",
            ),
            ("report", of_run[0], f"output={folder / 'atlas'}", *data, "untrained=0", "causal_items=0"),
        ):
            status, _, err = script(*command)
            assert status == 0, err

    write(before, "run", "items.jsonl")
    before.rename(after)
    (after / "run").rename(after / "renamed")
    (after / "items.jsonl").rename(after / "lines.jsonl")
    write(after, "renamed", "lines.jsonl")
    with (after / "lines.jsonl").open("a") as file:
        file.write(other.read_text().splitlines()[0].replace("Anna", "Mary") + "\n")
    status, _, err = script("corpus", "data=jsonl", f"data.path={after / 'lines.jsonl'}", f"output={after / 'corpus'}")
    assert status == 2 and re.search(r"with data.path=lines.jsonl \(\w+\), .* with data.path=lines.jsonl \(", err), err


def test_a_page_replaces_one_of_some_of_its_runs(own_run: Path, tmp_path: Path, script: Script) -> None:
    second, third = (other_run(own_run, tmp_path / name) for name in ("second", "third"))
    page = ("report", "untrained=0", "items=4", "sentences=1", "formats=[]", f"output={tmp_path / 'out'}")
    assert script(*page, f"runs=[{own_run},{second}]")[0] == 0
    status, out, err = script(*page, f"runs=[{second},{own_run}]")
    assert status == 0 and "replaced" not in out, err
    status, out, err = script(*page, f"runs=[{third},{second},{own_run}]")
    assert status == 0 and "report.html is replaced by a file with more runs: third (" in " ".join(out.split()), err
    status, _, err = script(*page, f"runs=[{third},{own_run}]")
    assert status == 2 and "holds the results with runs=" in err


def test_what_is_replaced_without_a_record_is_named(own_run: Path, script: Script) -> None:
    small = ("report", f"run={own_run}", "items=4", "sentences=1", "formats=[]")
    assert script(*small, "untrained=1")[0] == 0
    (own_run / WRITTEN).unlink()
    status, out, err = script("score", f"run={own_run}", "untrained=0")
    assert status == 0, err
    words = " ".join(out.split())
    assert "the settings of these files are not recorded; they are replaced: metrics.json" in words
    assert "the evidence of the last report is removed, because it was measured with other settings" in words
    status, out, err = script("score", f"run={own_run}", "untrained=0")
    assert status == 0 and "recorded" not in out and "removed" not in out


def test_matrices_of_one_name_in_two_folders_have_pages_of_their_own(
    tmp_path: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.yaml").write_text("X: [[1, 0], [0, 1]]\nW_K: [[1, 0], [0, 1]]\n")
        for _again in range(2):
            assert script("explain", f"matrices={folder}/mine.yaml", "form=json")[0] == 0
    pages = {path.name for path in (tmp_path / "outputs" / "explain").glob("mine_*_en.json")}
    assert len(pages) == 2
    moved = tmp_path / "moved"
    moved.mkdir()
    (tmp_path / "first").rename(moved / "first")
    monkeypatch.chdir(moved)
    assert script("explain", "matrices=first/mine.yaml", "form=json")[0] == 0
    assert {path.name for path in (moved / "outputs" / "explain").glob("mine_*_en.json")} < pages

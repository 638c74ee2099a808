from __future__ import annotations

import errno
import importlib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from anaphora.base.files import locked_directory
from anaphora.cli import COMMANDS
from anaphora.runs.directory import RunFiles

Script = Callable[..., tuple[int, str, str]]
FOLDERS = {
    "antecedents": ("run={run}",),
    "report atlas": ("runs=[{run}]", "data=gap", "data.path={here}"),
    "corpus": ("data=jsonl", "data.path={run}/config.yaml"),
    "evaluate": ("run={run}",),
    "export": ("run={run}",),
    "extract": ("run={run}",),
    "report": ("run={run}",),
    "score": ("run={run}",),
    "train": ("name=run",),
    "demo": ("name=run",),
    "study": ("study=mirror",),
}
"""Commands whose `output` is a folder, with their further arguments."""
FILES = {
    "attention": ("run={run}", "text=Anna"),
    "coreference": ("key={here}/items.jsonl", "response={here}/items.jsonl"),
    "cross_validate": ("runs=[{run}]",),
    "explain": ("run={run}", "text=Anna", "form=page"),
    "gap": ("runs=[{run}]", "data=gap", "data.path={here}"),
    "evaluate several": ("runs=[{run}]", "data=jsonl", "data.path={here}/items.jsonl"),
}
"""Commands whose `output` is a file, with their further arguments."""
ENDINGS = dict.fromkeys(FILES, ".csv") | {"attention": ".html", "explain": ".html"}


def test_no_other_command_has_an_output() -> None:
    having = {name for name, command in COMMANDS.items() if "output" in command.schema.__dataclass_fields__}
    assert having == {name.split()[0] for name in (*FOLDERS, *FILES)}


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the loading of data fail.

    Modules that import `load` are imported first; otherwise they would keep its replacement.
    """
    for name in ("anaphora.api.scoring", "anaphora.commands.parts.tables", "anaphora.training.items"):
        importlib.import_module(name)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the work has begun")

    monkeypatch.setattr("anaphora.runs.items.load_corpus", refuse)
    monkeypatch.setattr("anaphora.data.store.load", refuse)
    monkeypatch.setattr("anaphora.model.pretrained.weights.to_bert", refuse)
    monkeypatch.setattr("anaphora.training.run.prepare_examples", refuse)
    monkeypatch.setattr("anaphora.api.attention", refuse)
    monkeypatch.setattr("anaphora.commands.explain.build_walkthrough", refuse)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("name", [*FOLDERS, *FILES])
def test_an_output_that_cannot_be_written_is_one_line_before_the_work(
    name: str, own_run: Path, tmp_path: Path, script: Script
) -> None:
    suffix = ENDINGS.get(name, "")
    (tmp_path / "file").write_text("mine")
    os.mkfifo(tmp_path / f"pipe{suffix}")
    for data in ("gap-development.tsv", "gap-validation.tsv", "items.jsonl"):
        (tmp_path / data).touch()
    arguments = [word.format(run=own_run, here=tmp_path) for word in (FOLDERS | FILES)[name]]
    for place in (tmp_path / "file" / f"x{suffix}", tmp_path / f"pipe{suffix}"):
        status, _, err = script(name.split()[0], f"output={place}", *arguments)
        assert (status, err.count("\n")) == (2, 1), err
        assert "cannot be written" in err or "is not empty" in err
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("name", [*FOLDERS, *FILES])
def test_where_nothing_can_be_written_the_error_names_the_setting_for_another_place(
    name: str, own_run: Path, tmp_path: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_handle: int) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("anaphora.base.files._probe", refuse)
    for data in ("gap-development.tsv", "gap-validation.tsv", "items.jsonl"):
        (tmp_path / data).touch()
    arguments = [word.format(run=own_run, here=tmp_path) for word in (FOLDERS | FILES)[name]]
    places = ((), (f"output={tmp_path / 'out'}{ENDINGS.get(name, '')}",))
    for output in places if name in FOLDERS and name not in ("corpus", "export") else places[1:]:
        status, _, err = script(name.split()[0], *output, *arguments)
        assert (status, err.count("\n")) == (2, 1), err
        assert re.search(
            r"cannot be written \(Read-only file system\); name another (file|folder) with output=$", err
        ), err


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("name", FILES)
def test_an_output_of_another_ending_is_not_written_over(
    name: str, own_run: Path, tmp_path: Path, script: Script
) -> None:
    for data in ("gap-development.tsv", "gap-validation.tsv", "items.jsonl"):
        (tmp_path / data).write_text("mine")
    arguments = [word.format(run=own_run, here=tmp_path) for word in FILES[name]]
    status, _, err = script(name.split()[0], f"output={tmp_path / 'items.jsonl'}", *arguments)
    assert status == 2 and "items.jsonl) must end in " in err and ENDINGS[name] in err
    assert (tmp_path / "items.jsonl").read_text() == "mine"


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("name", ["score", "report", "controls"])
def test_a_run_that_is_held_is_one_line_before_the_work(name: str, own_run: Path, script: Script) -> None:
    with locked_directory(own_run / "controls" if name == "controls" else own_run):
        status, _, err = script(name, f"run={own_run}")
    assert (status, err.count("\n")) == (2, 1) and "another process is writing" in err


def test_a_run_that_cannot_be_written_is_scored_elsewhere(own_run: Path, tmp_path: Path, script: Script) -> None:
    before = sorted(own_run.rglob("*"))
    RunFiles(own_run).metrics.mkdir()  # where no file can be written
    with locked_directory(own_run):
        status, _, err = script("score", f"run={own_run}", f"output={tmp_path / 'scores'}", "untrained=0")
        assert status == 0, err
        small = ("items=6", "untrained=0", "sentences=1", "formats=[]")
        status, out, err = script("report", f"run={own_run}", f"output={tmp_path / 'report'}", *small)
        assert status == 0, err
    RunFiles(own_run).metrics.rmdir()
    assert sorted(own_run.rglob("*")) == before
    assert json.loads((tmp_path / "scores" / "metrics.json").read_text(encoding="utf-8"))["head"]["chosen_on"] == "dev"
    assert f"its numbers go to {tmp_path / 'report' / 'own'}" in out
    assert (tmp_path / "report" / "report.html").exists()
    assert (tmp_path / "report" / "own" / "metrics.json").exists()


def test_damaged_scores_are_mended_by_scoring(own_run: Path, script: Script) -> None:
    RunFiles(own_run).metrics.write_text("{}")
    status, _, err = script("explain", f"run={own_run}", "text=Anna")
    assert (status, err.count("\n")) == (2, 1) and "metrics.json: head: the key is missing; delete" in err
    status, out, err = script("score", f"run={own_run}", "untrained=0")
    assert status == 0, err
    assert "it is measured again" in out
    assert json.loads(RunFiles(own_run).metrics.read_text(encoding="utf-8"))["head"]


def test_damaged_history_is_refused_before_the_data_are_read(
    own_run: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anaphora.runs.items.load_corpus", None)
    RunFiles(own_run).training.write_text('{"validations": 3}')
    status, _, err = script("score", f"run={own_run}")
    assert (status, err.count("\n")) == (2, 1)
    assert "training.json: validations: 3 is not a list; restore the file, or delete it" in err

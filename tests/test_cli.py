from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from anaphora.base.errors import UserError
from anaphora.cli import user_errors_exit
from anaphora.commands.attention import AttentionQuery
from anaphora.commands.explain import Explanation
from anaphora.runs.presence import refuse_missing

ROOT = Path(__file__).parent.parent
Script = Callable[..., tuple[int, str, str]]
WRONG = [
    ("train", ("model.wdth=3",), "wdth"),
    ("train", ("+new.key=2",), "unknown setting new"),
    ("train", ("model/position=magic",), "model/position/magic"),
    ("train", ("seed=abc",), "error: seed (abc) must be of type int"),
    ("train", ("optimizer.clip=much",), "error: optimizer.clip (much) must be of type float"),
    ("train", ("model.tied_output=maybe",), "error: model.tied_output (maybe) must be of type bool (true or false)"),
    ("score", ("overwrite=maybe",), "error: overwrite ('maybe') must be of type bool (true or false)"),
    ("score", ("overwrite=2",), "error: overwrite (2) must be of type bool (true or false)"),
    ("train", ("model.tied_output=2",), "error: model.tied_output (2) must be of type bool (true or false)"),
    ("study", ("train=0", "study=mirror"), "error: train (0) must be of type bool (true or false)"),
    ("train", ("model.values=[a,b]",), "error: model.values ([a,b]) must be of type str"),
    ("train", ("optimizer.steps=0",), "optimizer.steps (0) must be at least 1"),
    ("train", ("data=jsonl",), "data.path is missing"),
    ("train", ("experiment=none",), "experiment/none"),
    ("train", ("seed=[",), "needs quotes inside quotes"),
    ("train", (f"seed={'9' * 5000}",), "more digits than can be read"),
    ("demo", ("model.values=other",), "model.values ('other')"),
    ("evaluate", ("split=valid",), "split ('valid') must be one of train, dev, test"),
    ("evaluate", ("run=/nowhere",), "/nowhere/config.yaml: there is no run here"),
    ("evaluate", ("text=she", "pronoun=she"), "text"),
    ("score", ("text=she", "pronoun=she"), "text"),
    ("attention", ("untrained=3",), "untrained"),
    ("attention", ("candidates=[Anna]",), "candidates (['Anna']) needs text=..."),
    ("attention", ("pronoun=she",), "pronoun ('she') needs text=..."),
    ("attention", ("language=xx",), "language ('xx') needs text=..."),
    ("attention", ("text=she", "pronoun=she", "items=3"), "items (3) chooses items of data, but text is one"),
    ("attention", ("text=she", "pronoun=she", "data=gap", "data.path=x"), "data=gap and text=... are both given"),
    ("gap", ("weights=x", "data.path=x", "split=dev"), "split ('dev') is what runs=[...] answer: weights=... is"),
    ("gap", ("runs=[x]", "data.path=x", "folds=3"), "folds (3) is for weights=...; the folds of runs=[...] are data."),
    ("attention", ("output=x.gif",), "output (x.gif) must end in one of .html, .parquet, .png, .svg, .pdf"),
    ("attention", ("output=x.html",), "output (x.html) needs text=..."),
    ("attention", ("text=she", "layer=1", "head=0"), "layer (1) is for pictures"),
    ("attention", ("by=token",), "by (token) is for a page or a table"),
    ("attention", ("interface_language=她",), "interface_language ('她') must be one of en, zh, both"),
    ("train", ("optimizer.frozen=query",), "optimizer.frozen (query) must be a list, as in optimizer.frozen=[query]"),
    ("attention", ("candidates=null",), "candidates cannot be null; leave it out to keep its default"),
    ("train", ("name=a,b",), "needs quotes inside quotes"),
    ("attention", ("model=a/b", "text=x"), "model=a/b: this command takes a model as run=a/b; model= names"),
    ("look", ("model=a/b",), "model=a/b: this command takes a model as run=a/b"),
    ("score", ("layer=1",), "layer and head go together"),
    ("corpus", ("data.types=[voice]", "data.shared_nouns=0.4"), "data.shared_nouns=0.4 has no effect while data.types"),
    (
        "report",
        ("protocol=strict",),
        "protocol=strict: protocol is a group of settings, set one by one, as in protocol.a",
    ),
    ("study", ("study=mirror", "name=a/b"), "name ('a/b'): a name becomes a folder"),
    ("explain", ("example=list", "row=1"), "row (1) has no effect on example=list; leave it out"),
    ("explain", ("example=list", "form=terminal"), "form (terminal) has no effect on example=list; leave it out"),
    ("explain", ("example=by_hand", "form=json", "digits=2"), "digits (2) has no effect on JSON, which has all digits"),
    ("look", ("text=she", "port=9"), "port (9) is that of the page, and with text=... none is served: leave it out"),
    ("attention", ("run=shipped", "text=she", "output=x.parquet", "candidates=[she]", "antecedent=she"), "antecedent"),
    ("coreference", ("key=a.jsonl", "response=b.jsonl", "trainer.device=cuda"), "trainer.device (cuda) is for run="),
    ("look", ("run=outputs/a", "runs=[b]"), "run (outputs/a) and runs ([b]) are both given: give one of them"),
    ("report", ("run=outputs/a", "runs=[b,c]"), "run (outputs/a) and runs ([b, c]) are both given: give one of them"),
    ("extract", ("items=0",), "items (0) must be at least 1"),
    ("study", ("study=mirror", "threads=100000"), "threads (100000) must be at least 1 and below 1025"),
    ("corpus", ("task=classification",), "unknown setting task (allowed: overwrite, data, output)"),
    ("study", ("task=classification", "study=mirror"), "task: this command has no such setting; --help"),
    ("train", ("model=[1]",), "model=[1]; a group takes the name of one of its choices"),
    ("train", ("data=[1]",), "data=[1]; a group takes the name of one of its choices"),
    ("evaluate", ("run=x", "data.path=x"), "data.path=x: choose data first, as in data=jsonl data.path=..."),
    ("evaluate", ("trainer=none",), "trainer=none: there is no configs/trainer/none.yaml; allowed: default, gpu"),
    ("evaluate", ("items",), "items: write items=..."),
    ("evaluate", ("-m", "items=1,2"), "as in seed=3; only train, demo and study have options of Hydra"),
    ("train", ("data=jsonl", f"data.path=/{'x' * 5000}"), "File name too long"),
    ("train", ("seed=1,2",), "seed=1,2: one run for each value needs -m; a list needs brackets"),
    ("train", ("--resolve",), "--resolve changes only how settings are printed: write --cfg job too"),
    ("train", ("--package", "model"), "--package changes only how settings are printed: write --cfg job too"),
    ("train", ("--experimental-rerun=file", "seed=1"), "--experimental-rerun=file: did you mean experiment=file?"),
    ("train", ("hydra.run.dir=/nowhere", "name=x"), "hydra.run.dir=/nowhere does not move the run"),
    ("train", ("-cp", "nowhere", "name=x"), "--config-path (nowhere): there is no such folder"),
    ("train", ("recipe=small", "task=masked_lm"), "task=masked_lm sets task/prediction to none, but recipe=small sets"),
    ("train", ("task.own_token_weight=2",), "task.own_token_weight=2 has no effect while task.own_token is 0"),
]


@pytest.mark.parametrize(("name", "arguments", "message"), WRONG)
def test_a_wrong_setting_is_one_line_and_exit_status_2(
    name: str, arguments: tuple[str, ...], message: str, script: Script
) -> None:
    status, out, err = script(name, *arguments)
    assert (status, out) == (2, "")
    assert err.startswith("error: ") and err.count("\n") == 1
    assert message in err


def call(*arguments: str, code: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-X", "importtime", *arguments] if code is None else [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)


def imported_modules(process: subprocess.CompletedProcess[str]) -> set[str]:
    lines = process.stderr.splitlines()
    return {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}


@pytest.mark.parametrize("argument", ["--help", "split=x", "nonsense=1"])
def test_a_command_that_composes_nothing_does_not_load_hydra(argument: str) -> None:
    process = call("scripts/score.py", argument)
    assert process.returncode == (0 if argument == "--help" else 2)
    imported = imported_modules(process)
    assert "omegaconf" in imported and "hydra" not in imported


def test_a_sentence_is_explained_without_the_libraries_of_training_tables_and_figures(finished: Path) -> None:
    sentence = ("text=Anna thanked Emma because she had helped.", "pronoun=she", "candidates=[Anna,Emma]")
    process = call("scripts/explain.py", f"run={finished}", *sentence, "layer=0", "head=0")
    assert process.returncode == 0, process.stderr[-2000:]
    imported = imported_modules(process)
    assert "torch" in imported
    assert not imported & {"pytorch_lightning", "hydra", "datasets", "pandas", "scipy", "matplotlib", "pyarrow"}


@pytest.mark.parametrize(
    ("also", "frozen"), [("", True), ("; sys.modules['triton'] = sys", False)], ids=["no Triton", "Triton"]
)
def test_a_command_ends_without_looking_through_all_objects_unless_triton_is_loaded(also: str, frozen: bool) -> None:
    script = (
        "import atexit, gc, sys; from anaphora.cli import run_command"
        f"; atexit.register(lambda: print(gc.get_freeze_count())){also}; run_command('explain')"
    )
    command = [sys.executable, "-c", script, "--help"]
    count = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1])
    assert (count > 0) == frozen


@pytest.mark.parametrize("arguments", [("--help",), ("--cfg", "job"), ("optimizer.steps=0",)], ids=" ".join)
def test_help_settings_and_a_mistake_are_reported_before_torch_is_imported(arguments: tuple[str, ...]) -> None:
    process = call("scripts/train.py", *arguments)
    imported = imported_modules(process)
    assert not imported & {"torch", "pytorch_lightning", "datasets", "pandas", "matplotlib", "rich", "safetensors"}
    assert process.returncode == (2 if arguments == ("optimizer.steps=0",) else 0)
    lines = [line for line in process.stderr.splitlines() if not line.startswith("import time:")]
    assert lines == (["error: optimizer.steps (0) must be at least 1"] if process.returncode else [])
    assert bool(process.stdout) != bool(process.returncode)


@pytest.mark.parametrize(
    "beside", ["seed=3", "optimizer.steps=3", "experiment=compositions", "name=other", "trainer.precision=32"]
)
def test_what_a_resumed_run_would_not_follow_is_refused(script: Script, unfinished: Path, beside: str) -> None:
    status, _, err = script("train", beside, f"resume={unfinished}")
    assert status == 2
    assert err.startswith(f"error: {beside}: a resumed run keeps its settings")


def test_what_changes_no_result_may_stand_beside_resume(script: Script, unfinished: Path, tmp_path: Path) -> None:
    stopped = shutil.copytree(unfinished, tmp_path / "stopped")
    status, out, err = script("train", f"resume={stopped}", "trainer.progress=false", "trainer.loggers=[csv]")
    assert (status, out.strip()) == (0, str(stopped)), err


@pytest.mark.parametrize("arguments", [("demo",), ("train", "-m", "seed=1,2")])
def test_commands_that_find_their_run_by_its_name_take_no_resume(
    script: Script, unfinished: Path, arguments: tuple[str, ...], tmp_path: Path
) -> None:
    status, _, err = script(*arguments, f"resume={unfinished}", f"output={tmp_path}")
    assert status != 0 and f"resume ({unfinished}) is for train.py alone" in err
    assert not list(tmp_path.rglob("config.yaml"))


def test_a_typo_in_an_experiment_file_is_one_line_and_exit_status_2(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(ROOT / "configs", tmp_path / "configs"))
    (folder / "experiment" / "typo.yaml").write_text("# @package _global_\nmodel:\n  wdth: 3\n")
    process = call("scripts/train.py", "--config-dir", str(folder), "experiment=typo")
    lines = [line for line in process.stderr.splitlines() if not line.startswith("import time:")]
    assert process.returncode == 2
    assert len(lines) == 1 and lines[0].startswith("error: ") and "wdth" in lines[0]


@pytest.mark.parametrize("settings", [Explanation(text="She left."), AttentionQuery(text="She left.")])
def test_who_has_trained_nothing_and_names_no_run_is_told_of_the_one_in_the_package(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="anaphora demo trains it, and run=shipped is the run inside the package"):
        refuse_missing(settings)


def test_an_error_that_is_no_users_mistake_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError), user_errors_exit():
        raise ZeroDivisionError


def test_a_users_mistake_of_many_lines_is_cut_to_its_first(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left, user_errors_exit():
        raise UserError("first\nsecond")
    assert left.value.code == 2
    assert capsys.readouterr().err == "error: first\n"


def test_what_the_system_refuses_is_reported_in_one_line_and_another_fault_is_not_hidden(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for number in (errno.ENOSPC, errno.EMFILE, errno.EIO):
        problem = os.strerror(number)
        with pytest.raises(SystemExit) as left, user_errors_exit():
            raise OSError(number, problem, "outputs/multirun.yaml")
        assert (left.value.code, capsys.readouterr().err) == (2, f"error: outputs/multirun.yaml: {problem}\n")
    with pytest.raises(OSError, match="Bad file descriptor"), user_errors_exit():
        raise OSError(errno.EBADF, "Bad file descriptor")


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory"),
    ],
)
def test_memory_that_runs_out_is_one_line(error: BaseException, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left, user_errors_exit():
        raise error
    assert left.value.code == 2
    assert capsys.readouterr().err == (
        "error: not enough memory; lower batching.tokens, model.width or the length of the texts\n"
    )
    with pytest.raises(RuntimeError, match="something else"), user_errors_exit():
        raise RuntimeError("something else")


@pytest.mark.parametrize("arguments", [("-m", "anaphora", "--help"), ("scripts/gap.py", "--help")], ids=" ".join)
def test_a_closed_pipe_is_quiet(arguments: tuple[str, ...]) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, *arguments]
    process = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, env=environment, cwd=ROOT, check=False)
    os.close(writing)
    assert (process.returncode, process.stderr) == (141, b"")


def test_an_interrupt_ends_with_130_and_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left, user_errors_exit():
        raise KeyboardInterrupt
    assert left.value.code == 130
    assert capsys.readouterr().err == "stopped; all that was written is complete\n"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_termination_ends_with_one_line_unless_it_is_handled(
    number: signal.Signals, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    cleaned: list[str] = []

    def work() -> None:
        try:
            os.kill(os.getpid(), number)
            time.sleep(10)
        finally:
            cleaned.append("up")

    before = signal.signal(number, signal.SIG_DFL)  # nohup, for example, ignores SIGHUP
    try:
        with pytest.raises(SystemExit) as left, user_errors_exit(), user_errors_exit():
            work()
        assert (left.value.code, cleaned) == (status, ["up"])
        assert capsys.readouterr().err == "stopped; all that was written is complete\n"
        assert signal.getsignal(number) is signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN)
        with user_errors_exit():
            os.kill(os.getpid(), number)
    finally:
        signal.signal(number, before)


IMPORTS = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path, target=None):
        if name == "omegaconf":
            os.kill(os.getpid(), signal.SIGINT)

if sys.argv[1] != "raises":
    sys.meta_path.insert(0, Interrupt())
# A shell's background job, in which the tests may run, inherits that interrupts are ignored.
signal.signal(signal.SIGINT, signal.SIG_IGN if sys.argv[1] == "ignored" else signal.default_int_handler)
before = signal.getsignal(signal.SIGINT)
import anaphora.cli
assert signal.getsignal(signal.SIGINT) is before
"""


@pytest.mark.parametrize(("case", "status"), [("interrupted", -signal.SIGINT), ("ignored", 0), ("raises", 0)])
def test_an_interrupt_during_the_imports_is_quiet_and_handled_as_before_afterwards(case: str, status: int) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-c", IMPORTS, case]
    process = subprocess.run(command, capture_output=True, env=environment, cwd=ROOT, check=False)
    assert (process.returncode, process.stderr) == (status, b"")


MISSING = """
import contextlib, io, json, sys
from hydra import compose, initialize_config_dir
from anaphora.cli import COMMANDS, register_commands, run_command, user_errors_exit
from anaphora.settings.arguments import CONFIGS

register_commands()
lines = []
for name, *overrides in json.loads(sys.argv[1]):
    with contextlib.redirect_stderr(io.StringIO()) as written, contextlib.suppress(SystemExit), user_errors_exit():
        if COMMANDS[name].is_composed:
            with initialize_config_dir(str(CONFIGS), version_base="1.3"):
                COMMANDS[name].run(COMMANDS[name].settings(compose(name, overrides=overrides)))
        else:
            sys.argv = ["anaphora", *overrides]
            run_command(name)
    heavy = {"torch", "pytorch_lightning", "transformers", "datasets", "pandas", "matplotlib"} & set(sys.modules)
    assert not heavy, (name, overrides, heavy)
    lines.append(written.getvalue())
print(json.dumps(lines))
"""
"""Script that runs commands in one process, and stops at the first that imports a heavy library."""
NOT_THERE = [
    (("evaluate", "run=nowhere"), "nowhere/config.yaml: there is no run here"),
    (("evaluate", "trainer.device=cuda"), "trainer.device (cuda) is not on this machine"),
    (("train", "resume=nowhere"), "nowhere/config.yaml: there is no run here"),
    (("train", "start=outputs/demoo"), "start (outputs/demoo): there is no such folder"),
    (("train", "data=jsonl", "data.path=nowhere.jsonl"), "data.path (nowhere.jsonl): there is no such file or folder"),
    (("train", "trainer.device=cuda"), "trainer.device (cuda) is not on this machine"),
    (("train", "data=plain_text", "task=masked_lm", "data.path=scripts"), "data.path (scripts): it has no file"),
    (("demo", "data=jsonl", "data.path=nowhere.jsonl"), "data.path (nowhere.jsonl): there is no such file or folder"),
    (("report", "runs=[nowhere]"), "runs (nowhere): there is no such folder"),
    (("evaluate", "runs=[nowhere_*]"), "runs (nowhere_*) matches no directory"),
    (("report", "runs=[nowhere,neither]", "output=x.csv"), "runs (nowhere): there is no such folder"),
    (("cross_validate", "runs=[]"), "runs ([]) must name the runs of all folds"),
    (("gap", "weights=nowhere", "data=gap", "data.path=x"), "nowhere/config.yaml: there is no run here"),
    (("attention", "run=nowhere", "text=x"), "run (nowhere): there is no such folder"),
    (("look", "She left."), "'She left.' must be a setting and its value, as in seed=3; write a sentence as text='She"),
    (("look", "runs=[src]"), "there is no run here (config.yaml is missing, and config.json of a model)"),
    (("explain", "text=she", "run=nowhere"), "nowhere/config.yaml: there is no run here"),
    (("corpus", "data=gap", "data.path=nowhere"), "data.path (nowhere): there is no such file or folder"),
]


def test_what_is_not_there_is_reported_before_torch_is_imported() -> None:
    commands = json.dumps([command for command, _ in NOT_THERE])
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "CUDA_VISIBLE_DEVICES": ""}
    process = subprocess.run(
        [sys.executable, "-c", MISSING, commands], capture_output=True, text=True, env=environment, cwd=ROOT
    )
    assert process.returncode == 0, process.stderr
    for (command, message), line in zip(NOT_THERE, json.loads(process.stdout), strict=True):
        assert line.startswith("error: ") and line.count("\n") == 1 and message in line, (command, line)

"""Shared fixtures: a small table of examples, composed settings, and runs that are trained once per session."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import runpy
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import settings as hypothesis_settings

# `make fuzz` names this profile; tests/fuzz shares its cases out.
hypothesis_settings.register_profile("fuzz", max_examples=20_000, deadline=None, print_blob=True)
# Two runs of `make test` on one commit must agree, so it draws the same cases each time, without a limit on their time,
# which depends on other programs; `make fuzz` draws new ones.
hypothesis_settings.register_profile("repeatable", derandomize=True, deadline=None, print_blob=True)
hypothesis_settings.load_profile("repeatable")
# Tests side by side have a core each. A worker starts with what this file set in the process that started it.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ["OMP_NUM_THREADS"] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "2")
os.environ["HF_HUB_OFFLINE"] = "1"  # no test asks the hub
# The tests draw with the package's own fonts, whether or not the whole one is installed.
sys.modules["mpl_font"] = None  # type: ignore[assignment]

# With all of torch, transformers and matplotlib in memory, the default makes the collector go through them too often.
gc.set_threshold(100_000, 50, 100)

ROOT = Path(__file__).parent
TINY = (
    "trainer=smoke",
    "model.width=16",
    "model.layers=2",
    "model/initialisation=xavier",
    "batching.tokens=96",
    "batching.row_tokens=32",
    "optimizer.steps=8",
    "optimizer.learning_rate=0.01",
    "validation.every=2",
    "trainer.limit_steps=null",
)
"""Settings of a run of eight steps with four validations, which trains in a second."""
GAP_COLUMNS = ("ID", "Text", "Pronoun", "Pronoun-offset", "A", "A-offset", "A-coref", "B", "B-offset", "B-coref")


class ScriptResult(NamedTuple):
    """Result of a script: exit status, standard output and standard error."""

    status: int
    out: str
    err: str


Compose = Callable[..., Any]
Script = Callable[..., ScriptResult]


@pytest.fixture(scope="session", autouse=True)
def corpus_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Redirect the cache of corpora to a temporary folder."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("ANAPHORA_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session", autouse=True)
def idle_machine() -> Iterator[None]:
    """Report a load of 0, since messages about a busy machine would depend on other programs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("anaphora.runs.machine._load", lambda: 0.0)
        yield


@pytest.fixture
def own_parts() -> Iterator[Callable[[], None]]:
    """Yield a function that removes registered components, as in a new process; it is also called after the test."""

    from anaphora.settings.registered import REGISTERED
    from anaphora.settings.variants import VARIANTS

    variants, registered = {base: dict(options) for base, options in VARIANTS.items()}, dict(REGISTERED)

    def forget() -> None:
        for base, options in variants.items():
            VARIANTS[base].clear()
            VARIANTS[base].update(options)
        REGISTERED.clear()
        REGISTERED.update(registered)

    yield forget
    forget()


@pytest.fixture(scope="session")
def compose() -> Compose:
    """Return a function (overrides, primary config, folder) that composes settings with Hydra."""
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir

    from anaphora.cli import register_commands

    def composed(*overrides: str, primary: str = "train", folder: Path = ROOT / "configs") -> Any:
        register_commands()
        with initialize_config_dir(str(folder), version_base="1.3"):
            return hydra_compose(primary, overrides=list(overrides))

    return composed


@pytest.fixture(scope="session")
def settings(compose: Compose) -> Callable[..., Any]:
    """Return a function that returns the checked settings of a training run with the given overrides."""
    from anaphora.settings.run import Config
    from anaphora.settings.typed import resolve

    return lambda *overrides: resolve(compose(*overrides), Config)


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write sixty examples in both languages as JSON lines, in which the name's gender is the cue."""
    path = tmp_path_factory.mktemp("table") / "items.jsonl"
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows(60)) + "\n", encoding="utf-8")
    return path


def rows(count: int) -> list[dict[str, Any]]:
    """Return simple examples with two names, a pronoun that agrees with one of them, and a split."""
    examples = []
    for number in range(count):
        right = number % 2
        if number % 4 < 2:
            names = ("Anna", "Tom") if number % 8 < 4 else ("Mary", "Peter")
            pronoun = ("she", "he")[right]
            text = f"{names[0]} met {names[1]} before {pronoun} went to the {('shop', 'park', 'bank')[number % 3]}."
        else:
            names = ("王芳", "李强") if number % 8 < 4 else ("小红", "小明")
            pronoun = ("她", "他")[right]
            text = f"{names[0]}碰到{names[1]}以后,{pronoun}去了{('商店', '公园', '银行')[number % 3]}。"
        spans = [[text.index(name), text.index(name) + len(name)] for name in names]
        begin = text.index(f" {pronoun} ") + 1 if pronoun.isascii() else text.index(pronoun)
        examples.append(
            {
                "text": text,
                "language": "en" if pronoun.isascii() else "zh",
                "pronoun": [begin, begin + len(pronoun)],
                "candidates": spans,
                "antecedents": [right],
                "group": f"pair {number // 2}",
                "factors": {"kind": "set", "type": "gender", "template": f"t{number % 4 // 2}"},
                "split": ("train", "train", "train", "dev", "test")[number // 2 % 5],
            }
        )
    return examples


@pytest.fixture(scope="session")
def tiny(settings: Callable[..., Any], table: Path) -> Callable[..., Any]:
    """Return a function (output, overrides) that returns the settings of a run on the table that trains in a second."""

    def composed(output: Path, *overrides: str) -> Any:
        places = (f"output={output}", "name=run", "data=jsonl", f"data.path={table}")
        return settings(*places, *TINY, *overrides)

    return composed


@pytest.fixture(scope="session")
def tiny_settings() -> tuple[str, ...]:
    """Return the overrides of a run that trains in a second."""
    return TINY


@pytest.fixture
def other(table: Path, tmp_path: Path) -> Path:
    """Return the table with other words in its texts."""
    path = tmp_path / "other.jsonl"
    path.write_text(table.read_text(encoding="utf-8").replace("went to", "ran to"), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, tiny: Callable[..., Any]) -> Path:
    """Return a finished run of eight steps on the table, for reading only; `own_run` is a copy for writing."""
    from anaphora.training.run import train

    return Path(train(tiny(tmp_path_factory.mktemp("finished"))))


@pytest.fixture(scope="session")
def unfinished(finished: Path, tmp_path_factory: pytest.TempPathFactory, tiny: Callable[..., Any]) -> Path:
    """Return the finished run as it was just before the end, with checkpoints but no weights, for reading only."""
    from anaphora.runs.directory import RunFiles
    from anaphora.training.callbacks import ValidationCheckpoint
    from anaphora.training.run import train

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ValidationCheckpoint, "remove_checkpoints", as_before)
        directory = Path(train(tiny(tmp_path_factory.mktemp("unfinished"))))
    assert RunFiles(directory).weights.read_bytes() == RunFiles(finished).weights.read_bytes()
    RunFiles(directory).weights.unlink()
    return directory


def as_before(history: Any) -> None:
    """Keep the checkpoints as they were before the best weights were stored; replaces `ValidationCheckpoint.forget`."""
    shutil.copy(history.layout.weights, history.layout.checkpoints / "best.safetensors")


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the figures of pages and files empty, and pages without fonts; drawing takes longest in a report."""
    from markupsafe import Markup

    from anaphora.report.page import write

    monkeypatch.setattr(write, "inline_figure", lambda *_: write.InlineFigure("", Markup()))
    monkeypatch.setattr("anaphora.report.figures.files._render", lambda *_: b"a figure")
    monkeypatch.setattr("anaphora.report.page.offline.with_fonts", lambda html, *_: html)


@pytest.fixture
def checkpoints_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let finished runs keep their checkpoints, so that a test can inspect them."""
    from anaphora.training.callbacks import ValidationCheckpoint

    monkeypatch.setattr(ValidationCheckpoint, "remove_checkpoints", as_before)


@pytest.fixture(scope="session")
def gap(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write sixty development and twenty validation rows in GAP's format, with the first mover as antecedent."""
    return write_gap(tmp_path_factory.mktemp("gap"))


def write_gap(folder: Path) -> Path:
    for name, count in (("development", 60), ("validation", 20)):
        rows = ["\t".join(GAP_COLUMNS)]
        for number in range(count):
            first, second = (("anna", "mary"), ("tom", "peter"))[number % 2]
            pronoun = ("she", "he")[number % 2]
            text = f"{first} went to the {'old ' * (number // 4)}park before {second} met {number}, and {pronoun} went."
            right = number % 10 != 0
            cells = [f"{name}-{number}", text, pronoun, text.index(f" {pronoun} ") + 1]
            cells += [first, 0, str(right).upper(), second, text.index(second), "FALSE"]
            rows.append("\t".join(map(str, cells)))
        (folder / f"gap-{name}.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def labelled(tmp_path_factory: pytest.TempPathFactory, settings: Callable[..., Any]) -> Path:
    """Train a text classifier, and return its run directory."""
    from anaphora.training.run import train

    folder = tmp_path_factory.mktemp("labelled")
    rows = [
        {"text": f"It went {('well', 'badly')[number % 2]} {number // 2 * 'very '}", "label": "ab"[number % 2]}
        for number in range(60)
    ]
    (folder / "own.jsonl").write_text("\n".join(map(json.dumps, rows)))
    chosen = ("experiment=sentiment", "data=labelled_text", f"data.path={folder / 'own.jsonl'}")
    longer = ("trainer.limit_items=null", "trainer.limit_steps=30", "model.layers=1", "batching.tokens=2048")
    return Path(train(settings(*chosen, *TINY, *longer, "optimizer.steps=500", f"output={folder}", "name=run")))


@pytest.fixture(scope="session")
def plain(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the table without splits, which do not go together with folds."""
    path = tmp_path_factory.mktemp("plain") / "items.jsonl"
    path.write_text(
        "".join(line.partition(', "split"')[0] + "}\n" for line in table.read_text(encoding="utf-8").splitlines()),
        encoding="utf-8",
    )
    return path


@pytest.fixture(scope="session")
def folds(tmp_path_factory: pytest.TempPathFactory, tiny: Callable[..., Any], plain: Path) -> list[Path]:
    """Return two finished runs, one for each fold."""
    from anaphora.training.run import train

    directories = []
    for fold in range(2):
        arguments = ("data.folds=2", f"data.fold={fold}", "data.test_share=0", "validation.keep=last")
        folder = tmp_path_factory.mktemp("fold")
        directories.append(Path(train(tiny(folder, f"data.path={plain}", *arguments))))
    return directories


@pytest.fixture
def own_run(finished: Path, tmp_path: Path) -> Path:
    """Return a copy of the finished run for writing."""
    return Path(shutil.copytree(finished, tmp_path / "own"))


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    """Return a function (name, arguments) that runs scripts/<name>.py in this process."""

    def run_script(name: str, *arguments: str) -> ScriptResult:
        out, err = io.StringIO(), io.StringIO()
        status = 0
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(sys, "argv", [f"scripts/{name}.py", *arguments])
            patched.setenv("HYDRA_FULL_ERROR", "1")
            patched.setenv("COLUMNS", "200")
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                try:
                    runpy.run_path(str(ROOT / "scripts" / f"{name}.py"), run_name="__main__")
                except SystemExit as left:
                    status = left.code if isinstance(left.code, int) else 1
        return ScriptResult(status, out.getvalue(), err.getvalue())

    return run_script

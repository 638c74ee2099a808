"""Tests of all code blocks of the tutorial, in both languages, and of the FAQ, outside the repository."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from anaphora.analysis.maps.record import from_arrays
from anaphora.base.errors import UserError
from anaphora.training.run import train

ROOT = Path(__file__).parent.parent
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SAVED = re.compile(r"(?:[Ss]ave\s+(?:this|it)\s+as|存为)\s+`([^`]+)`")
SMALL = {
    "train": ["trainer=smoke", "model.width=16"],
    "report": ["items=4", "untrained=0", "sentences=2", "formats=[]"],
    "controls": ["controls=[uniform]"],
    "study": ["more=['trainer=smoke','model.width=16']", "seeds=[0]", "items=8", "formats=[png]"],
}
"""Arguments that make a command small."""
TEXT = re.compile(r'"[^"\n]*"|#.*|(?<=candidates=)\[[^]]*\]|(?<=pronoun=)\w+')
"""Text or comment in a block, or the pronoun or candidates in a command."""


class Block(NamedTuple):
    """Fenced code block: its language, its lines, and the file to which the preceding text saves it."""

    language: str
    code: str
    file: str | None


def blocks(page: str) -> list[Block]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    page_blocks, before = [], 0
    for match in FENCE.finditer(text):
        saved = SAVED.findall(text[before : match.start()])
        page_blocks.append(Block(match[1], match[2], saved[-1] if saved else None))
        before = match.end()
    return page_blocks


@pytest.fixture
def demo(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a working directory outside the repository, with a finished run as outputs/demo."""
    shutil.copytree(finished, tmp_path / "outputs" / "demo")
    metrics = {"head": {"layer": 1, "head": 0, "chosen_on": "dev"}}
    (tmp_path / "outputs" / "demo" / "metrics.json").write_text(json.dumps(metrics), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    return tmp_path


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch, own_parts: Callable[[], None]) -> Callable[..., None]:
    """Return a function (file, arguments) that runs a file as a new process would, with nothing registered."""

    def run(file: Path, *arguments: str) -> None:
        own_parts()
        monkeypatch.setattr(sys, "argv", [str(file), *arguments])
        with monkeypatch.context() as patched:
            patched.syspath_prepend(str(Path.cwd()))
            before = set(sys.modules)
            runpy.run_path(str(file), run_name="__main__")  # a mistake leaves with SystemExit, which fails the test
            for name in set(sys.modules) - before:
                if str(getattr(sys.modules[name], "__file__", "")).startswith(str(Path.cwd())):
                    del sys.modules[name]

    return run


def run_shell_line(line: str, monkeypatch: pytest.MonkeyPatch, ran: Callable[..., None]) -> None:
    """Run one shell line, with the commands that the tutorial uses."""
    command, *words = shlex.split(line)
    if command == "mkdir":
        Path(words[0]).mkdir()
    elif command == "cd":
        monkeypatch.chdir(words[0])
    elif command == "anaphora" or command.endswith("python"):
        if command == "anaphora":
            words.insert(0, str(ROOT / "src" / "anaphora" / "__main__.py"))
        file = ROOT / words[0] if words[0].startswith("scripts/") else Path(words[0])
        script = words[1] if len(words) > 1 else ""
        ran(file, *words[1:], *([] if "--cfg" in words else SMALL.get(script, [])))
    else:
        # Making and entering the environment: `demo` and this interpreter stand for them.
        assert line in ("make demo", "source .venv/bin/activate")


def test_the_tutorial_can_be_followed_from_its_first_block_to_its_last(
    demo: Path, ran: Callable[..., None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done: set[str] = set()
    both = zip(blocks("tutorial.md"), blocks("tutorial.zh.md"), strict=True)
    for number, block in enumerate(block for pair in both for block in dict.fromkeys(pair)):
        if block.file is not None:
            Path(block.file).parent.mkdir(exist_ok=True)
            Path(block.file).write_text(block.code, encoding="utf-8")
        elif block.language == "bash":
            for line in block.code.splitlines():
                if line not in done:
                    run_shell_line(line, monkeypatch, ran)
                done.add(line)  # the report after the controls is the command that ran before them
        elif block.language == "python":
            file = Path(f"block_{number}.py")
            file.write_text(block.code, encoding="utf-8")
            ran(file)
    mine = demo / "pronouns"
    assert len((mine / "items.jsonl").read_text(encoding="utf-8").splitlines()) == 896
    assert (mine / "outputs" / "own" / "report.html").exists()
    assert (mine / "outputs" / "own" / "controls" / "uniform" / "model.safetensors").exists()
    cells = json.loads((mine / "outputs" / "studies" / "encodings" / "study.json").read_text(encoding="utf-8"))["cells"]
    assert [cell["name"] for cell in cells] == ["base", "decay", "no_position"]
    printed = capsys.readouterr().out
    assert (
        "'she' attends to:" in printed and "kind: decay\n    start: 1" in printed and "Parameter containing" in printed
    )


@pytest.mark.parametrize("page", ["tutorial", "faq"])
def test_both_languages_have_the_same_blocks_but_for_their_texts_and_the_same_sections(page: str) -> None:
    english, chinese = blocks(f"{page}.md"), blocks(f"{page}.zh.md")
    for block, twin in zip(english, chinese, strict=True):
        assert block[::2] == twin[::2]  # language and file
        if block.language == "text":  # what a command prints for its own text
            assert len(block.code.splitlines()) == len(twin.code.splitlines())
        else:
            assert TEXT.sub("", block.code) == TEXT.sub("", twin.code)
    assert len(english) > 9
    headings = [
        re.findall(r"^#+", (ROOT / "docs" / f"{page}{language}.md").read_text(encoding="utf-8"), re.MULTILINE)
        for language in ("", ".zh")
    ]
    assert headings[0] == headings[1]


def test_every_python_answer_of_the_faq_runs(
    demo: Path, tiny: Callable[..., Any], ran: Callable[..., None], tmp_path: Path
) -> None:
    three_layers = train(tiny(tmp_path / "three_layers", "model.layers=3"))  # as many as the demo has
    shutil.copytree(three_layers, demo / "outputs" / "demo", dirs_exist_ok=True)
    answers = [block for block in blocks("faq.md") if block.language == "python"]
    assert len(answers) == 6
    for number, block in enumerate(answers):
        (demo / f"answer_{number}.py").write_text(block.code, encoding="utf-8")
        ran(demo / f"answer_{number}.py")
    assert (demo / "she.pdf").read_bytes().startswith(b"%PDF")


def test_the_shape_error_of_the_faq_is_the_one_that_is_raised() -> None:
    (message,) = (block.code.strip() for block in blocks("faq.md") if block.language == "text")
    spans = [(0, 4), (5, 8), (9, 13), (14, 20), (21, 24), (25, 29), (29, 30)]
    maps = np.full((1, 2, 8, 8), 1 / 8)
    with pytest.raises(UserError, match=re.escape(message)):
        from_arrays(
            "Anna met Emma before she left.", spans, maps, (21, 24), [(0, 4), (9, 13)], antecedents=[1], language="en"
        )

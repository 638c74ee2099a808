"""Tests of docs/extending.md: its code is added to a copy of the package, and the new parts are used."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from anaphora.settings.variants import SLOTS

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
STEP = re.compile(
    r"^In `([^`]+)`(?:, (above|below) `([^`]+)`[^:\n]*)?:\n\n```python\n(.*?)```", re.DOTALL | re.MULTILINE
)

USE = """
import sys
from pathlib import Path

import torch

import anaphora
from anaphora.analysis.maps.kinds import pronoun_maps
from anaphora.data.batches.batching import evaluation_batches
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.store import load
from anaphora.model.pronoun_model import PronounModel
from anaphora.report.wording import label, map_names
from anaphora.settings.training import Batching
from anaphora.settings.data import Data
from anaphora.settings.model import encoder
from anaphora.settings.model.attention import MultiHead
from anaphora.settings.model.position import Position
from anaphora.settings.model.prediction import Prediction
from anaphora.settings.typed import construct
from anaphora.settings.vocabulary import WordVocabulary

_, folder, table, run = sys.argv
assert Path(anaphora.__file__).is_relative_to(folder)
source = construct(Data, {"kind": "pairs", "path": table, "dev_share": 0.0, "test_share": 0.0}, "data")
corpus = load(source)
examples = corpus.examples("train")
print("corpus", len(examples), dict(corpus.report.reasons))
tokenizer = WordVocabulary(min_count=1).build([example.text for example in examples])
position = construct(Position, {"kind": "decay", "start": 2.0}, "model.position")
prediction = construct(Prediction, {"kind": "cosine"}, "task.prediction")
shape = encoder.Model(width=8, layers=2, position=position, attention=MultiHead(heads=2),
    feed_forward=encoder.Gelu(), norm=encoder.LayerNorm(), initialisation=encoder.Xavier())
model = PronounModel(shape, prediction, tokenizer.size)
data, batching = EncodedSplit(examples, tokenizer), Batching(tokens=64, row_tokens=32)
batch = next(iter(evaluation_batches(data, batching, 0)))
model.prediction_head.loss(model.prediction_head.scores(model(batch), batch), batch).mean().backward()
print("position", model.encoder.position.rate.tolist(), bool(model.encoder.position.rate.grad.any()))
print("prediction", bool(model.prediction_head.factor.grad))
rows = pronoun_maps(model.eval(), data, batching, ["raw", "mean_of_heads"])
mean, heads = (rows[name].records[0].weights for name in ("mean_of_heads", "raw"))
sys.argv = ["anaphora", "longest", "data=pairs", f"data.path={table}", "data.dev_share=0", "data.test_share=0"]
sys.argv.append("count=1")
print("map", mean.shape, bool(abs(mean[:, 0] - heads.mean(axis=1)).max() < 1e-6), label(map_names(), "mean_of_heads"))
print("command", end=" ")
anaphora.main()
sys.argv = ["anaphora", "report", f"run={run}", "items=4", "untrained=0", "sentences=1", "formats=[png]"]
anaphora.main()
"""


def put(folder: Path, path: str, side: str, anchor: str, code: str) -> None:
    """Insert the code of one step at the position given on the page, by default at the end or in a new file.

    Lines without indentation are indented like the anchor.
    """
    target = folder / path
    target.parent.mkdir(exist_ok=True)
    if not anchor:
        before = target.read_text(encoding="utf-8") + "\n\n" if target.exists() else ""
        target.write_text(before + code, encoding="utf-8")
        return
    lines = target.read_text(encoding="utf-8").splitlines(keepends=True)
    anchored = [number for number, line in enumerate(lines) if anchor in line]
    assert len(anchored) == 1, (path, anchor, anchored)
    anchor_line = lines[anchored[0]]
    margin = "" if code.startswith(" ") else anchor_line[: -len(anchor_line.lstrip())]
    lines.insert(anchored[0] + (side == "below"), textwrap.indent(code, margin))
    target.write_text("".join(lines), encoding="utf-8")


def test_each_part_of_the_page_works_once_its_lines_are_in_the_package(own_run: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    steps = STEP.findall(PAGE)
    assert len(steps) == PAGE.count("```python")
    for step in steps:
        put(tmp_path, *step)
    table = tmp_path / "pairs.tsv"
    sentences = [
        ("Anna met Emma before she left.", "she", "Emma", "Anna", "2"),
        ("Ruth said she ate.", "she", "Ruth", "Jo", "1"),
    ]
    table.write_text("\n".join("\t".join(fields) for fields in sentences) + "\n", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src"), "OMP_NUM_THREADS": "1"}
    call = [sys.executable, "-c", USE, str(tmp_path), str(table), str(own_run)]
    process = subprocess.run(call, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert process.returncode == 0, process.stderr
    assert process.stdout.splitlines()[:5] == [
        "corpus 1 {'a word does not occur exactly once': 1}",
        "position [2.0, 2.0] True",
        "prediction True",
        "map (2, 1, 8) True mean of the heads",
        "command Anna met Emma before she left.",
    ]
    measured = json.loads((own_run / "metrics.json").read_text(encoding="utf-8"))["row_entropy"]["en"]["all"]
    assert measured["items"] > 0 and 0 < measured["bits"] < 4
    page = (own_run / "report.html").read_text(encoding="utf-8")
    assert page.index(">Meaning, position or a favourite word?<") < page.index(">One word or many?<")
    assert f"{measured['bits']:.2f}" in page[page.index(">One word or many?<") :]


@pytest.mark.parametrize(
    ("part", "files"), [("position encoding", 2), ("prediction head", 2), ("corpus", 2), ("measure", 3), ("command", 1)]
)
def test_a_part_touches_so_few_files_of_the_package(part: str, files: int) -> None:
    section = PAGE.split(f"\n## A {part}\n")[1].split("\n## ")[0]
    sources = {path for path, *_ in STEP.findall(section) if path.startswith("src/")}
    assert len(sources) == files


@pytest.mark.parametrize("slot", SLOTS)
def test_the_page_tells_of_every_slot_what_its_build_is_called_with(slot: str) -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{slot}` |"))
    assert row.split("|")[3].strip() == ", ".join(SLOTS[slot].arguments)

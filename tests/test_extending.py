"""docs/extending.md: its lines are put into a copy of the package, and the parts are used there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from anaphora.config import BUILT_FROM

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
from anaphora.analysis.flow import pronoun_maps
from anaphora.config import VARIANTS, construct
from anaphora.data.batch import Encoded, evaluation_batches
from anaphora.data.settings import Batching, Data, WordVocabulary
from anaphora.data.store import load
from anaphora.data.vocabulary import build
from anaphora.model import settings
from anaphora.model.resolver import Resolver

assert Path(anaphora.__file__).is_relative_to(sys.argv[1])
read = construct(Data, {"kind": "pairs", "path": sys.argv[2], "dev_share": 0.0, "test_share": 0.0}, "data")
corpus = load(read)
examples = corpus.examples("train")
print("corpus", len(examples), dict(corpus.report.reasons))
tokenizer = build(WordVocabulary(min_count=1), [one.text for one in examples])
position = construct(settings.Position, {"kind": "decay", "start": 2.0}, "model.position")
readout = construct(settings.Readout, {"kind": "cosine"}, "task.readout")
shape = settings.Model(width=8, layers=2, position=position, attention=settings.MultiHead(heads=2),
    feed_forward=settings.Gelu(), norm=settings.LayerNorm(), initialisation=settings.Xavier())
resolver = Resolver(shape, readout, tokenizer.size)
data, batching = Encoded(examples, tokenizer), Batching(tokens=64, row_tokens=32)
batch = next(iter(evaluation_batches(data, batching, 0)))
resolver.readout.loss(resolver.see(batch), batch).mean().backward()
print("position", resolver.encoder.position.rate.tolist(), bool(resolver.encoder.position.rate.grad.any()))
print("readout", bool(resolver.readout.factor.grad))
rows = pronoun_maps(resolver.eval(), data, batching, readout, ["raw", "mean_of_heads"])
one, heads = (rows[name].records[0].weights for name in ("mean_of_heads", "raw"))
print("map", one.shape, bool(abs(one[:, 0] - heads.mean(axis=1)).max() < 1e-6))
"""


def put(folder: Path, path: str, side: str, anchor: str, code: str) -> None:
    """Put the lines of one step where the page says; without an anchor at the end, or into a new file."""
    target = folder / path
    if not anchor:
        before = target.read_text(encoding="utf-8") + "\n\n" if target.exists() else ""
        target.write_text(before + code, encoding="utf-8")
        return
    lines = target.read_text(encoding="utf-8").splitlines(keepends=True)
    places = [number for number, line in enumerate(lines) if anchor in line]
    if path.endswith("store.py") and anchor == "match settings:":
        places = [number for number in places if lines[number + 1].strip() == "case sources.Controlled():"][:1]
    assert len(places) == 1, (path, anchor, places)
    lines.insert(places[0] + (side == "below"), code)
    target.write_text("".join(lines), encoding="utf-8")


def test_each_part_of_the_page_works_once_its_lines_are_in_the_package(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    steps = STEP.findall(PAGE)
    assert len(steps) == PAGE.count("```python")
    for step in steps:
        put(tmp_path, *step)
    table = tmp_path / "pairs.tsv"
    told = [
        ("Anna met Emma before she left.", "she", "Emma", "Anna", "2"),
        ("Ruth said she ate.", "she", "Ruth", "Jo", "1"),
    ]
    table.write_text("\n".join("\t".join(fields) for fields in told) + "\n", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src"), "OMP_NUM_THREADS": "1"}
    call = [sys.executable, "-c", USE, str(tmp_path), str(table)]
    found = subprocess.run(call, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines() == [
        "corpus 1 {'a word does not occur exactly once': 1}",
        "position [2.0, 2.0] True",
        "readout True",
        "map (2, 1, 8) True",
    ]


@pytest.mark.parametrize("slot", BUILT_FROM)
def test_the_page_tells_of_every_slot_what_its_build_is_called_with(slot: str) -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{slot}` |"))
    assert row.split("|")[3].strip() == ", ".join(BUILT_FROM[slot])

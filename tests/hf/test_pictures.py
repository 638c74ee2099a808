"""Tests of pictures of one head of a model of transformers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny import TEXTS, tiny_folder


def test_a_head_of_any_family_is_drawn(
    tmp_path_factory: pytest.TempPathFactory,
    tmp_path: Path,
    script: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tiny_folder(tmp_path_factory, "gpt2")
    question = (f"run={folder}", f"text={TEXTS[0]}", "pronoun=she", "candidates=[Anna,Emma]", "output=one.svg")
    missing = script("attention", *question)
    assert missing.status == 2 and f"or choose it with anaphora score run={folder}" in missing.err
    absent = script("attention", *question, "layer=1", "head=4")
    assert absent.status == 2 and "head (4)" in absent.err
    assert script("attention", *question, "layer=1", "head=2").status == 0
    assert {path.name for path in tmp_path.glob("*.svg")} == {"one_heat_map.svg", "one_pronoun_row.svg"}

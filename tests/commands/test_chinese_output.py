"""Tests that the Chinese output of commands has no English words except names of files, settings and metrics."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anaphora.base import translation


def test_commands_are_chinese_from_end_to_end(
    own_run: Path, script: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(translation.VARIABLE, "zh")
    for command, more in (("evaluate", ()), ("extract", ()), ("antecedents", ("untrained=0", "formats=[]"))):
        done = script(command, f"run={own_run}", *more)
        assert done.status == 0, done.err
        left = re.sub(r"/\S+|\b(?:own|MiB|kB|MB|Clark|OntoNotes|BERT-base)\b", "", done.out)
        assert re.findall("[A-Za-z]{2,}", left) == [], done.out
    assert "每个头选中哪个词" in done.err and "篇/s" in done.err

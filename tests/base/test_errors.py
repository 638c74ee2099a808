from __future__ import annotations

import sys
from pathlib import Path

import pytest

from anaphora.base.errors import pip_install


def test_the_python_that_runs_is_named_as_it_would_be_typed_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(tmp_path / ".venv" / "bin" / "python"))
    assert pip_install("'anaphora[bench]'") == ".venv/bin/python -m pip install 'anaphora[bench]'"
    monkeypatch.setattr(sys, "executable", "/opt/my tools/python")
    assert pip_install("wandb") == "'/opt/my tools/python' -m pip install wandb"

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from anaphora.base.errors import UserError
from anaphora.base.files import atomic_write, locked_directory, write_json, write_text


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "a.txt"
    write_text(path, "old")

    def fail() -> None:
        with atomic_write(path) as draft:
            draft.write_text("new")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]


def test_a_written_file_may_be_read_by_others(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "她")
    assert (tmp_path / "a.txt").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "a.txt").read_bytes() == "她".encode()


def test_json_is_readable_and_never_holds_what_json_has_not(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"她": [1, None]})
    assert "她" in path.read_text(encoding="utf-8")
    assert json.loads(path.read_text(encoding="utf-8")) == {"她": [1, None]}
    with pytest.raises(ValueError, match="JSON"):
        write_json(path, float("nan"))
    assert json.loads(path.read_text(encoding="utf-8")) == {"她": [1, None]}


def test_a_directory_is_held_by_one_process_at_a_time(tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from anaphora.base.files import locked_directory
with locked_directory(Path({str(tmp_path)!r})):
    pass
"""
    environment = {"PYTHONPATH": ":".join(sys.path)}
    with locked_directory(tmp_path):
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert "another process is writing into this run directory" in other.stderr
    after = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert after.returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_an_error_lets_the_directory_go(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="mine"), locked_directory(tmp_path):
        raise UserError("mine")
    with locked_directory(tmp_path):
        pass

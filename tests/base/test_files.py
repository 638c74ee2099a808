from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from anaphora.base.checks import shape_problem
from anaphora.base.errors import UserError
from anaphora.base.files import (
    DRAFT_PREFIX,
    atomic_directory,
    atomic_write,
    check_new,
    check_writable,
    locked_directory,
    read_json,
    remove_leftovers,
    write_json,
    write_text,
)


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


def test_links_in_a_directory_from_elsewhere_empty_no_file_behind_them(tmp_path: Path) -> None:
    mine, folder = tmp_path / "mine.txt", tmp_path / "run"
    mine.write_text("mine")
    folder.mkdir()
    (folder / ".lock").symlink_to(mine)
    with pytest.raises(UserError, match=r"run: cannot be written \("), locked_directory(folder):
        pass
    (folder / ".lock").unlink()
    for name in (f"{DRAFT_PREFIX}0", "metrics.json"):
        (folder / name).symlink_to(mine)
    with locked_directory(folder):
        write_text(folder / "metrics.json", "{}")
    assert mine.read_text() == "mine"
    assert [path.name for path in folder.iterdir()] == ["metrics.json"]


def test_an_error_lets_the_directory_go(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="mine"), locked_directory(tmp_path):
        raise UserError("mine")
    with locked_directory(tmp_path):
        pass


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


CONTENDERS = """
import os, sys
from pathlib import Path
from anaphora.base.errors import UserError
from anaphora.base.files import locked_directory
folder = Path(sys.argv[1])
children = []
for _ in range(4):
    child = os.fork()
    if child:
        children.append(child)
        continue
    held = broken = 0
    while held < 100:
        try:
            with locked_directory(folder):
                held += 1
                try:
                    os.close(os.open(folder.parent / "inside", os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    broken += 1
                    continue
                os.unlink(folder.parent / "inside")
        except UserError:
            pass
    os._exit(min(broken, 255))
print(sum(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""


def test_processes_that_let_a_directory_go_break_no_lock_of_others(tmp_path: Path) -> None:
    done = python(CONTENDERS, str(tmp_path / "run"))
    assert (done.stdout, done.stderr) == ("0\n", "")
    assert not list(tmp_path.rglob(".*"))


KILLED = """
import os, signal, sys
from pathlib import Path
from anaphora.base.files import atomic_directory, atomic_write, locked_directory
folder = Path(sys.argv[1])
with locked_directory(folder), atomic_directory(folder / "b") as part:
    with atomic_write(folder / "tables" / "a.csv") as file:
        file.write_text("half")
        (part / "c").write_text("half")
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_leaves_is_removed_by_the_next_one_that_writes_there(tmp_path: Path) -> None:
    assert python(KILLED, str(tmp_path)).returncode == -signal.SIGKILL
    left = [path.name for path in tmp_path.rglob("*") if path.name.startswith(".")]
    assert len(left) == 3 and ".lock" in left
    with locked_directory(tmp_path):
        pass
    assert [path.name for path in tmp_path.rglob("*")] == ["tables"]


def test_what_a_living_process_writes_is_no_leftover(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "a.txt") as file, atomic_directory(tmp_path / "b") as folder:
        (folder / "c.txt").write_text("c")
        file.write_text("a")
        remove_leftovers(tmp_path)
    assert (tmp_path / "a.txt").read_text() == "a"
    assert [path.name for path in (tmp_path / "b").iterdir()] == ["c.txt"]
    assert not list(tmp_path.glob(f"{DRAFT_PREFIX}*"))


@pytest.mark.parametrize("is_open", [False, True])
def test_a_draft_that_another_process_takes_for_a_leftover_as_it_is_made_is_made_again(
    is_open: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Path] = []

    def opened_late(path: Any, *rest: Any, **options: Any) -> int:
        if DRAFT_PREFIX in str(path) and not taken:
            taken.append(Path(path))
            handle = unpatched(path, *rest, **options) if is_open else None
            remove_leftovers(tmp_path)
            if handle is not None:
                return int(handle)
        return int(unpatched(path, *rest, **options))

    unpatched = os.open
    monkeypatch.setattr(os, "open", opened_late)
    with atomic_directory(tmp_path / "a") as folder:
        (folder / "b.txt").write_text("b")
    assert taken and [path.name for path in tmp_path.rglob("*")] == ["a", "b.txt"]


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077, 0o002])
def test_files_and_folders_have_the_permissions_that_the_umask_gives(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        write_text(tmp_path / "a.txt", "a")
        with atomic_directory(tmp_path / "b") as folder:
            (folder / "c").touch()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o666 & ~mask
    assert stat.S_IMODE((tmp_path / "b").stat().st_mode) == 0o777 & ~mask


def test_a_file_has_reached_the_disk_before_it_takes_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    replace = os.replace

    def noted(*paths: Path) -> None:
        steps.append("replace")
        replace(*paths)

    def flushed(handle: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(os, "replace", noted)
    write_text(tmp_path / "a.txt", "a")
    assert steps == ["file", "replace", "folder"]


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    """Prevent this process from extending files during a test."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def occupied(tmp_path: Path) -> list[Path]:
    """Return paths at which neither a file nor a folder can be created."""
    (tmp_path / "file").write_text("mine")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "lost").symlink_to(tmp_path / "nowhere" / "at all")
    return [
        tmp_path / "file" / "x",
        tmp_path / "pipe",
        tmp_path / "pipe" / "x",
        tmp_path / "lost" / "x",
        Path("/proc/x/y"),
    ]


def written(path: Path) -> None:
    write_text(path, "a")


def held(directory: Path) -> None:
    with locked_directory(directory):
        pass


def test_places_that_cannot_be_written_are_refused_in_one_line_and_stay(tmp_path: Path) -> None:
    places = occupied(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    for place in places:
        for attempt in (check_writable, written, held):
            with pytest.raises(UserError, match="cannot be written") as error:
                attempt(place)
            assert str(place.parent) in str(error.value) and "\n" not in str(error.value)
    with pytest.raises(UserError, match="is a folder"):
        check_writable(tmp_path)
    for name, kind in (("file", "a file"), ("lost", "a broken link"), ("pipe", "a device")):
        with pytest.raises(UserError, match=f"is {kind}"):
            check_writable(tmp_path / name / "x")
    assert sorted(tmp_path.rglob("*")) == before and (tmp_path / "file").read_text() == "mine"
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_a_full_disk_is_noticed_before_the_work_and_nothing_is_left_there(tmp_path: Path) -> None:
    with full_disk():
        for attempt, place in ((check_writable, "new/a.csv"), (written, "a.csv"), (held, "new/folder")):
            with pytest.raises(UserError, match="File too large"):
                attempt(tmp_path / place)
    assert list(tmp_path.iterdir()) == []
    check_writable(tmp_path / "new" / "a.csv")
    assert list(tmp_path.iterdir()) == []


SHAPE = {"a": int, "b?": [(float, None)], "c": {str: str}}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"a": 1, "c": {}}', ""),
        ('{"a": 1, "b": [1, 2.5, null], "c": {"d": "e"}, "more": 3}', ""),
        ("[]", "[] is not an object"),
        ("{}", "a: the key is missing"),
        ('{"a": true, "c": {}}', "a: True is not a whole number"),
        ('{"a": 1.5, "c": {}}', "a: 1.5 is not a whole number"),
        ('{"a": 1, "b": 2, "c": {}}', "b: 2 is not a list"),
        ('{"a": 1, "b": [0, "x"], "c": {}}', "b.1: 'x' is not a number"),
        ('{"a": 1, "c": {"d": null}}', "c.d: None is not a text"),
        ('{"a": NaN, "c": {}}', "not JSON: NaN"),
        ('{"a": 1, "c"', "line 1: not JSON: Expecting ':' delimiter at column 13"),
        ('{"a": 1,\n\n"b": [],\n  "c" 2}', "line 4: not JSON: Expecting ':' delimiter at column 7"),
        ("", "line 1: not JSON: Expecting value at column 1"),
        ("[" * 100_000, "the JSON is nested too deeply"),
    ],
)
def test_json_of_another_shape_is_reported_with_its_place_and_the_way_out(
    tmp_path: Path, content: str, problem: str
) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    if not problem:
        assert read_json(path, SHAPE) == json.loads(content)
        return
    with pytest.raises(UserError) as error:
        read_json(path, SHAPE, "write it again")
    joined = ", " if problem.startswith("line ") else ": "
    assert str(error.value) == f"{path}{joined}{problem}; write it again"


def test_json_that_is_no_text_or_no_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(UserError, match="byte 7 is not UTF-8"):
        read_json(tmp_path / "a.json")
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match="cannot be read"):
        read_json(tmp_path / "folder")
    with pytest.raises(FileNotFoundError):
        read_json(tmp_path / "nothing")
    anything: Any = object
    assert shape_problem({"a": [None]}, anything) == ""


def test_a_file_that_must_be_new_is_replaced_only_if_asked(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    check_new(path, overwrite=False)
    path.write_text("theirs")
    with pytest.raises(UserError, match=r"a.csv exists; name another file, or set overwrite=true to replace it"):
        check_new(path, overwrite=False)
    check_new(path, overwrite=True)
    assert path.read_text() == "theirs"

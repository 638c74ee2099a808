"""Trial: a command is interrupted and continued, and its files are compared with those of an uninterrupted one."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.context import ForkServerContext, ForkServerProcess
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import faults
from faults import SIGNALS, Fault, Operations
from works import Work, lay_out

WARM = "warm"
"""Module whose import prepares the process from which all trials are forked."""
LONGEST_SECONDS = 180
LATEST_SECONDS = 15
"""Maximum time in seconds for which a rank may wait for a failed rank."""
_TIMES = {"train_seconds", "curves_seconds", "final/seconds", "seconds", "load"}
_TELLS_TIME = "study.html"
"""File compared without its digits; the numbers on a study's page are also in study.json."""
_OF_HYDRA = "multirun.yaml"
"""Hydra's record of a sweep, which contains the folder's path; it is never read, and is overwritten by each sweep."""
_CACHE, _TEMPORARY = "cache", "tmp"


@dataclass(frozen=True)
class Ending:
    """End of a command: the exit status of each process, the output, the file operations and the duration."""

    statuses: tuple[int | None, ...]
    text: str
    operations: int
    changes: tuple[int, ...]
    seconds: float

    @property
    def succeeded(self) -> bool:
        return set(self.statuses) == {0}


def run(
    context: ForkServerContext, folder: Path, work: Work, arguments: tuple[str, ...], fault: Fault, moment: float = 0.0
) -> Ending:
    """Run a command in a folder, with the fault in its first process, after `moment` seconds if it has no number."""
    log = folder.with_suffix(".log")
    log.write_bytes(b"")
    begun = time.perf_counter()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ready = context.Event()
    processes = []
    for rank in range(2 if fault.kind == "twice" else work.ranks):
        several = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(work.ranks)}
        several |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
        own = several if work.ranks > 1 else {}
        own_fault = fault if rank == 0 else Fault()
        process = context.Process(target=_command, args=(folder, arguments, own_fault, own, log, ready))
        process.start()
        processes.append(process)
    if fault.kind in SIGNALS and fault.at is None:
        ready.wait(LONGEST_SECONDS)  # before that, it is no command that the signal would reach
        processes[0].join(moment)
        if processes[0].is_alive():
            assert processes[0].pid is not None
            os.kill(processes[0].pid, SIGNALS[fault.kind])
    statuses = tuple(_status(process) for process in _together(processes, work.ranks))
    counted = log.with_suffix(".operations")
    operations, changes = json.loads(counted.read_text()) if counted.exists() else (0, ())
    counted.unlink(missing_ok=True)
    text = log.read_text(encoding="utf-8", errors="replace")
    return Ending(statuses, text, operations, tuple(changes), time.perf_counter() - begun)


def _together(processes: list[ForkServerProcess], ranks: int) -> list[ForkServerProcess]:
    """Wait for the first process, and terminate the others if one rank has failed, as torchrun and srun do."""
    if ranks > 1:
        processes[0].join(LONGEST_SECONDS)
        for process in processes[1:]:
            process.join(LATEST_SECONDS)
            if processes[0].exitcode and process.is_alive():
                process.kill()
    return processes


def _status(process: ForkServerProcess) -> int | None:
    process.join(LONGEST_SECONDS)
    if process.exitcode is None:
        process.kill()
        process.join()
        return None
    return process.exitcode


def _command(
    folder: Path, arguments: tuple[str, ...], fault: Fault, variables: dict[str, str], log: Path, ready: Event
) -> None:
    """Run the command in the child process, as a user would, with its own cache."""
    os.chdir(folder)
    handle = os.open(log, os.O_WRONLY | os.O_APPEND)
    counted = os.open(log.with_suffix(".operations"), os.O_WRONLY | os.O_CREAT) if fault.kind == "counted" else None
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    os.environ.update(variables, ANAPHORA_CACHE=str(folder / _CACHE), TMPDIR=str(folder / _TEMPORARY))
    tempfile.tempdir = None
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    sys.argv = ["anaphora", *arguments]

    import torch

    from anaphora.cli import main

    torch.set_num_threads(1)
    operations = Operations(folder, fault)
    faults.prepare(fault)
    operations.watch()
    ready.set()
    try:
        main()
    finally:
        sys.stdout.flush()
        if counted is not None:
            os.pwrite(counted, json.dumps([operations.count, operations.changes]).encode(), 0)


@dataclass(frozen=True)
class Reference:
    """Command without a fault: its files before and after, and its duration and operations."""

    work: Work
    before: Path
    files: dict[str, str]
    operations: int
    changes: tuple[int, ...]
    seconds: float
    largest_file: int


def unbroken(context: ForkServerContext, work: Work, place: Path, times: int = 2) -> Reference:
    """Run a command without a fault, by default twice, and check that both runs write the same files."""
    before = place / "before"
    before.mkdir(parents=True)
    lay_out(before)
    (before / _TEMPORARY).mkdir()
    for arguments in work.before:
        _expect_success(run(context, before, Work("", arguments), arguments, Fault()))
    results = []
    for number in range(times):
        after = Path(shutil.copytree(before, place / f"unbroken_{number}"))
        ending = _expect_success(run(context, after, work, work.arguments, Fault("counted")))
        results.append(state(after))
    if results[0] != results[-1]:
        raise RuntimeError(f"{work.name}: two unbroken runs differ: {difference(results[0], results[-1])}")
    largest = max(path.stat().st_size for path in after.rglob("*") if path.is_file())
    return Reference(work, before, results[0], ending.operations, ending.changes, ending.seconds, largest)


def _expect_success(ending: Ending) -> Ending:
    if not ending.succeeded:
        raise RuntimeError(f"a command that nothing befell ended with {ending.statuses}: {ending.text[-2000:]}")
    return ending


@dataclass(frozen=True)
class Plan:
    """Fault with its time in seconds, if it has no number."""

    fault: Fault
    moment: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """Outcome of a trial.

    Attributes:
        befell: whether the command was still running when the fault occurred.
        problem: description of what is wrong; "" if the final files are those of the uninterrupted command.
    """

    work: str
    fault: Fault
    befell: bool
    problem: str


def trial(context: ForkServerContext, reference: Reference, folder: Path, planned: Plan) -> Outcome:
    """Interrupt a command, continue it, and compare the files.

    Args:
        context: context of the processes.
        reference: the uninterrupted command.
        folder: folder of this trial, which is removed if nothing is wrong.
        planned: the fault and its time.
    """
    work, fault = reference.work, planned.fault
    with _file_system(folder, fault):
        shutil.copytree(reference.before, folder, dirs_exist_ok=True)
        if fault.kind == "read-only":
            _open_to_all(folder)
        if fault.kind == "small disk":
            _resize(folder, _bytes_used(folder) + (fault.at or 0))
        first = run(context, folder, work, work.arguments, fault, planned.moment)
        problems = [*_wrong_end(first, fault), *broken_files(folder)]
        if fault.kind == "small disk":
            _resize(folder, _LARGE)
        if not first.succeeded:
            problems += _taken_up(context, folder, work)
        problems += difference(*(_compared(files, fault) for files in (reference.files, state(folder))))
    if not problems:
        shutil.rmtree(folder, ignore_errors=True)
        folder.with_suffix(".log").unlink()
    befell = not first.succeeded or fault.kind in ("clock", "no cache", "twice")
    return Outcome(work.name, fault, befell, "; ".join(problems))


def _compared(files: dict[str, str], fault: Fault) -> dict[str, str]:
    """Return the files to compare: without the cache if it was deleted.

    After a full disk, shortcuts in the cache are not compared either, since commands do without storing them. After a
    kill, temporary files are not compared, since nothing but the system can remove them.
    """
    of_the_killed = dict.fromkeys(("kill -9", "cut"), f"{_TEMPORARY}/tmp")
    left_out = {"no cache": _CACHE, "small disk": "shortcuts-", **of_the_killed}.get(fault.kind)
    return {name: digest for name, digest in files.items() if left_out is None or left_out not in name}


def _taken_up(context: ForkServerContext, folder: Path, work: Work) -> list[str]:
    """Repeat the commands of a user until the work is done, and return the problems."""
    first_log = folder.with_suffix(".log")
    first_log.rename(folder.with_suffix(".first.log"))
    second = run(context, folder, work, work.again(folder), Fault())
    if second.succeeded or any(done in second.text for done in _DONE):
        folder.with_suffix(".first.log").unlink()
        return []
    return [f"taken up again it ends with {second.statuses}: {second.text[-300:]!r}"]


def _wrong_end(ending: Ending, fault: Fault) -> list[str]:
    """Return the ways in which a command ended wrongly after a fault."""
    problems = ["it hangs"] if None in ending.statuses else []
    alone = len(ending.statuses) == 1 or fault.kind == "twice"
    if "Traceback" in ending.text and alone:  # a process that trains with others tells of their end as torch does
        problems.append(f"a traceback: {ending.text[-300:]!r}")
    judged = ending.statuses if fault.kind == "twice" else ending.statuses[:1]
    if not set(judged) <= _ALLOWED[fault.kind]:
        problems.append(f"it ends with {ending.statuses}: {ending.text[-300:]!r}")
    return problems


_ALLOWED: dict[str, set[int | None]] = {
    "none": {0},
    "kill -9": {0, -signal.SIGKILL},
    "SIGTERM": {0, -signal.SIGTERM, 130, 143},
    "SIGINT": {0, 130},
    "cut": {0, -signal.SIGXFSZ},
    "full": {0, 1, 2},
    "few files": {0, 1, 2},
    "small disk": {0, 1, 2},
    "read-only": {2},
    "no cache": {0, 2},
    "clock": {0},
    "twice": {0, 1, 2},  # 1: a sweep of which another process holds a run
}
"""Allowed exit statuses by kind of fault."""
_DONE = ("this run has finished; there is nothing to resume", "output (exported) is not empty")
"""What a command says that was interrupted when its work was done, or of which a second copy has done it."""
_LARGE = 100 * 2**20


@contextlib.contextmanager
def _file_system(folder: Path, fault: Fault) -> Iterator[None]:
    """Create the folder of a trial, on its own file system for a small disk."""
    folder.mkdir(parents=True)
    if fault.kind != "small disk":
        yield
        return
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_LARGE}", "none", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def _resize(folder: Path, size: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", str(folder)], check=True)


def _bytes_used(folder: Path) -> int:
    file_system = os.statvfs(folder)
    return (file_system.f_blocks - file_system.f_bfree) * file_system.f_frsize


def _open_to_all(folder: Path) -> None:
    """Let another user read all files, and write none except temporary files."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    (folder / _TEMPORARY).chmod(0o777)
    folder.with_suffix(".log").touch()
    folder.with_suffix(".log").chmod(0o666)


def state(folder: Path) -> dict[str, str]:
    """Return a digest of each file without times; for the cache only folders, and for curves nothing."""
    digests = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if name.parts[0] == _CACHE:
            if len(name.parts) == 2:
                digests[str(name)] = ""
        elif path.is_file() and not path.name.startswith("events.out.tfevents"):
            digests[str(name)] = hashlib.sha256(_without_times(path)).hexdigest()
        elif path.is_dir():
            digests[f"{name}/"] = ""
    return digests


def _without_times(path: Path) -> bytes:
    if path.suffix == ".json":
        return json.dumps(_pruned(json.loads(path.read_text(encoding="utf-8")))).encode()
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            rows = [{name: cell for name, cell in row.items() if name not in _TIMES} for row in csv.DictReader(file)]
        return json.dumps(rows).encode()
    if path.name == _TELLS_TIME:
        return re.sub(rb"\d+(?:\.\d+)?", b"", path.read_bytes())
    if path.name == _OF_HYDRA or "logs" in path.parts:
        return b""
    return path.read_bytes()


def _pruned(content: Any) -> Any:
    if isinstance(content, dict):
        return {name: _pruned(value) for name, value in content.items() if name not in _TIMES}
    return [_pruned(value) for value in content] if isinstance(content, list) else content


def difference(expected: dict[str, str], files: dict[str, str]) -> list[str]:
    """Describe which files are missing, unexpected or different."""
    groups = {
        "missing": expected.keys() - files.keys(),
        "left behind": files.keys() - expected.keys(),
        "different": {name for name in expected.keys() & files.keys() if expected[name] != files[name]},
    }
    return [f"{word}: {', '.join(sorted(names))}" for word, names in groups.items() if names]


def broken_files(folder: Path) -> list[str]:
    """Return the files with a final name that are incomplete."""
    problems = []
    for path in folder.rglob("*"):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.is_file() and not hidden and path.suffix in _READERS and path.name != _OF_HYDRA:
            try:
                _READERS[path.suffix](path)
            except Exception as error:
                problems.append(f"half-written: {path.relative_to(folder)} ({str(error)[:100]})")
    return problems


def _read_arrays(path: Path) -> None:
    from anaphora.base.tensors import read_arrays

    read_arrays(path)


def _read_checkpoint(path: Path) -> None:
    from anaphora.training.checkpoints import read_checkpoint

    read_checkpoint(path)


def _read_parquet(path: Path) -> None:
    from pyarrow import parquet

    parquet.read_table(path)


def _read_lines(path: Path) -> None:
    if not path.read_text(encoding="utf-8").endswith("\n"):
        raise ValueError("its last line has no end")


def _read_page(path: Path) -> None:
    if not path.read_text(encoding="utf-8").rstrip().endswith("</html>"):
        raise ValueError("it has no end")


_READERS = {
    ".json": lambda path: json.loads(path.read_text(encoding="utf-8")),
    ".safetensors": _read_arrays,
    ".ckpt": _read_checkpoint,
    ".parquet": _read_parquet,
    ".csv": _read_lines,
    ".jsonl": _read_lines,
    ".yaml": _read_lines,
    ".html": _read_page,
}

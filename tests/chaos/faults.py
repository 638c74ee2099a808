"""Faults of a command at one of its file operations: a signal, a full disk or another failure.

The faults are injected in the process of the command, without hooks in the package. Operations, including those of
libraries, are counted by an audit hook of the interpreter; `write` and `fsync`, which it does not report, are wrapped.
Writes that libraries make without the interpreter are interrupted by `cut`, in the system's own `write`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import shutil
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SIGNALS = {"kill -9": signal.SIGKILL, "SIGTERM": signal.SIGTERM, "SIGINT": signal.SIGINT}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGING = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink", "os.chmod")
_NOBODY = 65534


@dataclass(frozen=True)
class Fault:
    """Fault of a process.

    Attributes:
        kind: a name in `SIGNALS`; `cut` (kill while writing a file, at byte `at`); `full` (no space from operation `at`
            on); `few files` (no more files can be open than at operation `at`); `small disk` (a file system with `at`
            free bytes); `read-only` (a user without write permission); `no cache` (another process deletes the cache);
            `clock` (every clock reading is wrong by hours); `twice` (the command is started twice at once); `none`; or
            `counted` (no fault, but operations are counted).
        at: number of a file operation, from 1 on, or of a byte for `cut`; None for a random moment, chosen by the
            parent process.
    """

    kind: str = "none"
    at: int | None = None

    def __str__(self) -> str:
        return self.kind if self.at is None else f"{self.kind} at {self.at}"


class Operations:
    """Counter of this process's file operations below a folder, which triggers a fault at one of them.

    Attributes:
        count: number of operations.
        changes: operations before which the files differ from those before the previous operation. A kill at any other
            operation has the result of a kill at the nearest of these.
    """

    def __init__(self, folder: Path, fault: Fault) -> None:
        self.folder = f"{folder}{os.sep}"
        self.fault = fault
        self.count = 0
        self.changes: list[int] = []
        self._quiet = False
        self._files: object = None

    def watch(self) -> None:
        """Start counting. This cannot be undone, so the process should end with the command."""
        sys.addaudithook(self._audited)
        for name in ("write", "fsync"):
            setattr(os, name, self._counting(getattr(os, name)))

    def _audited(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            if self._is_below(arguments[0]):
                self._one(changes=bool((arguments[2] or 0) & _WRITING))
        elif event in _CHANGING and self._is_below(arguments[0]):
            self._one(changes=event not in ("os.remove", "os.rmdir"))

    def _counting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(handle: int, *arguments: Any) -> Any:
            if stat.S_ISREG(os.fstat(handle).st_mode):
                self._one(changes=True)
            return function(handle, *arguments)

        return counted

    def _is_below(self, path: Any) -> bool:
        if isinstance(path, int):
            return True
        name = os.fsdecode(path)
        return not os.path.isabs(name) or name.startswith(self.folder)

    def _one(self, changes: bool) -> None:
        if self._quiet:
            return
        self.count += 1
        if self.fault.kind == "counted":
            files = sorted((path, entry.st_ino, entry.st_size, entry.st_mtime_ns) for path, entry in self._entries())
            if files != self._files:
                self._files = files
                self.changes.append(self.count)
        if self.fault.at is None or self.count < self.fault.at:
            return
        if self.fault.kind == "full":
            if changes:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        elif self.count == self.fault.at:
            self._quiet = True
            try:
                self._happen()
            finally:
                self._quiet = False

    def _entries(self) -> Iterator[tuple[str, os.stat_result]]:
        for folder, folders, files in os.walk(self.folder):
            for name in (*folders, *files):
                with contextlib.suppress(FileNotFoundError):  # of another thread
                    yield os.path.join(folder, name), os.lstat(os.path.join(folder, name))

    def _happen(self) -> None:
        if self.fault.kind in SIGNALS:
            os.kill(os.getpid(), SIGNALS[self.fault.kind])
        elif self.fault.kind == "few files":
            next_free = os.open(os.devnull, os.O_RDONLY)
            os.close(next_free)
            resource.setrlimit(resource.RLIMIT_NOFILE, (next_free, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        elif self.fault.kind == "no cache":
            shutil.rmtree(os.environ["ANAPHORA_CACHE"], ignore_errors=True)


def prepare(fault: Fault) -> None:
    """Prepare a fault before the command starts."""
    if fault.kind == "cut":
        assert fault.at is not None
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it, and a write then fails
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (fault.at, fault.at))
    elif fault.kind == "clock":
        _let_the_clock_jump()
    elif fault.kind == "read-only" and os.geteuid() == 0:
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)


def _let_the_clock_jump() -> None:
    real, hours = time.time, [0, 5, -48, 1, -1, 9000, -9000]
    readings = 0

    def jumping() -> float:
        nonlocal readings
        readings += 1
        return real() + 3600 * hours[readings % len(hours)]

    time.time = jumping

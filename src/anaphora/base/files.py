"""Files that are written whole or not at all, and directories that one run holds at a time."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from anaphora.base.errors import UserError


@contextlib.contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place when the block ends well, and vanishes when it does not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
        draft.chmod(0o644)
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text, whole or not at all."""
    with atomic_write(path) as draft:
        draft.write_text(text, encoding="utf-8")


def write_json(path: Path, content: Any) -> None:
    """Write readable JSON, whole or not at all; NaN and infinities are refused, for JSON has none."""
    write_text(path, json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False) + "\n")


@contextlib.contextmanager
def locked_directory(directory: Path) -> Iterator[None]:
    """Hold a run directory, so that no other process writes into it.

    Raises:
        UserError: another process holds it.
    """
    directory.mkdir(parents=True, exist_ok=True)
    lock = FileLock(directory / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise UserError(f"{directory}: another process is writing into this run directory") from None
    try:
        yield
    finally:
        lock.release()
        (directory / ".lock").unlink(missing_ok=True)

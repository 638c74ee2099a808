"""Atomic file writes, and directories locked for one process at a time.

Content is first written to a hidden draft file in the folder of the destination; the writing process locks the draft.
An unlocked draft was left by a killed process; the next process that writes to the folder, or locks the folder, removes
the draft. On Windows drafts are not locked, and drafts of killed processes are not removed. A path that cannot be
written raises a `UserError`.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import hashlib
import io
import json
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import has_fcntl, lock_descriptor

from anaphora.base.checks import shape_problem
from anaphora.base.errors import UserError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

DRAFT_PREFIX = ".anaphora-draft-"
LOCK_FILE = ".lock"
OTHER_FILE, OTHER_FOLDER = "name another file with output=", "name another folder with output="
"""Advice in the error message about a file or folder that cannot be written."""
_LEFTOVER_DEPTH = 2  # number of levels of subfolders of a locked folder in which commands write
_NOT_THROUGH_A_LINK = getattr(os, "O_NOFOLLOW", 0)  # Windows lacks this flag
_PROBE_BYTES = 4096  # a full disk may still take an empty file


@contextlib.contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a temporary file (draft) that replaces `path` if the `with` block succeeds, and is removed otherwise.

    The draft is flushed to disk before it replaces the file. The file's permissions follow the umask. An OSError in the
    `with` block becomes a `UserError`.
    """
    with _os_errors_as_user_errors(path):
        _refuse_other_than_file(path)
        with new_draft(path.parent, path.suffix) as draft:
            yield draft
            _flush(draft)
            os.replace(draft, path)
            _flush_folder(path.parent)


@contextlib.contextmanager
def atomic_directory(path: Path) -> Iterator[Path]:
    """Yield a temporary directory (draft) that becomes `path` if the `with` block succeeds, and is removed otherwise.

    A path that exists and is not empty, and an OSError in the `with` block, raise a `UserError`.
    """
    with _os_errors_as_user_errors(path), new_draft(path.parent, None) as draft:
        yield draft
        for file in draft.rglob("*"):
            if file.is_file():
                _flush(file)
        draft.rename(path)
        _flush_folder(path.parent)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically."""
    with atomic_write(path) as draft:
        draft.write_text(text, encoding="utf-8")


def write_json(path: Path, content: Any) -> None:
    """Write indented JSON atomically; raise ValueError for NaN and infinities, which JSON lacks."""
    write_text(path, json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False) + "\n")


def stored_settings(settings: DataclassInstance) -> dict[str, Any]:
    """Return settings as a dictionary with the values that JSON can store; for example, tuples become lists."""
    stored: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(settings)))
    return stored


def write_csv(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write rows as CSV atomically, with the keys of all rows as columns; None becomes an empty field."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, buffer.getvalue())


_ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


def parse_json(
    text: str,
    where: str,
    *,
    of_file: bool = False,
    constant: Callable[[str], Any] | None = None,
    members: Callable[[list[tuple[str, Any]]], Any] | None = None,
) -> Any:
    """Parse JSON text.

    Args:
        where: source of the text, for error messages.
        of_file: whether the text is a whole file, so that error messages also name the line.
        constant: function that converts NaN and infinities, which JSON lacks; by default they become floats.
        members: function that converts the names and values of an object, by default to a dictionary.

    Raises:
        UserError: the text is not JSON, is nested too deeply, or has a NUL character, a lone surrogate or an integer
            with too many digits.
    """
    try:
        content = json.loads(text, parse_constant=constant, object_pairs_hook=members)
        if "\\u" in text:
            written = json.dumps(content, ensure_ascii=False)
            written.encode("utf-8")
            if _ESCAPED_NUL.search(written):
                raise UserError(f"{where}: it has a NUL character (\\u0000), which no text has")
    except json.JSONDecodeError as error:
        place = f"{where}, line {error.lineno}" if of_file else where
        problem = error.msg.removesuffix(" at")  # "Unterminated string starting at"
        raise UserError(f"{place}: not JSON: {problem} at column {error.colno}") from None
    except RecursionError:
        raise UserError(f"{where}: the JSON is nested too deeply") from None
    except UnicodeEncodeError:
        raise UserError(f"{where}: it has half of a character (a lone surrogate, \\ud800 to \\udfff)") from None
    except UserError:
        raise
    except ValueError as error:  # an integer with more digits than Python parses
        raise UserError(f"{where}: the JSON cannot be read ({error})") from None
    return content


def read_json(
    path: Path, shape: Any = object, way_out: str = "", *, constant: Callable[[str], Any] | None = None
) -> Any:
    """Read a JSON file of a given shape (`shape_problem`); unlike Python's parser, reject NaN and infinities.

    `way_out` is advice in the error message about a damaged file. If `constant` is given, it converts NaN and
    infinities, as in `parse_json`.

    Raises:
        FileNotFoundError: the file does not exist.
        UserError: the file cannot be read, is not JSON, or does not have the required shape.
    """

    def refuse(constant: str) -> Any:
        raise UserError(f"{path}: not JSON: {constant}")

    advice = f"; {way_out}" if way_out else ""
    try:
        content = parse_json(path.read_text(encoding="utf-8"), str(path), of_file=True, constant=constant or refuse)
    except FileNotFoundError:
        raise
    except UserError as error:
        raise UserError(f"{error}{advice}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: byte {error.start} is not UTF-8{advice}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from None
    problem = shape_problem(content, shape)
    if problem:
        raise UserError(f"{path}: {problem}{advice}")
    return content


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_writable(path: Path, way_out: str = "") -> None:
    """Check, for instance before a long computation, that a file can be written; leave no file behind.

    Raises:
        UserError: the path is a directory or a device, or its folder cannot be created, is read-only or is full, in
            which case the message ends with `way_out`.
    """
    with _os_errors_as_user_errors(path, way_out):
        _refuse_other_than_file(path)
        with tempfile.TemporaryFile(dir=_nearest_folder(path.parent)) as probe:  # without a name if possible
            _probe(probe.fileno())


def check_new(path: Path, overwrite: bool) -> None:
    """Check that an output file can be written and, unless `overwrite` is True, that it does not exist.

    Commands check this at the start, and again before they write, in case another process has written the file.

    Raises:
        UserError: the file exists; also the errors of `check_writable`.
    """
    check_writable(path, OTHER_FILE)
    if path.exists() and not overwrite:
        raise UserError(f"{path} exists; name another file, or set overwrite=true to replace it")


@contextlib.contextmanager
def locked_directory(directory: Path, way_out: str = "") -> Iterator[None]:
    """Lock a directory against other processes during the `with` block; create the directory if it is missing.

    A new directory that is still empty after the block is removed. Drafts that a killed process left in the directory
    are removed first. On a file system without locks, a printed notice replaces the lock.

    Raises:
        UserError: another process holds the lock, or the directory cannot be written, in which case the message ends
            with `way_out`.
    """
    with _os_errors_as_user_errors(directory, way_out):
        _nearest_folder(directory)
        fresh = [folder for folder in (directory, *directory.parents) if not folder.exists()]  # innermost first
        handle = _locked_file(directory)
    try:
        with _os_errors_as_user_errors(directory, way_out):
            _probe(handle)
        remove_leftovers(directory)
        yield
    finally:
        # The lock file is removed while locked: a process that has opened it meanwhile sees this and tries again.
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(handle), (directory / LOCK_FILE).stat()):
                (directory / LOCK_FILE).unlink()
        os.close(handle)
        with contextlib.suppress(OSError):  # the directory is usually not empty
            for folder in fresh:
                folder.rmdir()


def remove_leftovers(folder: Path, depth: int = _LEFTOVER_DEPTH) -> None:
    """Remove temporary files (drafts) of killed processes from a folder and `depth` levels of its subfolders.

    On Windows, nothing is removed.
    """
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(DRAFT_PREFIX):
                _remove_unless_owned(Path(entry.path))
            elif depth and entry.is_dir(follow_symlinks=False):
                remove_leftovers(Path(entry.path), depth - 1)


def _locked_file(directory: Path) -> int:
    """Open and lock a directory's lock file, and return the file's descriptor; create a missing directory.

    On a file system without locks, the file is only opened, and a notice is printed.
    """
    while True:
        directory.mkdir(parents=True, exist_ok=True)
        try:
            # A downloaded directory may have a link of this name to a file that the probe would truncate.
            handle = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT | _NOT_THROUGH_A_LINK, 0o666)
        except FileNotFoundError:
            if directory.exists():
                raise
            continue  # another process has removed the empty directory in the meantime
        try:
            is_held = lock_descriptor(handle, blocking=False)
        except OSError:  # ENOSYS, ENOLCK
            from anaphora.base.console import say  # rich is slow to import

            say(
                "{directory}: this file system has no locks; let only one process at a time write here",
                directory=directory,
            )
            return handle
        if not is_held:
            os.close(handle)
            raise UserError(f"{directory}: another process is writing into this run directory")
        if os.fstat(handle).st_nlink:
            return handle
        os.close(handle)  # its holder has removed the lock file in the meantime


@contextlib.contextmanager
def new_draft(folder: Path, suffix: str | None) -> Iterator[Path]:
    """Yield a new file, or a directory if `suffix` is None, which is removed after the `with` block.

    Drafts that killed processes left in the folder are removed first (`remove_leftovers`).
    """
    folder.mkdir(parents=True, exist_ok=True)
    remove_leftovers(folder, depth=0)
    while True:
        draft = folder / f"{DRAFT_PREFIX}{secrets.token_hex(8)}{suffix or ''}"
        if suffix is None:
            draft.mkdir()
            try:
                handle = os.open(draft, os.O_RDONLY)
            except FileNotFoundError:  # another process has removed it as a leftover
                continue
        else:
            handle = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        if _own(handle):
            break
        os.close(handle)  # another process has removed it as a leftover
    try:
        yield draft
    finally:
        if suffix is None:
            shutil.rmtree(draft, ignore_errors=True)
        else:
            draft.unlink(missing_ok=True)
        os.close(handle)


def _own(handle: int) -> bool:
    """Lock a new draft and return True; return False if another process has removed the draft in the meantime."""
    with contextlib.suppress(OSError):
        return not has_fcntl or (lock_descriptor(handle, blocking=False) and os.fstat(handle).st_nlink > 0)
    return True


def _remove_unless_owned(draft: Path) -> None:
    if not has_fcntl:
        return
    with contextlib.suppress(OSError):
        handle = os.open(draft, os.O_RDONLY if draft.is_dir() else os.O_RDWR)
        try:
            if lock_descriptor(handle, blocking=False):
                shutil.rmtree(draft, ignore_errors=True) if draft.is_dir() else draft.unlink()
        finally:
            os.close(handle)


def _probe(handle: int) -> None:
    """Write some bytes to an open file and remove them again, to detect a full disk."""
    os.write(handle, b"\0" * _PROBE_BYTES)
    os.fsync(handle)
    os.ftruncate(handle, 0)


def _flush(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    """Flush the directory entries of a folder to disk, if the system supports it."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _nearest_folder(folder: Path) -> Path:
    """Return the folder if it exists, else its nearest existing parent; raise UserError if that is not a folder."""
    there = next(one for one in (folder, *folder.absolute().parents) if one.exists() or one.is_symlink())
    if not there.is_dir():
        raise UserError(f"{folder}: cannot be written ({there} is {_kind(there)}); name a folder")
    return there


def _refuse_other_than_file(path: Path) -> None:
    if path.exists() and not path.is_file():
        raise UserError(f"{path}: cannot be written (it is {_kind(path)}); name a file")


def _kind(path: Path) -> str:
    if path.is_dir():
        return "a folder"
    return "a file" if path.is_file() else "a broken link" if path.is_symlink() and not path.exists() else "a device"


@contextlib.contextmanager
def _os_errors_as_user_errors(path: Path, way_out: str = "") -> Iterator[None]:
    """Convert an OSError in the `with` block to a UserError that names the path and ends with `way_out`."""
    try:
        yield
    except OSError as error:
        advice = f"; {way_out}" if way_out else ""
        raise UserError(f"{path}: cannot be written ({error.strerror or error}){advice}") from None

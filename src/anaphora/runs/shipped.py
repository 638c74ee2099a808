"""The trained run inside the package: its folder, and a check that its files are intact.

Importing this module does not import torch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from anaphora.base.errors import UserError
from anaphora.base.files import file_digest, read_json, write_json

SHIPPED = "shipped"
"""Name of the packaged run in settings that take a run; a local folder of this name must be given as ./shipped."""
FOLDER = Path(str(files("anaphora"))) / SHIPPED  # folder of the packaged run, which is written only for a release
RELEASE = "release.json"  # file with the digests of all other files
_WAY_OUT = "install the package again (in a checkout: git checkout -- src/anaphora/shipped)"


@dataclass(frozen=True)
class Release:
    """Hashes that identify the files of a released run."""

    digest: str  # SHA-256 of the names and digests of all files; its first 8 characters name the release
    files: Mapping[str, str]  # digest of each file by its path relative to the folder

    @property
    def short(self) -> str:
        """Return the name of the release: the first 8 characters of the hash of all files (`digest`)."""
        return self.digest[:8]


def shipped_folder() -> Path:
    """Return the folder of the run inside the package; raise UserError if this installation has none."""
    if not (FOLDER / RELEASE).exists():
        raise UserError(
            f"run={SHIPPED}: {FOLDER / RELEASE} is missing, so there is no run inside the package; {_WAY_OUT}, or "
            "train a run (anaphora demo) and name it (run=outputs/demo)"
        )
    return FOLDER


def run_folder(name: str) -> Path:
    """Return the folder of the run inside the package if `name` is "shipped", and otherwise the path `name`.

    The path need not exist. UserError is raised if "shipped" is given, but there is no run inside the package.
    """
    return shipped_folder() if name == SHIPPED else Path(name).expanduser()


def write_release(folder: Path) -> Release:
    """Write release.json with the hashes of all other files in a folder, and return the release."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != RELEASE)
    digests = {path.relative_to(folder).as_posix(): file_digest(path) for path in paths}
    release = Release(_total(digests), digests)
    write_json(folder / RELEASE, {"digest": release.digest, "files": digests})
    return release


def read_release() -> Release:
    """Read release.json of the run inside the package; raise UserError if it is missing or damaged."""
    path = shipped_folder() / RELEASE
    stored = read_json(path, {"digest": str, "files": {str: str}}, _WAY_OUT)
    if _total(stored["files"]) != stored["digest"]:
        raise UserError(f"{path}: damaged: its contents are not what was released; {_WAY_OUT}")
    return Release(stored["digest"], stored["files"])


def check_release() -> Release:
    """Return the packaged run's release; raise UserError if one of its files has changed since the release."""
    release = read_release()
    for name, digest in release.files.items():
        path = FOLDER / name
        try:
            is_whole = file_digest(path) == digest
        except OSError as error:
            raise UserError(f"{path}: cannot be read ({error.strerror or error}); {_WAY_OUT}") from None
        if not is_whole:
            raise UserError(f"{path}: damaged: its contents are not what was released; {_WAY_OUT}")
    return release


def _total(digests: Mapping[str, str]) -> str:
    lines = "".join(f"{name} {digests[name]}\n" for name in sorted(digests))
    return hashlib.sha256(lines.encode()).hexdigest()

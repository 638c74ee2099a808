"""Checks that the runs, data files and devices named in settings exist.

Importing this module does not import torch.
"""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from anaphora.base.device import refuse_missing_device
from anaphora.base.errors import UserError
from anaphora.base.hub import HUB_PREFIX, no_folder_error
from anaphora.model.pretrained.families import CONFIG, WEIGHTS
from anaphora.runs.shipped import SHIPPED, read_release, shipped_folder
from anaphora.settings.data import Data

_DEFAULT_RUN = "outputs/demo"  # default of the setting `run` in some commands
_OF_A_MODEL = ("config.yaml", CONFIG, "metrics.json")
"""Files of which a directory must have at least one to be opened: settings of a run or of a model, or evidence."""
_LISTED = 3  # maximum number of directories that a message lists


def refuse_missing(settings: Any) -> None:
    """Check that the runs, data files and devices named in a command's settings exist.

    This quick check runs before torch is imported; models on the Hugging Face Hub are not looked up.

    Raises:
        UserError: a run, a file or the device is missing, a run is listed twice, or `run` and `runs` are both given.
    """
    device = getattr(getattr(settings, "trainer", None), "device", None)
    if device is not None:
        refuse_missing_device(device)
    runs = run_directories(getattr(settings, "runs", ()))
    if runs and (run := getattr(settings, "run", None)) != getattr(type(settings), "run", None):
        raise UserError(f"run ({run}) and runs ([{', '.join(runs)}]) are both given: give one of them")
    single = {name: getattr(settings, name, None) for name in ("resume", "weights", *(() if runs else ("run",)))}
    if not runs and getattr(settings, "run", None) == _DEFAULT_RUN and not Path(_DEFAULT_RUN).exists():
        way_out = f"anaphora demo trains it, and run={SHIPPED} is the run inside the package"
        raise UserError(f"run ({_DEFAULT_RUN}): there is no such folder; {way_out}")
    for setting, name in (*(("runs", name) for name in runs), *single.items()):
        if name:
            _refuse_missing_run(setting, name, any_model=getattr(settings, "any_model", False))
    data = getattr(settings, "data", None)
    if isinstance(data, Data) and getattr(settings, "resume", None) is None:
        from anaphora.data.store import files_read

        files_read(data)


def _refuse_missing_run(setting: str, name: str, any_model: bool) -> None:
    if name == SHIPPED:
        shipped_folder()
        return
    folder = Path(name)
    if name.startswith(HUB_PREFIX) or any((folder / one).exists() for one in _OF_A_MODEL):
        return
    if any_model and not folder.is_dir():
        raise no_folder_error(setting, name)
    needed = f", and {CONFIG} of a model" if any_model else ""
    inside = _runs_and_models_in(folder)
    more = ", ..." if len(inside) > _LISTED else ""
    way_out = f"; a run or model is in {', '.join(inside[:_LISTED])}{more}" if inside else ""
    raise UserError(f"{folder / 'config.yaml'}: there is no run here (config.yaml is missing{needed}){way_out}")


def _runs_and_models_in(folder: Path) -> list[str]:
    """Return the directories in a folder that hold the settings of a run, or a model's settings and weights."""
    return [
        str(inner)
        for inner in sorted(folder.glob("*/"))
        if (inner / "config.yaml").exists() or ((inner / CONFIG).exists() and (inner / WEIGHTS).exists())
    ]


def say_which_run(settings: Any) -> None:
    """Print which run a command opens, since commands differ in their default run; print nothing for several runs."""
    from anaphora.base.console import say

    run = None if getattr(settings, "runs", None) else getattr(settings, "run", None)
    if run == SHIPPED:
        say("run: shipped, the one inside the package (release {release})", release=read_release().short)
    elif run is not None:
        say("run: {run}", run=run)


def run_directories(named: Sequence[str]) -> list[str]:
    """Expand `*` and `?` in a list of run directories; the matches of a pattern are sorted.

    Raises:
        UserError: a pattern matches no directory, or a directory is listed twice.
    """
    directories: list[str] = []
    for entry in named:
        if "*" not in entry and "?" not in entry:
            directories.append(entry)
            continue
        matched = sorted(path for path in glob.glob(entry.replace("[", "[[]")) if Path(path).is_dir())
        if not matched:
            raise UserError(f"runs ({entry}) matches no directory")
        directories += matched
    places: set[Path] = set()
    for directory in directories:
        if Path(directory).resolve() in places:
            raise UserError(f"runs ([{', '.join(named)}]) must name each run once; {directory} is listed twice")
        places.add(Path(directory).resolve())
    return directories

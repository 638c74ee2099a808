"""Stored results of a study's runs: measurements, and reasons for failures."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.scores.cells import rounded
from anaphora.base.errors import UserError
from anaphora.base.files import read_json, write_json
from anaphora.runs.directory import RunFiles
from anaphora.settings.run import Config, config_yaml
from anaphora.studies.grid import Job
from anaphora.studies.plan import SETTINGS_MEASURES

GroupMeasures = dict[str, dict[str, dict[str, float | None]]]
"""{language: {group: {measure: value}}}.

A group of items is "all", a cue category ("set" or "role"), or a group formed by a measure, such as "distance 8".
"""

MEASURED_FILE = "measured.json"
FAILURE_FILE = "failure.json"

_WAY_OUT = "delete it, and the study measures the run again"
_NUMBER = (float, None)
_MEASURED = {
    "query": {str: object},
    "head": ([int], None),
    "train_seconds": _NUMBER,
    "groups": {str: {str: {str: _NUMBER}}},
}


@dataclass(frozen=True)
class Query:
    """Measures to compute for every run of a study, and the items to compute them on.

    Attributes:
        measures: names of the measures.
        split: split of the items.
        items: approximate number of items; by default the limit in the settings of the run, if any.
        overwrite: whether to replace stored measures of another split or number of items.
    """

    measures: list[str]
    split: str
    items: int | None
    overwrite: bool = False

    @property
    def key(self) -> dict[str, Any]:
        """Return the settings that determine the measures, by name."""
        return {"measures": self.measures, "split": self.split, "items": self.items}

    @property
    def needs_runs(self) -> bool:
        """Return whether any measure needs a finished run."""
        return any(measure not in SETTINGS_MEASURES for measure in self.measures)


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """Stored results of one run of a study.

    Attributes:
        status: "finished", "failed", "unfinished" or "not begun".
        error: reason for a failure; empty otherwise.
        groups: values of the measures for each language and group of items; empty unless the run is finished.
        head: layer and index of the chosen head. None if heads were not scored or the run is not finished.
        seconds: training time in seconds; None if the run was not trained or is not finished.
        measured_on: hashes of the evaluated items and of the evaluation code; empty unless the run is finished.
    """

    cell: str
    seed: int
    status: str
    error: str = ""
    groups: GroupMeasures = field(default_factory=dict)
    head: tuple[int, int] | None = None
    seconds: float | None = None
    measured_on: Mapping[str, str] = field(default_factory=dict)


def read_record(job: Job, query: Query) -> RunRecord:
    """Read the stored results of a run from its directory, without measuring anything.

    The status is "failed" if the last attempt failed, otherwise "finished" if the measures of `query` are stored.

    Raises:
        UserError: a file is damaged.
    """
    # Each attempt first deletes the failure file. The file is thus from the last attempt; the measures may be older.
    failure = _read(job.directory / FAILURE_FILE, {"error": str})
    record = partial(RunRecord, cell=job.cell, seed=job.seed)
    if failure:
        return record(status="failed", error=failure["error"])
    stored = _read_measured(job.directory)
    wanted = query.key
    if not query.needs_runs:  # there is no config.yaml, so the settings are compared here
        wanted["settings"] = settings_digest(job.config)
    if stored and {name: stored["query"].get(name) for name in wanted} == wanted:
        head = tuple(stored["head"]) if stored["head"] else None
        about = {name: str(stored["query"][name]) for name in ("data", "code") if name in stored["query"]}
        record = partial(record, groups=stored["groups"], head=head, measured_on=about)
        return record(status="finished", seconds=stored["train_seconds"])
    return record(status="unfinished" if RunFiles(job.directory).config.exists() else "not begun")


def check_replaced(job: Job, query: Query) -> None:
    """Check that storing the measures of `query` would not overwrite other measures of a run.

    Raises:
        UserError: measures that are stored for another split or other items, or are not in `query`, would be
            overwritten, and `query.overwrite` is not set.
    """
    try:
        stored = _read_measured(job.directory)
    except UserError:  # a damaged file may be overwritten
        return
    if stored is None or query.overwrite:
        return
    for name, now in query.key.items():
        before = stored["query"].get(name, now)
        if before != now and not (name == "measures" and set(before) <= set(now)):
            raise UserError(
                f"{job.directory / MEASURED_FILE} holds the results with {name}={json.dumps(before)}, which would be "
                f"overwritten by those with {name}={json.dumps(now)}; choose another name=, or set overwrite=true"
            )


def settings_digest(config: Config) -> str:
    """Return a hash of a run's settings without the run's directory and `trainer.progress`."""
    shown = replace(config.trainer, progress=True)  # a run in its own process shows no progress
    return hashlib.sha256(config_yaml(replace(config, name=None, output="", trainer=shown)).encode()).hexdigest()[:16]


def is_measured(directory: Path, key: Mapping[str, Any]) -> bool:
    """Return whether a directory holds undamaged measures that were stored with the given key."""
    try:
        stored = _read_measured(directory)
    except UserError:
        return False
    return stored is not None and stored["query"] == key


def measure_once(directory: Path, key: Mapping[str, Any], measured: Callable[[], Mapping[str, Any]]) -> None:
    """Compute measures by calling `measured` and store them with `key`, unless measures with this key are stored."""
    if is_measured(directory, key):
        return
    # An interrupted process must not leave outdated measures.
    (directory / MEASURED_FILE).unlink(missing_ok=True)
    write_json(directory / MEASURED_FILE, {"query": key, **measured()})


def group_means(
    values: Mapping[str, NDArray[np.floating]], groups: Iterable[tuple[str, str, NDArray[Any]]]
) -> GroupMeasures:
    """Return the mean of every measure over the items of each group, and the number of items.

    Args:
        values: for each measure, its value for each of the N items: (N,).
        groups: language, name and items of each group; the items are given as indices or as a mask of shape (N,).
    """
    measured: GroupMeasures = {}
    for language, group, items in groups:
        chosen = {name: of_items[items] for name, of_items in values.items()}
        means = {name: rounded(of_group.mean()) for name, of_group in chosen.items()}
        count = float(len(next(iter(chosen.values()))))
        measured.setdefault(language, {})[group] = {**means, "items": count}
    return measured


def merge(groups: GroupMeasures, measured: GroupMeasures) -> None:
    """Merge `measured` into `groups` in place."""
    for language, of_language in measured.items():
        for group, values in of_language.items():
            groups.setdefault(language, {}).setdefault(group, {}).update(values)


def _read_measured(directory: Path) -> dict[str, Any] | None:
    stored = _read(directory / MEASURED_FILE, _MEASURED)
    if stored and stored["head"] is not None and len(stored["head"]) != 2:
        raise UserError(
            f"{directory / MEASURED_FILE}: head: {stored['head']!r:.60} is not a layer and a head; {_WAY_OUT}"
        )
    return stored


def _read(path: Path, shape: Mapping[str, Any]) -> dict[str, Any] | None:
    try:
        return dict(read_json(path, shape, _WAY_OUT))
    except FileNotFoundError:
        return None

"""A sweep, `-m`: what sets its jobs apart, and what becomes of a job that fails while the others go on."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode

_FAILURES_FOLDER = "ANAPHORA_SWEEP_FAILURES"
"""The variable that tells the jobs, which may run in processes of their own, where to write down how they failed."""
_WITHOUT_EFFECT = ("name=", "output=", "trainer.", "trainer=", "resume=", "objective=")
"""Overrides that do not change what a run is: the same job finds its run again with others of these."""
_LONGEST_NAME = 60  # characters, the digest aside


def is_sweep_job() -> bool:
    """Whether the command that runs is one job of a sweep."""
    return HydraConfig.initialized() and HydraConfig.get().mode is RunMode.MULTIRUN


def job_overrides() -> list[str]:
    """What sets the running job of a sweep apart; nothing where there is no sweep."""
    if not is_sweep_job():
        return []
    return [override for override in HydraConfig.get().overrides.task if not override.startswith(_WITHOUT_EFFECT)]


def job_name(overrides: list[str]) -> str:
    """The name of a job's run, which follows from its overrides: a job that is queued again finds its run.

    It shows the last of them, each by the last part of its key, and ends with a digest of all.
    """
    shown: list[str] = []
    for override in reversed(overrides):
        key, _, value = override.partition("=")
        short = re.sub(r"[^\w.=+-]+", "_", f"{re.split(r'[./]', key)[-1]}={value}")
        if len(",".join([short, *shown])) > _LONGEST_NAME:
            break
        shown.insert(0, short)
    digest = hashlib.sha256(json.dumps(overrides).encode()).hexdigest()[:8]
    return "-".join([*([",".join(shown)] if shown else []), digest])


@contextmanager
def sweep_failures() -> Iterator[list[str]]:
    """A block in which jobs may fail; when it ends, the list holds a line for each that did."""
    lines: list[str] = []
    with tempfile.TemporaryDirectory(prefix="anaphora-sweep-") as folder:
        before = os.environ.get(_FAILURES_FOLDER)
        os.environ[_FAILURES_FOLDER] = folder
        try:
            yield lines
        finally:
            records = [json.loads(path.read_text(encoding="utf-8")) for path in Path(folder).glob("*.json")]
            lines += [
                f"{record['overrides']}: {record['reason']}" for record in sorted(records, key=lambda one: one["job"])
            ]
            os.environ.pop(_FAILURES_FOLDER)
            if before is not None:
                os.environ[_FAILURES_FOLDER] = before


def note_failure(reason: str) -> None:
    """Write down why the running job of a sweep failed."""
    job = HydraConfig.get().job
    record = {"job": job.num, "overrides": ",".join(HydraConfig.get().overrides.task), "reason": reason}
    folder = os.environ.get(_FAILURES_FOLDER)
    if folder is not None and Path(folder).is_dir():  # a job on another machine has its own log alone
        (Path(folder) / f"{job.num}.json").write_text(json.dumps(record), encoding="utf-8")

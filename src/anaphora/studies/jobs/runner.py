"""Execution of a study's runs in this process or in worker processes, and the loop that waits for started runs.

A worker process, `python -m anaphora.studies.jobs.runner`, reads its job from standard input and exits as soon as the
input closes, which means that its parent has ended. Files are written atomically, so none is left incomplete.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Protocol, TextIO

from anaphora.base.console import say
from anaphora.base.errors import UserError, one_line
from anaphora.base.files import write_json
from anaphora.base.locale.translation import _
from anaphora.runs.directory import RunFiles, locked_run
from anaphora.settings.run import Config
from anaphora.settings.stored import from_plain
from anaphora.studies.grid import Job
from anaphora.studies.jobs.progress import StudyProgress
from anaphora.studies.measures import measure_run, measure_settings
from anaphora.studies.plan import StudyPlan
from anaphora.studies.records import FAILURE_FILE, Query
from anaphora.training.reuse import load_or_train

_POLL_SECONDS = 0.5


class StartedRun(Protocol):
    """Interface of a started run: a process, or a job on a cluster."""

    def is_running(self) -> bool:
        """Return True if the run is in progress, neither queued nor ended."""

    def has_ended(self) -> bool:
        """Return True if the run has ended."""

    def failure(self) -> str:
        """Return the reason if the run failed without storing one; otherwise an empty string."""

    def cancel(self) -> None:
        """Stop the run."""


class Executor(Protocol):
    """Interface of an executor that starts runs.

    Attributes:
        at_a_time: largest number of runs at a time.
        outlives_command: whether runs continue if the command is interrupted.
    """

    at_a_time: int
    outlives_command: bool

    def start(self, jobs: Sequence[Job]) -> Sequence[StartedRun]:
        """Start the runs of the jobs."""


class LocalProcesses:
    """Executor that starts each run as a process on this machine and writes its output to a file in `logs`.

    It does not use a process pool, so that a run killed for lack of memory does not affect the others.
    """

    outlives_command = False

    def __init__(self, plan: StudyPlan, query: Query, logs: Path) -> None:
        self.at_a_time = plan.side_by_side
        self.threads = plan.threads or max(1, (os.cpu_count() or 1) // plan.side_by_side)
        self.query, self.train, self.logs = query, plan.train, logs

    def start(self, jobs: Sequence[Job]) -> list[StartedRun]:
        """Start one process for each run."""
        self.logs.mkdir(parents=True, exist_ok=True)
        return [self._start(job) for job in jobs]

    def _start(self, job: Job) -> _Process:
        environment = {**os.environ, "OMP_NUM_THREADS": str(self.threads)}
        with (self.logs / f"{job.cell}_seed_{job.seed}.log").open("w", encoding="utf-8") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "anaphora.studies.jobs.runner"],
                stdin=subprocess.PIPE, stdout=log, stderr=log, text=True, env=environment,
            )  # fmt: skip
        # The input stays open: the worker exits when it closes.
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the process has already ended
            process.stdin.write(encode_job(job.config, self.query, self.train, self.threads))
            process.stdin.flush()
        return _Process(process)


class _Process:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def is_running(self) -> bool:
        return self.process.poll() is None

    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def failure(self) -> str:
        status = self.process.returncode
        return f"its process ended with status {status}" if status else ""

    def cancel(self) -> None:
        self.process.terminate()


def run_with(executor: Executor, jobs: Sequence[Job], progress: StudyProgress) -> None:
    """Start the runs, at most `executor.at_a_time` at a time, and wait for all of them.

    An interrupt cancels the runs, unless they outlive the command; the same command then waits for them again.

    Raises:
        UserError: after the first run, if the study would take longer than `minutes`; the other runs are cancelled.
    """
    queued, started = list(jobs), list[tuple[Job, StartedRun]]()
    try:
        while queued or started:
            fresh = [queued.pop(0) for _ in range(min(len(queued), executor.at_a_time - len(started)))]
            if fresh:
                started += zip(fresh, executor.start(fresh), strict=True)
            for pair in list(started):
                job, run = pair
                if run.has_ended():
                    started.remove(pair)
                    progress.end(job, run.failure())
                elif run.is_running():
                    progress.begin(job)
            if started:
                time.sleep(_POLL_SECONDS)
    except BaseException as error:
        if isinstance(error, UserError) or not executor.outlives_command:
            for _job, run in started:
                run.cancel()
        elif isinstance(error, KeyboardInterrupt):
            notice = _("{jobs} jobs are still queued or running; the same command waits for them again")
            say(notice.format(jobs=len(started)))
        raise


def train_and_measure(config: Config, query: Query, train: bool) -> None:
    """Train a run if necessary and measure it; store an error in the run's `FAILURE_FILE` instead of raising it.

    Args:
        config: settings of the run; `output` and `name` give its directory.
        query: measures to take.
        train: whether to train an unfinished run; if False, it is skipped.
    """
    assert config.name is not None
    directory = Path(config.output) / config.name
    if not train and not RunFiles(directory).weights.exists():
        return
    failure = directory / FAILURE_FILE
    failure.unlink(missing_ok=True)  # of the last attempt
    try:
        if query.of_runs:
            run = load_or_train(config, "choose another output= or name=", report=lambda _: None)
            with locked_run(directory):
                measure_run(run, query)
        else:
            with locked_run(directory):
                measure_settings(config, directory, query)
    except Exception as error:  # a failed run does not stop the study
        if not isinstance(error, UserError):
            traceback.print_exc()
        write_json(failure, {"error": one_line(error)})


def encode_job(config: Config, query: Query, train: bool, threads: int) -> str:
    """Encode a job, with progress bars turned off, as one line of JSON for another process or machine."""
    config = replace(config, trainer=replace(config.trainer, progress=False))
    plain = {"settings": asdict(config), "query": asdict(query), "train": train, "threads": threads}
    return json.dumps(plain) + "\n"


def run_encoded(encoded: str) -> None:
    """Run the result of `encode_job` in this process, with the job's number of threads."""
    import torch

    content = json.loads(encoded)
    torch.set_num_threads(content["threads"])
    query = content["query"]
    measures = Query(tuple(query["measures"]), query["split"], query["items"])
    train_and_measure(from_plain(content["settings"], "job"), measures, content["train"])


def _exit_when_closed(stream: TextIO) -> None:
    stream.read()
    os._exit(1)


if __name__ == "__main__":
    job = sys.stdin.readline()
    threading.Thread(target=_exit_when_closed, args=(sys.stdin,), daemon=True).start()
    run_encoded(job)

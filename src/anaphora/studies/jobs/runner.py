"""The runs of a study at work: one after another, in processes of this machine, or as jobs of a cluster."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from anaphora.base.console import say
from anaphora.base.errors import UserError
from anaphora.base.locale.translation import _
from anaphora.studies.grid import Job
from anaphora.studies.jobs.progress import StudyProgress
from anaphora.studies.jobs.worker import encode_job
from anaphora.studies.plan import StudyPlan
from anaphora.studies.records import Query

_POLL_SECONDS = 0.5


class StartedRun(Protocol):
    """A run that was started, as a process or as a job of a cluster."""

    def is_running(self) -> bool:
        """Return whether it is at work, and not only queued."""

    def has_ended(self) -> bool:
        """Return whether it has ended."""

    def failure(self) -> str:
        """Return how it ended, in case it could not write the reason itself; empty if nothing went wrong."""

    def cancel(self) -> None:
        """Stop the run."""


class Executor(Protocol):
    """An executor that starts runs.

    Attributes:
        at_a_time: how many to start before the first ends.
        outlives_command: whether runs go on when the command is interrupted.
    """

    at_a_time: int
    outlives_command: bool

    def start(self, jobs: Sequence[Job]) -> Sequence[StartedRun]:
        """Start one or more runs."""


class LocalProcesses:
    """Starts runs as processes of this machine; what each prints goes to a file of `logs`.

    A process of its own for each run, not a pool: one that the machine kills for its memory ends no other.
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
                [sys.executable, "-m", "anaphora.studies.jobs.worker"],
                stdin=subprocess.PIPE, stdout=log, stderr=log, text=True, env=environment,
            )  # fmt: skip
        # It stays open: the process ends when it closes.
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended already; its status says so
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
    """Start the runs, as many at a time as the executor allows, and wait for all of them.

    An interrupt ends the runs, except those that outlive the command: the same command waits for them again.

    Raises:
        UserError: by the time of its first run the study would take longer than `minutes`; the others are cancelled.
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

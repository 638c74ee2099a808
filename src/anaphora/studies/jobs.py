"""Execution of a study's jobs (runs) in this process or in worker processes, with progress in the terminal.

A worker process, `python -m anaphora.studies.jobs`, reads one job from standard input. It exits when this stream is
closed, because the parent process has then ended; files are written atomically, so none is left incomplete.
"""

from __future__ import annotations

import contextlib
import json
import math
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

from anaphora.base.console import format_bytes, say
from anaphora.base.errors import UserError, one_line
from anaphora.base.files import write_json
from anaphora.base.translation import N_
from anaphora.report.numbers import duration_text
from anaphora.runs.directory import RunFiles, locked_run
from anaphora.settings.model.encoder import about_weights
from anaphora.settings.run import Config, from_plain
from anaphora.settings.vocabulary import SubwordVocabulary
from anaphora.studies.grid import Job
from anaphora.studies.measures import measure_run, measure_settings
from anaphora.studies.page.words import status_text
from anaphora.studies.plan import StudyPlan
from anaphora.studies.records import FAILURE_FILE, Query, RunRecord, read_record
from anaphora.training.loggers import checkpoint_step
from anaphora.training.reuse import load_or_train

_POLL_SECONDS = 0.5
_CHECKPOINT_COPIES = 4  # last weights, two optimizer states per weight, and best weights
_USUAL_VOCABULARY = 5_000  # assumed if the vocabulary size depends on the text; about that of the built-in corpus


class StartedRun(Protocol):
    """Interface of a started run: a process, or a job on a cluster."""

    def is_running(self) -> bool:
        """Return whether the run is in progress, neither queued nor ended."""

    def has_ended(self) -> bool: ...

    def failure(self) -> str:
        """Return the error message to store for a run that has ended without a result; "" to store no message."""

    def cancel(self) -> None: ...


class Executor(Protocol):
    """Interface of an executor that starts runs.

    `at_a_time` is the maximum number of concurrent runs; `outlives_command` tells whether runs continue after the
    command that started them is interrupted.
    """

    at_a_time: int
    outlives_command: bool

    def start(self, jobs: Sequence[Job]) -> Sequence[StartedRun]: ...


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
        self.logs.mkdir(parents=True, exist_ok=True)
        return [self._start(job) for job in jobs]

    def _start(self, job: Job) -> _Process:
        environment = {**os.environ, "OMP_NUM_THREADS": str(self.threads)}
        with (self.logs / f"{job.cell}_seed_{job.seed}.log").open("w", encoding="utf-8") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "anaphora.studies.jobs"],
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

    If the command is interrupted, the runs are cancelled. If `executor.outlives_command` is true, however, the runs
    continue, and a repeated command waits for them.

    Raises:
        UserError: after the first run, if the study would exceed its setting `minutes`; the other runs are cancelled.
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
            message = N_("{jobs:job is|jobs are} still queued or running; the same command waits again")
            say(message, jobs=len(started))
        raise


def train_and_measure(config: Config, query: Query, train: bool) -> None:
    """Train a model if it has not been trained yet, and store its measures.

    If no measure in `query` needs a trained model, nothing is trained, and the measures are computed from the settings.
    An error is stored in the run's `FAILURE_FILE` instead of being raised. If `train` is false and the run has no
    trained weights, nothing is done.
    """
    assert config.name is not None
    directory = Path(config.output) / config.name
    if not train and not RunFiles(directory).weights.exists():
        return
    failure = directory / FAILURE_FILE
    failure.unlink(missing_ok=True)  # left by the previous attempt
    try:
        if query.needs_runs:
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
    """Encode a job as one line of JSON for another process or machine, with progress bars turned off."""
    config = replace(config, trainer=replace(config.trainer, progress=False))
    plain = {"settings": asdict(config), "query": asdict(query), "train": train, "threads": threads}
    return json.dumps(plain) + "\n"


def run_encoded(encoded: str) -> None:
    """Run a job encoded by `encode_job` in this process, with the job's number of threads."""
    import torch

    content = json.loads(encoded)
    torch.set_num_threads(content["threads"])
    train_and_measure(from_plain(content["settings"], "job"), Query(**content["query"]), content["train"])


def _exit_when_closed(stream: TextIO) -> None:
    stream.read()
    os._exit(1)


class StudyProgress:
    """Progress reporter of a study, which also stops a study that would take too long.

    The remaining time is estimated from the remaining training steps and the speed of runs that were not resumed.
    `ended` is the number of runs that have ended, failed runs included.
    """

    def __init__(self, plan: StudyPlan, jobs: Sequence[Job], query: Query) -> None:
        self.plan, self.jobs, self.query = plan, jobs, query
        self.ended = 0
        self.timed_steps, self.timed_seconds = 0, 0.0
        self.begun = time.perf_counter()
        to_train = [job for job in jobs if self._is_to_train(job)]
        # Training steps that each run still needs, counted from its last checkpoint before the study started.
        self._steps_left = {job.directory: job.config.steps - _steps_done(job) for job in to_train}
        # Determined before any start, because the start of a run on a cluster is noticed late.
        self._from_start = {job.directory for job in to_train if not RunFiles(job.directory).config.exists()}
        self._begun: dict[Path, float] = {}
        phrase = N_("study {study}, number of runs: {runs}, {at_a_time} at a time")
        say(phrase, study=plan.name, runs=len(jobs), at_a_time=plan.side_by_side)
        if plan.train and query.needs_runs:
            _print_disk_needed(to_train, plan.side_by_side)

    def begin(self, job: Job) -> None:
        """Record that a run has started."""
        self._begun.setdefault(job.directory, time.perf_counter())

    def end(self, job: Job, error: str = "") -> None:
        """Record the end of a run and print its outcome.

        `error`, if not empty, is stored as the reason for failure if the run itself has stored no result and no error.

        Raises:
            UserError: after the first run, if the study would take longer than its setting `minutes`.
        """
        begun = self._begun.pop(job.directory, None)  # None if its start was not noticed
        seconds = 0.0 if begun is None else time.perf_counter() - begun
        record = self._read_record(job)
        if error and record.status in ("unfinished", "not begun"):
            write_json(job.directory / FAILURE_FILE, {"error": error})
            record = self._read_record(job)
        self.ended += 1
        self._steps_left.pop(job.directory, None)
        first = False
        if begun is not None and job.directory in self._from_start and record.status == "finished":
            first = not self.timed_steps
            self.timed_steps += job.config.steps
            self.timed_seconds += seconds
        left = self._seconds_left()
        has_estimate = left is not None and bool(self._steps_left)
        say(
            N_("{ended} of {runs}  {cell}, seed {seed}: {outcome} ({duration}); about {left} left")
            if has_estimate
            else N_("{ended} of {runs}  {cell}, seed {seed}: {outcome} ({duration})"),
            ended=self.ended,
            runs=len(self.jobs),
            cell=job.cell,
            seed=job.seed,
            outcome=status_text(record.status, record.error),
            duration=duration_text(seconds),
            left=duration_text(left or 0),
        )
        if first and left is not None:
            self._stop_in_time(left)

    def _read_record(self, job: Job) -> RunRecord:
        """Return the stored results of a run, or a record with the status "unfinished" if the results are damaged."""
        try:
            return read_record(job, self.query)
        except UserError:
            return RunRecord(cell=job.cell, seed=job.seed, status="unfinished")

    def _is_to_train(self, job: Job) -> bool:
        """Return whether the job still has to train a model or, if no measure needs a model, to compute its measures.

        If the study trains nothing (`StudyPlan.train`), return False.
        """
        if not self.plan.train:
            return False
        if self.query.needs_runs:
            return not RunFiles(job.directory).weights.exists()
        return self._read_record(job).status != "finished"

    def _seconds_left(self) -> float | None:
        if not self.timed_steps:
            return None
        at_a_time = max(min(self.plan.side_by_side, len(self._steps_left)), 1)
        return sum(self._steps_left.values()) * self.timed_seconds / self.timed_steps / at_a_time

    def _stop_in_time(self, left: float) -> None:
        whole = (time.perf_counter() - self.begun + left) / 60
        if self.plan.minutes is not None and whole > self.plan.minutes:
            raise UserError(
                f"study {self.plan.name}: judging by its first run it would take {math.ceil(whole)} minutes, more "
                f"than minutes={self.plan.minutes:g}; raise minutes, or take fewer seeds or steps (finished runs stay)"
            )


def _steps_done(job: Job) -> int:
    try:
        return checkpoint_step(RunFiles(job.directory))
    except Exception:  # the run itself will fail on a damaged checkpoint
        return 0


def _print_disk_needed(to_train: Sequence[Job], side_by_side: int) -> None:
    left = [weights_bytes(job.config) for job in to_train]
    say(
        "disk      about {weights} for the weights of the runs that are left ({runs}), and at most {more} more "
        "while they train",
        weights=format_bytes(sum(left)),
        runs=len(left),
        more=format_bytes(_CHECKPOINT_COPIES * sum(sorted(left)[-side_by_side:])),
    )


def weights_bytes(config: Config) -> int:
    """Return the approximate size in bytes of a run's weight file.

    If the run starts from a trained model on this machine, this is the size of that model's weight file; otherwise the
    size is estimated from the settings.
    """
    start = RunFiles(Path(config.start)).weights if config.start else None
    if start is not None and start.exists():
        return start.stat().st_size
    known = config.vocabulary.size if isinstance(config.vocabulary, SubwordVocabulary) else _USUAL_VOCABULARY
    matrices = 1 if config.model.tied_output else 2  # the embedding, and the output if it is not tied
    return round(4 * (about_weights(config.model) + matrices * known * config.model.width))


if __name__ == "__main__":
    job = sys.stdin.readline()
    threading.Thread(target=_exit_when_closed, args=(sys.stdin,), daemon=True).start()
    run_encoded(job)

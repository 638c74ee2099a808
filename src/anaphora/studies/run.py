"""A study from its plan to its page: every run re-used, resumed or trained, measured, and put together."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from anaphora.base.console import console
from anaphora.base.device import torch_device
from anaphora.base.errors import UserError
from anaphora.base.files import check_writable, locked_directory, write_csv, write_json
from anaphora.report.figures.files import save_figure
from anaphora.runs.directory import RunFiles
from anaphora.runs.reuse import same_settings
from anaphora.settings.commands.study import StudyPlan
from anaphora.settings.run import Config
from anaphora.settings.stored import read
from anaphora.studies.grid import Job, cells_of, jobs_of
from anaphora.studies.index import INDEX, read_studies, write_study_index
from anaphora.studies.page import draw_study_figures, write_study_page
from anaphora.studies.records import FAILURE_FILE, Query, read_record
from anaphora.studies.summary import summarise, table_rows, terminal_report
from anaphora.studies.worker import encode_job, train_and_measure

_POLL_SECONDS = 0.2  # between two checks of the processes


def run_study(plan: StudyPlan, folder: Path) -> dict[str, Any]:
    """Train and measure what is missing, and write `study.json`, `study.csv`, figures and the page.

    Args:
        plan: the study.
        folder: of the configuration.

    Returns:
        What `study.json` holds.

    Raises:
        UserError: a cell's overrides are wrong or name a device that is not there (before anything runs), a directory
            holds a run of other settings, or the first run shows that the study would take longer than `minutes`.
    """
    cells = cells_of(plan, folder)
    jobs = jobs_of(plan, cells)
    untrained = [job for job in jobs if not RunFiles(job.directory).weights.exists()]
    for device in {job.config.trainer.device for job in untrained if plan.train}:
        torch_device(device)
    query = Query.from_plan(plan)
    _check_directories(jobs)
    root = Path(plan.output) / plan.name
    # The page is about the whole study, also where `only` names a part of it.
    all_jobs = jobs_of(replace(plan, only=[]), cells)
    with locked_directory(root):
        measured = [job for job in jobs if plan.train or RunFiles(job.directory).weights.exists()]
        _check_results(plan, root, all_jobs, measured, query)
        run_jobs(plan, jobs, query)
        study = summarise(plan, cells, [read_record(job, query) for job in all_jobs])
        write_study(plan, study)
    return study


def write_study(plan: StudyPlan, study: dict[str, Any]) -> None:
    """Write a study's numbers, figures and page and the index of all studies, and print its table and its verdict."""
    root = Path(plan.output) / plan.name
    write_json(root / "study.json", study)
    write_csv(root / "study.csv", table_rows(study))
    figures = draw_study_figures(study)
    for name, figure in figures.items():
        save_figure(figure, root / "figures" / name, plan.formats)
    write_study_page(root / "study.html", study, figures)
    index = write_study_index(root.parent)
    for line in terminal_report(study):
        console.print(line, soft_wrap=isinstance(line, str))
    console.print(f"numbers   {root / 'study.json'}", soft_wrap=True)
    console.print(f"page      {root / 'study.html'}", soft_wrap=True)
    console.print(f"all       {index}", soft_wrap=True)


def run_jobs(plan: StudyPlan, jobs: Sequence[Job], query: Query) -> None:
    """Do every run of a study, one after the other or several side by side, and report the progress."""
    progress = _StudyProgress(plan, jobs, query)
    threads = plan.threads or max(1, (os.cpu_count() or 1) // plan.side_by_side)
    if plan.side_by_side > 1:
        _run_in_processes(plan, jobs, query, threads, progress)
        return
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(plan.threads or before)
    try:
        for job in jobs:
            fresh = not RunFiles(job.directory).config.exists()
            started = time.perf_counter()
            train_and_measure(job.config, query, plan.train)
            progress.done(job, time.perf_counter() - started, fresh)
    finally:
        torch.set_num_threads(before)


def _run_in_processes(
    plan: StudyPlan, jobs: Sequence[Job], query: Query, threads: int, progress: _StudyProgress
) -> None:
    waiting = list(reversed(jobs))
    running: dict[subprocess.Popen[str], tuple[Job, float, bool]] = {}
    logs = Path(plan.output) / plan.name / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    try:
        while waiting or running:
            while waiting and len(running) < plan.side_by_side:
                job = waiting.pop()
                fresh = not RunFiles(job.directory).config.exists()
                running[_start_process(job, query, plan.train, threads, logs)] = (job, time.perf_counter(), fresh)
            for process in [process for process in running if process.poll() is not None]:
                job, started, fresh = running.pop(process)
                if process.returncode:
                    write_json(
                        job.directory / FAILURE_FILE, {"error": f"its process ended with status {process.returncode}"}
                    )
                progress.done(job, time.perf_counter() - started, fresh)
            time.sleep(_POLL_SECONDS)
    finally:
        with ExitStack() as ended:
            for process in running:
                ended.callback(process.wait)
                process.terminate()


def _start_process(job: Job, query: Query, train: bool, threads: int, logs: Path) -> subprocess.Popen[str]:
    config = replace(job.config, trainer=replace(job.config.trainer, progress=False))
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    with (logs / f"{job.cell}_seed_{job.seed}.log").open("w", encoding="utf-8") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "anaphora.studies.worker"],
            stdin=subprocess.PIPE, stdout=log, stderr=log, text=True, env=environment,
        )  # fmt: skip
    # It stays open: the process ends when it closes.
    assert process.stdin is not None
    process.stdin.write(encode_job(config, query, train, threads))
    process.stdin.flush()
    return process


class _StudyProgress:
    """Reports after every run how far the study is and how long it may take, and stops one that would take too long.

    The time left is that of the steps of training left, at the pace of the runs that were trained from their start.
    """

    def __init__(self, plan: StudyPlan, jobs: Sequence[Job], query: Query) -> None:
        self.plan, self.query, self.count = plan, query, len(jobs)
        self.steps_left = sum(map(steps_of, (job.config for job in jobs)))
        self.finished = 0
        self.timed_steps, self.timed_seconds = 0, 0.0
        self.begun = time.perf_counter()
        console.print(f"study {plan.name}: {len(jobs)} runs, {plan.side_by_side} at a time", soft_wrap=True)

    def done(self, job: Job, seconds: float, fresh: bool) -> None:
        self.finished += 1
        self.steps_left -= steps_of(job.config)
        record = read_record(job, self.query)
        first = False
        if fresh and record.status == "finished":
            first = not self.timed_steps
            self.timed_steps += steps_of(job.config)
            self.timed_seconds += seconds
        left = self._seconds_left()
        remaining = "" if left is None or not self.steps_left else f"; about {format_duration(left)} left"
        outcome = record.status if record.status != "failed" else f"failed: {record.error}"
        console.print(
            f"{self.finished} of {self.count}  {job.cell}, seed {job.seed}: {outcome} "
            f"({format_duration(seconds)}){remaining}",
            soft_wrap=True,
        )
        if first and left is not None and self.plan.minutes is not None:
            self._stop_in_time(left)

    def _seconds_left(self) -> float | None:
        if not self.timed_steps:
            return None
        return self.steps_left * self.timed_seconds / self.timed_steps / self.plan.side_by_side

    def _stop_in_time(self, left: float) -> None:
        whole = (time.perf_counter() - self.begun + left) / 60
        assert self.plan.minutes is not None
        if whole > self.plan.minutes:
            raise UserError(
                f"study {self.plan.name}: by the time of its first run it would take {math.ceil(whole)} minutes, "
                f"more than minutes={self.plan.minutes:g}; raise that, or take fewer seeds or steps. What has "
                "finished stays"
            )


def steps_of(config: Config) -> int:
    """How many steps a run trains."""
    return min(config.optimizer.steps, config.trainer.limit_steps or config.optimizer.steps)


def format_duration(seconds: float) -> str:
    """A length of time in seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def _check_results(plan: StudyPlan, root: Path, jobs: Sequence[Job], anew: Sequence[Job], query: Query) -> None:
    """Refuse, before any work, damaged results that the pages need and that this study does not write anew.

    Raises:
        UserError: a result of a run or another study is damaged, or the index cannot be written.
    """
    check_writable(root.parent / INDEX)
    read_studies(root.parent, without=plan.name)
    written = {job.directory for job in anew}
    for job in jobs:
        if job.directory not in written:
            read_record(job, query)


def _check_directories(jobs: Sequence[Job]) -> None:
    """Refuse, before any work, a directory that holds a run of other settings."""
    for job in jobs:
        layout = RunFiles(job.directory)
        if layout.config.exists() and not same_settings(read(layout.config), job.config):
            raise UserError(f"{job.directory} holds a run of other settings; choose another output= or name=")

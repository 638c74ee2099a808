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

from anaphora.checkpoint import Layout
from anaphora.config import Config, read
from anaphora.errors import UserError
from anaphora.files import write_json
from anaphora.place import device_of
from anaphora.report.study_index import write_index
from anaphora.report.study_page import drawn, write_study_page
from anaphora.report.write import save, write_table
from anaphora.studies.grid import Job, cells_of, jobs_of
from anaphora.studies.measures import FAILURE, Asked, record_of
from anaphora.studies.settings import Plan
from anaphora.studies.summary import rows_of, shown, summarise
from anaphora.studies.worker import order, work
from anaphora.workflow import alike, console

_LOOK_EVERY = 0.2  # seconds between two looks at the processes


def run_study(plan: Plan, folder: Path) -> dict[str, Any]:
    """Train and measure what is not there yet, and write `study.json`, `study.csv`, figures and the page.

    Args:
        plan: the study.
        folder: of the configuration.

    Returns:
        What `study.json` holds.

    Raises:
        UserError: a cell's overrides are wrong or name a device that is not there (before anything runs), a directory
            holds a run of other settings, or the first run tells that the study would take longer than `minutes`.
    """
    cells = cells_of(plan, folder)
    jobs = jobs_of(plan, cells)
    untrained = [job for job in jobs if not Layout(job.directory).weights.exists()]
    for device in {job.config.trainer.device for job in untrained if plan.train}:
        device_of(device)
    asked = Asked.of(plan)
    _refuse_strangers(jobs)
    work_through(plan, jobs, asked)
    # The page is about the whole study, also where only a part of it was asked for now.
    everything = jobs_of(replace(plan, only=[]), cells)
    records = [record_of(job, asked) for job in everything]
    found = summarise(plan, cells, records)
    write_study(plan, found)
    return found


def write_study(plan: Plan, found: dict[str, Any]) -> None:
    """Write a study's numbers, figures and page and the index of all studies, and print its table and its verdict."""
    root = Path(plan.output) / plan.name
    write_json(root / "study.json", found)
    write_table(root / "study.csv", rows_of(found))
    figures = drawn(found)
    for name, figure in figures.items():
        save(figure, root / "figures" / name, plan.formats)
    write_study_page(root / "study.html", found, figures)
    index = write_index(root.parent)
    for line in shown(found):
        console.print(line, soft_wrap=isinstance(line, str))
    console.print(f"numbers   {root / 'study.json'}", soft_wrap=True)
    console.print(f"page      {root / 'study.html'}", soft_wrap=True)
    console.print(f"all       {index}", soft_wrap=True)


def work_through(plan: Plan, jobs: Sequence[Job], asked: Asked) -> None:
    """Do every run of a study, one after the other or several side by side, and tell how far it is."""
    watch = _Watch(plan, jobs, asked)
    threads = plan.threads or max(1, (os.cpu_count() or 1) // plan.side_by_side)
    if plan.side_by_side > 1:
        _in_processes(plan, jobs, asked, threads, watch)
        return
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(plan.threads or before)
    try:
        for job in jobs:
            fresh = not Layout(job.directory).config.exists()
            started = time.perf_counter()
            work(job.config, asked, plan.train)
            watch.done(job, time.perf_counter() - started, fresh)
    finally:
        torch.set_num_threads(before)


def _in_processes(plan: Plan, jobs: Sequence[Job], asked: Asked, threads: int, watch: _Watch) -> None:
    waiting = list(reversed(jobs))
    running: dict[subprocess.Popen[str], tuple[Job, float, bool]] = {}
    logs = Path(plan.output) / plan.name / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    try:
        while waiting or running:
            while waiting and len(running) < plan.side_by_side:
                job = waiting.pop()
                fresh = not Layout(job.directory).config.exists()
                running[_begin(job, asked, plan.train, threads, logs)] = (job, time.perf_counter(), fresh)
            for process in [one for one in running if one.poll() is not None]:
                job, started, fresh = running.pop(process)
                if process.returncode:
                    write_json(
                        job.directory / FAILURE, {"error": f"its process ended with status {process.returncode}"}
                    )
                watch.done(job, time.perf_counter() - started, fresh)
            time.sleep(_LOOK_EVERY)
    finally:
        with ExitStack() as ended:
            for process in running:
                ended.callback(process.wait)
                process.terminate()


def _begin(job: Job, asked: Asked, train: bool, threads: int, logs: Path) -> subprocess.Popen[str]:
    config = replace(job.config, trainer=replace(job.config.trainer, progress=False))
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    with (logs / f"{job.cell}_seed_{job.seed}.log").open("w", encoding="utf-8") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "anaphora.studies.worker"],
            stdin=subprocess.PIPE, stdout=log, stderr=log, text=True, env=environment,
        )  # fmt: skip
    # It stays open: its closing is how a process learns that nobody waits for it any more.
    assert process.stdin is not None
    process.stdin.write(order(config, asked, train, threads))
    process.stdin.flush()
    return process


class _Watch:
    """Tells after every run how far the study is, how long it may still take, and stops one that would take too long.

    The time left is that of the steps of training left, at the pace of the runs that were trained from their start.
    """

    def __init__(self, plan: Plan, jobs: Sequence[Job], asked: Asked) -> None:
        self.plan, self.asked, self.count = plan, asked, len(jobs)
        self.steps_left = sum(map(steps_of, (job.config for job in jobs)))
        self.finished = 0
        self.timed_steps, self.timed_seconds = 0, 0.0
        self.begun = time.perf_counter()
        console.print(f"study {plan.name}: {len(jobs)} runs, {plan.side_by_side} at a time", soft_wrap=True)

    def done(self, job: Job, seconds: float, fresh: bool) -> None:
        self.finished += 1
        self.steps_left -= steps_of(job.config)
        record = record_of(job, self.asked)
        first = False
        if fresh and record.status == "finished":
            first = not self.timed_steps
            self.timed_steps += steps_of(job.config)
            self.timed_seconds += seconds
        left = self._seconds_left()
        told = "" if left is None or not self.steps_left else f"; about {spoken_time(left)} left"
        outcome = record.status if record.status != "failed" else f"failed: {record.error}"
        console.print(
            f"{self.finished} of {self.count}  {job.cell}, seed {job.seed}: {outcome} ({spoken_time(seconds)}){told}",
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
                f"more than minutes={self.plan.minutes:g}; raise that, or ask for fewer seeds or steps. What has "
                "finished stays"
            )


def steps_of(config: Config) -> int:
    """How many steps a run trains."""
    return min(config.optimizer.steps, config.trainer.limit_steps or config.optimizer.steps)


def spoken_time(seconds: float) -> str:
    """A length of time as one says it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def _refuse_strangers(jobs: Sequence[Job]) -> None:
    """Tell before any work that a directory holds a run of other settings."""
    for job in jobs:
        layout = Layout(job.directory)
        if layout.config.exists() and not alike(read(layout.config), job.config):
            raise UserError(f"{job.directory} holds a run of other settings; choose another output= or name=")

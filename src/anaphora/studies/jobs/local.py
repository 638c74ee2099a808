"""Runs of a study side by side on this machine, each in a process of its own."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path

from anaphora.settings.commands.study import StudyPlan
from anaphora.studies.grid import Job
from anaphora.studies.jobs.progress import PAGE_SECONDS, StudyProgress
from anaphora.studies.jobs.worker import encode_job
from anaphora.studies.records import Query


def run_in_processes(jobs: Sequence[Job], query: Query, plan: StudyPlan, logs: Path, progress: StudyProgress) -> None:
    """Do the runs of a study, `plan.side_by_side` at a time; what each prints goes to a file of `logs`.

    A thread of the pool waits for each process. Were the pool one of processes, one that the machine kills for its
    memory would end all of them.
    """
    threads = plan.threads or max(1, (os.cpu_count() or 1) // plan.side_by_side)
    processes = _Processes(query, plan.train, threads, logs, progress)
    with ThreadPoolExecutor(plan.side_by_side) as pool:
        futures = {pool.submit(processes.run, job): job for job in jobs}
        waiting = set(futures)
        try:
            while waiting:
                ended, waiting = wait(waiting, timeout=PAGE_SECONDS, return_when=FIRST_COMPLETED)
                for future in ended:
                    status = future.result()
                    progress.end(futures[future], f"its process ended with status {status}" if status else "")
                progress.update_page()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            processes.terminate()


class _Processes:
    """The processes at work, which end together."""

    def __init__(self, query: Query, train: bool, threads: int, logs: Path, progress: StudyProgress) -> None:
        self.query, self.train, self.threads, self.logs, self.progress = query, train, threads, logs, progress
        logs.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._terminated = False

    def run(self, job: Job) -> int:
        """Do a run and wait for it; the exit status of its process."""
        with self._lock:
            if self._terminated:
                return 0
            self.progress.begin(job)
            process = self._start(job)
            self._running.add(process)
        status = process.wait()
        with self._lock:
            self._running.discard(process)
        return status

    def _start(self, job: Job) -> subprocess.Popen[str]:
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
        return process

    def terminate(self) -> None:
        """End all that run, and start no more."""
        with self._lock:
            self._terminated = True
            for process in self._running:
                process.terminate()

"""Runs of a study as jobs on a Slurm cluster, through submitit; a preempted job is requeued and resumed."""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anaphora.base.console import say
from anaphora.base.errors import UserError, pip_install
from anaphora.base.files import read_json, write_json
from anaphora.runs.processes import until_requeued
from anaphora.studies.grid import Job
from anaphora.studies.jobs import encode_job, run_encoded
from anaphora.studies.plan import StudyPlan
from anaphora.studies.records import FAILURE_FILE, Query

if TYPE_CHECKING:
    import submitit


SUBMITTED_FILE = "submitted.json"
"""File in the log folder with the job id and digest of each run, from which a restarted study finds its jobs."""
_SUBMITTED = {str: {"id": str, "digest": str}}
_CANCEL_SECONDS = 1.0
_AT_WORK = ("PENDING", "RUNNING", "REQUEUED", "COMPLETING")
"""States in which a job of an earlier command is not submitted again. SUSPENDED is missing, because submitit counts
suspended jobs as done."""


class StudyJob:
    """Callable that executes a job (run) of a study; if it was interrupted, a second call resumes it."""

    def __init__(self, encoded: str) -> None:
        self.encoded = encoded

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.encoded.encode()).hexdigest()[:16]

    def __call__(self) -> None:
        with until_requeued():
            run_encoded(self.encoded)

    def checkpoint(self) -> Any:
        """Return this job as a submission that replaces it after preemption or a timeout, as submitit requires."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


@dataclass(frozen=True)
class ClusterRun:
    """Run submitted to a cluster; `train` is False if the job only measures a finished run."""

    job: submitit.Job[None]
    train: bool

    def is_running(self) -> bool:
        return bool(self.job.state == "RUNNING")

    def has_ended(self) -> bool:
        return bool(self.job.done())

    def failure(self) -> str:
        reason = f"job {self.job.job_id} ({self.job.state}) left no result; {self.job.paths.stderr}"
        return reason if self.train else ""

    def cancel(self) -> None:
        self.job.cancel(check=False)


class Cluster:
    """Executor that submits runs as a job array through submitit's AutoExecutor.

    A run for which an earlier command has submitted a job that is still queued or running is not submitted again.

    Args:
        plan: settings of the study, including the resources of a run.
        query: measures of the study.
        logs: folder for submitit's log files, on a file system shared by all machines.
        kind: submitit's name of the type of cluster; "local" runs the jobs on this machine.
    """

    at_a_time = sys.maxsize  # the cluster limits the number itself
    outlives_command = True

    def __init__(self, plan: StudyPlan, query: Query, logs: Path, kind: str = "slurm") -> None:
        from submitit import AutoExecutor

        self.plan, self.query, self.record = plan, query, logs / SUBMITTED_FILE
        timeouts = {"slurm_max_num_timeout": plan.slurm.timeouts} if kind == "slurm" else {}
        self.executor = AutoExecutor(folder=logs.absolute() / "%j", cluster=kind, **timeouts)
        self.executor.update_parameters(**slurm_parameters(plan))

    def start(self, jobs: Sequence[Job]) -> list[ClusterRun]:
        """Submit the runs, except those for which a job of an earlier command is still queued or running.

        An earlier job with other settings or measures is cancelled first. The ids of the jobs are stored in
        `SUBMITTED_FILE`.

        Raises:
            UserError: `SUBMITTED_FILE` is damaged.
        """
        submitted: dict[str, dict[str, str]] = {}
        if self.record.exists():
            submitted = read_json(self.record, _SUBMITTED, "delete the file")
        by_run: dict[str, submitit.Job[None]] = {}
        outdated: list[submitit.Job[None]] = []
        for job in jobs:
            earlier = submitted.get(_name(job))
            found = self.find(earlier["id"]) if earlier else None
            if earlier and found and not found.done() and found.state in _AT_WORK:
                # A job that trains also measures, so it can replace one with train=false.
                if earlier["digest"] in {self._call(job, train).digest for train in (self.plan.train, True)}:
                    by_run[_name(job)] = found
                else:
                    outdated.append(found)
        _cancel(outdated)
        fresh = [job for job in jobs if _name(job) not in by_run]
        say(
            "{fresh:job is|jobs are} submitted, and still running from an earlier command: {earlier}",
            fresh=len(fresh),
            earlier=len(by_run),
        )
        if fresh:
            for job in fresh if self.plan.train else []:
                (job.directory / FAILURE_FILE).unlink(missing_ok=True)  # left by the previous attempt
            calls = [self._call(job, self.plan.train) for job in fresh]
            for job, call, queued in zip(fresh, calls, self.submit(calls), strict=True):
                by_run[_name(job)] = queued
                submitted[_name(job)] = {"id": queued.job_id, "digest": call.digest}
            write_json(self.record, submitted)
        return [ClusterRun(by_run[_name(job)], self.plan.train) for job in jobs]

    def submit(self, calls: Sequence[StudyJob]) -> list[submitit.Job[None]]:
        """Submit several jobs as one job array."""
        with self.executor.batch():
            return [self.executor.submit(call) for call in calls]

    def find(self, job_id: str) -> submitit.Job[None]:
        """Return the submitit job with this id, which an earlier command has submitted."""
        from submitit import SlurmJob

        return SlurmJob(folder=self.executor.folder, job_id=job_id)

    def _call(self, job: Job, train: bool) -> StudyJob:
        return StudyJob(encode_job(job.config, self.query, train, self.plan.threads or 1))


def check_cluster() -> None:
    """Check that jobs can be submitted; raise UserError if submitit or Slurm's sbatch is missing on this machine."""
    if importlib.util.find_spec("submitit") is None:
        command = pip_install("'anaphora[cluster]'")
        raise UserError(f"executor=slurm needs submitit: {command}")
    if shutil.which("sbatch") is None:
        raise UserError("executor=slurm needs Slurm's sbatch on this machine; go to a login node, or use executor=here")


def slurm_parameters(plan: StudyPlan) -> dict[str, Any]:
    """Return the parameters of a job array under submitit's names; submitit ignores those that are None."""
    slurm = plan.slurm
    options = (option.partition("=") for option in slurm.more)
    return {
        "name": plan.name,
        "timeout_min": slurm.minutes,
        "mem_gb": slurm.memory,
        "cpus_per_task": plan.threads or 1,
        "gpus_per_node": slurm.gpus or None,
        "tasks_per_node": 1,
        "slurm_array_parallelism": plan.side_by_side,
        "slurm_partition": slurm.partition,
        "slurm_account": slurm.account,
        "slurm_setup": slurm.setup or None,
        "slurm_additional_parameters": {name: value if sign else True for name, sign, value in options} or None,
    }


def _cancel(outdated: Sequence[submitit.Job[None]]) -> None:
    """Cancel jobs and wait until they have ended, because a running job locks the directory of its run."""
    if outdated:
        say("cancelled, with other settings or measures: {jobs:job|jobs} of an earlier command", jobs=len(outdated))
    for job in outdated:
        job.cancel(check=False)
    while not all(job.done() for job in outdated):
        time.sleep(_CANCEL_SECONDS)


def _name(job: Job) -> str:
    return f"{job.cell}/seed_{job.seed}"

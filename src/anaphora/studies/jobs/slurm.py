"""Runs of a study as jobs of a Slurm cluster, through submitit; one that is preempted is queued again and goes on."""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from anaphora.base.console import say
from anaphora.base.errors import UserError, pip_install
from anaphora.base.files import read_json, write_json
from anaphora.base.locale.translation import _
from anaphora.runs.requeue import until_requeued
from anaphora.settings.commands.study import StudyPlan
from anaphora.studies.grid import Job
from anaphora.studies.jobs.progress import StudyProgress
from anaphora.studies.jobs.worker import encode_job, run_encoded
from anaphora.studies.records import FAILURE_FILE, Query

SUBMITTED_FILE = "submitted.json"
"""In the folder of the logs, of each run: the id of its job, by which a study that is begun again finds those at work,
and the digest of what that job does."""
_SUBMITTED = {str: {"id": str, "digest": str}}
_POLL_SECONDS = 1.0
_AT_WORK = ("PENDING", "RUNNING", "REQUEUED", "COMPLETING")
"""States of jobs of an earlier command that are waited for and not submitted again. SUSPENDED is none: submitit counts
such a job as done."""


class StudyJob:
    """One run of a study as a call without arguments, which the cluster may make again where it was cut short."""

    def __init__(self, encoded: str) -> None:
        self.encoded = encoded

    @property
    def digest(self) -> str:
        """Of what it does."""
        return hashlib.sha256(self.encoded.encode()).hexdigest()[:16]

    def __call__(self) -> None:
        with until_requeued():
            run_encoded(self.encoded)

    def checkpoint(self) -> Any:
        """What submitit queues in its place when it is preempted or out of time: the same, for a run resumes itself."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


class ClusterJob(Protocol):
    """A job that was submitted, as submitit knows it."""

    @property
    def job_id(self) -> str:
        """The cluster's name of it."""

    @property
    def state(self) -> str:
        """The cluster's word for how it is."""

    @property
    def paths(self) -> Any:
        """Its files, `stderr` among them."""

    def done(self) -> bool:
        """Whether it has ended."""

    def cancel(self, check: bool) -> None:
        """Take it from the queue, or end it."""


class Cluster(Protocol):
    """Where jobs are submitted."""

    def submit(self, calls: Sequence[StudyJob]) -> Sequence[ClusterJob]:
        """Queue one or more calls."""

    def find(self, job_id: str) -> ClusterJob:
        """The job of an earlier command."""


class SubmititCluster:
    """A cluster through submitit's AutoExecutor.

    Args:
        plan: what each run asks for.
        folder: for what submitit writes, on a file system that all machines share.
        kind: submitit's name for the cluster; "local" runs the jobs on this machine.
    """

    def __init__(self, plan: StudyPlan, folder: Path, kind: str = "slurm") -> None:
        from submitit import AutoExecutor

        timeouts = {"slurm_max_num_timeout": plan.slurm.timeouts} if kind == "slurm" else {}
        self.executor = AutoExecutor(folder=folder.absolute() / "%j", cluster=kind, **timeouts)
        self.executor.update_parameters(**slurm_parameters(plan))

    def submit(self, calls: Sequence[StudyJob]) -> Sequence[ClusterJob]:
        with self.executor.batch():  # becomes one array of jobs
            return [self.executor.submit(call) for call in calls]

    def find(self, job_id: str) -> ClusterJob:
        from submitit import SlurmJob

        job: ClusterJob = SlurmJob(folder=self.executor.folder, job_id=job_id)
        return job


def check_cluster() -> None:
    """Refuse what cannot be submitted from this machine.

    Raises:
        UserError: submitit is not installed, or there is no Slurm here.
    """
    if importlib.util.find_spec("submitit") is None:
        command = pip_install("'anaphora[cluster]'")
        raise UserError(f"executor=slurm needs submitit: {command}")
    if shutil.which("sbatch") is None:
        raise UserError("executor=slurm needs Slurm's sbatch on this machine; go to a login node, or use executor=here")


def slurm_parameters(plan: StudyPlan) -> dict[str, Any]:
    """The parameters of an array of jobs, under submitit's names; None leaves one out."""
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


def run_on_cluster(
    jobs: Sequence[Job], query: Query, plan: StudyPlan, cluster: Cluster, progress: StudyProgress
) -> None:
    """Submit the runs that are not at work already, and wait for all.

    A job of an earlier command that does something else for its run, for instance measures less, is cancelled first.
    An interrupt ends the waiting and not the jobs: the same command waits for them again.

    Raises:
        UserError: by the time of its first run the study would take longer than `minutes`; its jobs are cancelled.
    """
    waiting = dict(enumerate(zip(jobs, _submit(jobs, query, plan, cluster), strict=True)))
    try:
        while waiting:
            for number, (job, cluster_job) in list(waiting.items()):
                if cluster_job.done():
                    del waiting[number]
                    reason = (
                        f"job {cluster_job.job_id} ({cluster_job.state}) left no result; {cluster_job.paths.stderr}"
                    )
                    progress.end(job, reason if plan.train else "")
                elif cluster_job.state == "RUNNING":
                    progress.begin(job)
            progress.update_page()
            if waiting:
                time.sleep(_POLL_SECONDS)
    except UserError:
        for _job, cluster_job in waiting.values():
            cluster_job.cancel(check=False)
        raise
    except KeyboardInterrupt:
        notice = _("{jobs} jobs are still queued or running; the same command waits for them again")
        say(notice.format(jobs=len(waiting)))
        raise


def _submit(jobs: Sequence[Job], query: Query, plan: StudyPlan, cluster: Cluster) -> list[ClusterJob]:
    def call(job: Job, train: bool) -> StudyJob:
        return StudyJob(encode_job(job.config, query, train, plan.threads or 1))

    record = Path(plan.output) / plan.name / "logs" / SUBMITTED_FILE
    submitted: dict[str, dict[str, str]] = read_json(record, _SUBMITTED, "delete the file") if record.exists() else {}
    by_run: dict[str, ClusterJob] = {}
    outdated: list[ClusterJob] = []
    for job in jobs:
        name = _name(job)
        if name not in submitted:
            continue
        earlier = cluster.find(submitted[name]["id"])
        if not earlier.done() and earlier.state in _AT_WORK:
            # One that trains measures as well: `train=false` waits for it.
            if submitted[name]["digest"] in {call(job, train).digest for train in (plan.train, True)}:
                by_run[name] = earlier
            else:
                outdated.append(earlier)
    if outdated:
        notice = _("{jobs} jobs of an earlier command have other settings or measures and are cancelled")
        say(notice.format(jobs=len(outdated)))
        _cancel(outdated)
    fresh = [job for job in jobs if _name(job) not in by_run]
    notice = _("{fresh} jobs are submitted, {earlier} of an earlier command are still at work")
    say(notice.format(fresh=len(fresh), earlier=len(by_run)))
    if fresh:
        for job in fresh if plan.train else []:
            (job.directory / FAILURE_FILE).unlink(missing_ok=True)  # of the last attempt
        calls = [call(job, plan.train) for job in fresh]
        for job, of_job, cluster_job in zip(fresh, calls, cluster.submit(calls), strict=True):
            by_run[_name(job)] = cluster_job
            submitted[_name(job)] = {"id": cluster_job.job_id, "digest": of_job.digest}
        write_json(record, submitted)
    return [by_run[_name(job)] for job in jobs]


def _cancel(cluster_jobs: Sequence[ClusterJob]) -> None:
    """Cancel jobs, and wait until they have ended: before that they hold the directories of their runs."""
    for cluster_job in cluster_jobs:
        cluster_job.cancel(check=False)
    while not all(cluster_job.done() for cluster_job in cluster_jobs):
        time.sleep(_POLL_SECONDS)


def _name(job: Job) -> str:
    return f"{job.cell}/seed_{job.seed}"

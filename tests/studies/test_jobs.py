"""Tests of a study's runs as cluster jobs, their progress, and interruptions."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import invented
import pytest
import torch
from invented import cells, record

from anaphora.base import translation
from anaphora.base.console import format_bytes
from anaphora.base.errors import UserError
from anaphora.model.pronoun_model import PronounModel
from anaphora.runs import processes
from anaphora.runs.directory import RunFiles
from anaphora.runs.processes import until_requeued
from anaphora.settings.run import Config, from_plain
from anaphora.settings.vocabulary import WordPiece
from anaphora.studies import jobs as study_jobs
from anaphora.studies import slurm
from anaphora.studies.grid import Job
from anaphora.studies.jobs import StudyProgress, encode_job, run_with, weights_bytes
from anaphora.studies.plan import Slurm, StudyPlan
from anaphora.studies.records import MEASURED_FILE, Query, RunRecord, read_record
from anaphora.studies.summary import summarise

QUERY = Query(["scores"], "test", None)
Tiny = Callable[..., Config]


@pytest.fixture
def plan(tmp_path: Path) -> StudyPlan:
    return StudyPlan(name="small", question="Does it?", prediction="It does.", seeds=[0, 1, 2], output=str(tmp_path))


@pytest.fixture
def jobs(plan: StudyPlan, tiny: Tiny) -> list[Job]:
    """Return three runs that have not started."""
    folder = Path(plan.output) / plan.name / "base"
    config = tiny(folder, "optimizer.steps=120", "validation.every=10")
    return [
        Job("base", seed, replace(config, seed=seed, name=f"seed_{seed}"), folder / f"seed_{seed}")
        for seed in plan.seeds
    ]


def finish(job: Job) -> None:
    """Write the results of a measurement to a run's directory."""
    content = {"query": asdict(QUERY), "head": None, "train_seconds": 1.0, "groups": {}}
    job.directory.mkdir(parents=True, exist_ok=True)
    (job.directory / MEASURED_FILE).write_text(json.dumps(content))


class QueuedJob:
    """Submitted job that ends at the second poll, with the outcome that its seed stands for."""

    def __init__(self, job_id: str, run: Job, outcome: str) -> None:
        self.job_id, self.run, self.outcome = job_id, run, outcome
        self.paths = type("Paths", (), {"stderr": Path("logs") / f"{job_id}.err"})
        self.looks, self.cancelled = 0, False

    @property
    def state(self) -> str:
        return self.outcome if self.looks > 1 else "RUNNING"

    def done(self) -> bool:
        self.looks += 1
        if self.looks == 2 and self.outcome == "COMPLETED":
            finish(self.run)
        return self.looks > 1

    def cancel(self, check: bool) -> None:
        self.cancelled = True


class Queue(slurm.Cluster):
    """Cluster that accepts jobs and numbers them."""

    def __init__(self, plan: StudyPlan, runs: Sequence[Job], outcomes: Sequence[str]) -> None:
        self.runs = {run.directory: (run, outcome) for run, outcome in zip(runs, outcomes, strict=True)}
        self.jobs: dict[str, Any] = {}
        self.plan, self.query = plan, QUERY
        self.record = Path(plan.output) / plan.name / "logs" / "submitted.json"

    def submit(self, calls: Sequence[slurm.StudyJob]) -> list[Any]:
        submitted = []
        for call in calls:
            config = from_plain(json.loads(call.encoded)["settings"], "job")
            run, outcome = next(one for one in self.runs.values() if quiet(one[0].config) == config)
            job = QueuedJob(f"7_{len(self.jobs)}", run, outcome)
            self.jobs[job.job_id] = job
            submitted.append(job)
        return submitted

    def find(self, job_id: str) -> Any:
        return self.jobs[job_id]


def run_on(queue: Queue, jobs: Sequence[Job], plan: StudyPlan, query: Query = QUERY) -> None:
    """Run jobs on a cluster, in a separate command."""
    queue.plan, queue.query = plan, query
    run_with(queue, jobs, StudyProgress(plan, jobs, query))


def quiet(config: Config) -> Config:
    return replace(config, trainer=replace(config.trainer, progress=False))


@pytest.fixture
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study_jobs, "_POLL_SECONDS", 0.0)
    monkeypatch.setattr(slurm, "_CANCEL_SECONDS", 0.0)


@pytest.mark.usefixtures("_no_waiting")
def test_a_job_that_the_cluster_ends_is_a_failure_with_its_state_and_the_others_go_on(
    plan: StudyPlan, jobs: list[Job], capsys: pytest.CaptureFixture[str]
) -> None:
    queue = Queue(plan, jobs, ["COMPLETED", "OUT_OF_MEMORY", "COMPLETED"])
    run_on(queue, jobs, plan)
    records = [read_record(job, QUERY) for job in jobs]
    assert [record.status for record in records] == ["finished", "failed", "finished"]
    assert records[1].error == "job 7_1 (OUT_OF_MEMORY) left no result; logs/7_1.err"
    assert "2 of 3  base, seed 1: failed: job 7_1 (OUT_OF_MEMORY)" in capsys.readouterr().out


@pytest.mark.usefixtures("_no_waiting")
def test_the_progress_of_a_study_is_reported_in_the_language_of_the_interface(
    plan: StudyPlan, jobs: list[Job], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(translation.VARIABLE, "zh")
    queue = Queue(plan, jobs, ["COMPLETED", "OUT_OF_MEMORY", "COMPLETED"])
    run_on(queue, jobs, plan)
    begun, disk, submitted, finished, failed, _ = capsys.readouterr().out.splitlines()
    assert begun == f"研究 {plan.name}：3 次训练，同时进行 {plan.side_by_side} 次"
    assert disk.startswith("磁盘      剩下的 3 次训练的权重约占 ")
    assert submitted == "提交了 3 个作业，先前的命令还有 0 个作业在运行"
    assert re.fullmatch(r"1/3  base，种子 0：完成（.* 秒）；大约还需 .* 秒", finished)
    assert failed.startswith("2/3  base，种子 1：失败：job 7_1 (OUT_OF_MEMORY)")


@pytest.mark.usefixtures("_no_waiting")
def test_a_study_begun_again_waits_for_jobs_at_work_and_submits_the_others(plan: StudyPlan, jobs: list[Job]) -> None:
    queue = Queue(plan, jobs, ["COMPLETED", "FAILED", "COMPLETED"])
    run_on(queue, jobs[:2], plan)
    queue.jobs["7_0"].looks = 0  # of three runs one is at work, one has failed, one was never submitted
    run_on(queue, jobs, plan)
    assert [queue.jobs[name].run.seed for name in ("7_0", "7_1", "7_2", "7_3")] == [0, 1, 1, 2]
    assert queue.jobs["7_0"].looks > 1 and len(queue.jobs) == 4


@pytest.mark.usefixtures("_no_waiting")
def test_a_job_at_work_that_measures_something_else_is_cancelled_and_submitted_anew(
    plan: StudyPlan, jobs: list[Job], capsys: pytest.CaptureFixture[str]
) -> None:
    queue = Queue(plan, jobs[:1], ["COMPLETED"])
    run_on(queue, jobs[:1], plan)
    (earlier,) = queue.jobs.values()
    earlier.looks = 0  # it is still at work
    shown = replace(plan, train=False)
    run_on(queue, jobs[:1], shown)
    assert len(queue.jobs) == 1 and not earlier.cancelled
    earlier.looks = 0
    more = replace(QUERY, measures=["scores", "forms"])
    run_on(queue, jobs[:1], plan, more)
    assert earlier.cancelled and len(queue.jobs) == 2
    assert "cancelled, with other settings or measures: 1 job of an earlier command" in capsys.readouterr().out


@pytest.mark.usefixtures("_no_waiting")
def test_a_study_that_would_take_too_long_cancels_its_jobs(plan: StudyPlan, jobs: list[Job]) -> None:
    queue = Queue(plan, jobs, ["COMPLETED"] * 3)
    short = replace(plan, minutes=1e-9)
    with pytest.raises(UserError, match="more than minutes=1e-09"):
        run_on(queue, jobs, short)
    assert [job.cancelled for job in queue.jobs.values()] == [False, True, True]


class Slots:
    """Executor with two slots, in which a run ends at the second poll."""

    at_a_time = 2

    def __init__(self, outlives_command: bool, at_look: Callable[[], None]) -> None:
        self.outlives_command, self.at_look = outlives_command, at_look
        self.started: list[QueuedJob] = []

    def start(self, jobs: Sequence[Job]) -> list[Any]:
        self.started += [QueuedJob(str(job.seed), job, "COMPLETED") for job in jobs]
        return [slurm.ClusterRun(self._looked_at(one), True) for one in self.started[-len(jobs) :]]

    def _looked_at(self, job: QueuedJob) -> Any:
        done = job.done
        job.done = lambda: (self.at_look(), done())[1]  # type: ignore[method-assign]
        return job


@pytest.mark.usefixtures("_no_waiting")
def test_no_more_runs_are_at_work_than_there_are_places(plan: StudyPlan, jobs: list[Job]) -> None:
    at_work: list[int] = []
    slots = Slots(False, lambda: at_work.append(sum(one.looks < 2 for one in slots.started)))
    run_with(slots, jobs, StudyProgress(plan, jobs, QUERY))
    assert max(at_work) == 2 and [job.run.seed for job in slots.started] == [0, 1, 2]
    assert [read_record(job, QUERY).status for job in jobs] == ["finished"] * 3


@pytest.mark.parametrize("outlives_command", [False, True])
@pytest.mark.usefixtures("_no_waiting")
def test_an_interrupt_ends_processes_of_this_machine_and_no_jobs_of_a_cluster(
    outlives_command: bool, plan: StudyPlan, jobs: list[Job], capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    slots = Slots(outlives_command, interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_with(slots, jobs, StudyProgress(plan, jobs, QUERY))
    assert [job.cancelled for job in slots.started] == [not outlives_command] * 2
    assert ("2 jobs are still queued or running" in capsys.readouterr().out) is outlives_command


def test_runs_that_have_their_weights_take_no_more_time(
    plan: StudyPlan, jobs: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = [0.0]
    monkeypatch.setattr("anaphora.studies.jobs.time.perf_counter", lambda: seconds[0])
    for job in jobs[1:]:
        finish(job)
        RunFiles(job.directory).weights.touch()
    progress = StudyProgress(replace(plan, minutes=1.5), jobs, QUERY)
    progress.begin(jobs[0])
    seconds[0] = 60.0
    finish(jobs[0])
    progress.end(jobs[0])  # is not refused: the others are finished
    for job in jobs[1:]:
        progress.begin(job)
        progress.end(job)
    assert (progress.ended, sum(progress._steps_left.values()), progress.timed_steps) == (3, 0, 120)


def test_a_run_that_was_at_work_before_it_is_seen_counts_as_trained_from_its_start(
    plan: StudyPlan, jobs: list[Job]
) -> None:
    progress = StudyProgress(plan, jobs, QUERY)
    finish(jobs[0])
    RunFiles(jobs[0].directory).config.touch()
    progress.begin(jobs[0])
    progress.end(jobs[0])
    assert progress.timed_steps == 120


def test_a_damaged_record_counts_as_unfinished_and_stops_no_other_run(plan: StudyPlan, jobs: list[Job]) -> None:
    finish(jobs[0])
    (jobs[0].directory / MEASURED_FILE).write_text("{")
    progress = StudyProgress(plan, jobs, QUERY)
    progress.end(jobs[0], "its process ended with status 9")
    assert read_record(jobs[0], QUERY).status == "failed"


def test_time_left_counts_no_more_processes_than_there_are_runs_and_what_checkpoints_hold_is_done(
    plan: StudyPlan, jobs: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = [0.0]
    monkeypatch.setattr("anaphora.studies.jobs.time.perf_counter", lambda: seconds[0])
    done = {jobs[2].directory: 30}
    monkeypatch.setattr("anaphora.studies.jobs.checkpoint_step", lambda files: done.get(files.weights.parent, 0))
    progress = StudyProgress(replace(plan, side_by_side=64), jobs, QUERY)
    assert sum(progress._steps_left.values()) == 330
    progress.begin(jobs[0])
    seconds[0] = 120.0
    finish(jobs[0])
    progress.end(jobs[0])
    assert progress._seconds_left() == pytest.approx(105)  # 210 steps at one a second, by two processes


def test_every_setting_of_a_job_reaches_the_cluster(plan: StudyPlan) -> None:
    asked = Slurm(
        minutes=90, memory=8, gpus=1, partition="short", account="us", setup=["module load x"], more=["qos=long"]
    )
    parameters = slurm.slurm_parameters(replace(plan, slurm=asked, side_by_side=64, threads=2))
    assert parameters == {
        "name": "small", "timeout_min": 90, "mem_gb": 8, "cpus_per_task": 2, "gpus_per_node": 1, "tasks_per_node": 1,
        "slurm_array_parallelism": 64, "slurm_partition": "short", "slurm_account": "us",
        "slurm_setup": ["module load x"], "slurm_additional_parameters": {"qos": "long"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"executor": "cloud"}, r"executor \('cloud'\) must be one of here, slurm"),
        ({"slurm": {"minutes": 0}}, r"slurm.minutes \(0\) must be at least 1"),
        ({"slurm": {"memory": 0}}, r"slurm.memory \(0\) must be positive"),
        ({"slurm": {"more": ["--qos=long"]}}, r"slurm.more \('--qos=long'\) must be an option of sbatch without"),
    ],
)
def test_an_impossible_request_is_refused(changes: dict[str, Any], message: str, plan: StudyPlan) -> None:
    with pytest.raises(UserError, match=message):
        replace(plan, executor=changes.get("executor", "slurm"), slurm=Slurm(**changes.get("slurm", {})))


def test_a_machine_without_slurm_is_reported_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"executor=slurm needs submitit: \S+ -m pip install 'anaphora\[cluster\]'"):
        slurm.check_cluster()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UserError, match="needs Slurm's sbatch on this machine"):
        slurm.check_cluster()


def stop(cause: BaseException) -> None:
    """Raise the error with which an interrupted training run ends."""
    try:
        raise cause
    except SystemExit:
        raise KeyboardInterrupt from None


def test_a_job_that_is_cut_short_ends_as_the_cluster_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr("anaphora.runs.processes.time.sleep", waited.append)
    with pytest.raises(KeyboardInterrupt), until_requeued():
        stop(SystemExit(-1))  # an interrupt here, where no job is
    monkeypatch.setenv("SUBMITIT_EXECUTOR", "slurm")
    with pytest.raises(SystemExit), until_requeued():
        stop(SystemExit(-1))  # submitit has queued it again
    assert waited == []
    with pytest.raises(KeyboardInterrupt), until_requeued():
        stop(SystemExit())  # Lightning at SIGTERM
    assert waited == [processes.GRACE_SECONDS]


def test_runs_that_failed_are_listed_at_the_end_with_exit_status_1(
    script: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = [record(cell.name, 0, 0.9, 0.5) for cell in cells()]
    listed += [RunRecord(cell=cell.name, seed=1, status="failed", error="no memory", groups={}) for cell in cells()]
    monkeypatch.setattr(
        "anaphora.studies.run.run_study", lambda *_: summarise(invented.plan(seeds=[0, 1]), cells(), listed)
    )
    status, _, err = script("study", "study=emergence_small", "only=[base]")
    assert (status, err) == (1, "error: 1 of 2 runs failed: base, seed 1 (no memory)\n")


def test_jobs_reach_sbatch_as_one_array(plan: StudyPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("submitit")
    for name, text in (("srun", ""), ("sbatch", f'cp "$1" {tmp_path}/script\necho "Submitted batch job 7"')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    slurm.check_cluster()
    asked = Slurm(
        minutes=90, gpus=1, partition="short", account="us", setup=["module load x"], more=["exclusive", "nice=7"]
    )
    cluster = slurm.Cluster(replace(plan, slurm=asked, side_by_side=2), QUERY, tmp_path / "logs")
    assert [job.job_id for job in cluster.submit([slurm.StudyJob("{}")] * 3)] == ["7_0", "7_1", "7_2"]
    script = (tmp_path / "script").read_text()
    for line in ("array=0-2%2", "time=90", "mem=4GB", "partition=short", "account=us", "gpus-per-node=1",
                 "job-name=small", "cpus-per-task=1", "exclusive", "nice=7"):  # fmt: skip
        assert f"#SBATCH --{line}\n" in script
    assert "module load x" in script
    assert cluster.find("7_1").job_id == "7_1"


def test_a_preempted_run_is_queued_again_and_ends_with_the_weights_of_an_unbroken_one(
    plan: StudyPlan, jobs: list[Job], tmp_path: Path
) -> None:
    pytest.importorskip("submitit")
    cluster = slurm.Cluster(plan, QUERY, tmp_path / "logs", kind="local")
    unbroken, broken = jobs[0], replace(jobs[0], directory=tmp_path / "broken" / "seed_0")
    broken = replace(broken, config=replace(broken.config, output=str(tmp_path / "broken")))
    first, second = cluster.submit(
        [slurm.StudyJob(encode_job(job.config, QUERY, True, 1)) for job in (unbroken, broken)]
    )
    checkpoint = RunFiles(broken.directory).last_checkpoint
    until(checkpoint.exists)
    (process,) = Path(f"/proc/{second.job_id}/task/{second.job_id}/children").read_text().split()
    os.kill(int(process), signal.SIGTERM)  # as Slurm does some time before it preempts
    time.sleep(0.5)
    os.kill(int(process), signal.SIGUSR2)  # submitit's signal
    until(lambda: first.done() and second.done())
    log = second.paths.stdout.read_text() + second.paths.stderr.read_text()
    assert "Requeued job" in log
    assert read_record(broken, QUERY).status == "finished", log
    assert RunFiles(broken.directory).weights.read_bytes() == RunFiles(unbroken.directory).weights.read_bytes()


def until(condition: Callable[[], bool], seconds: float = 300.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.05)


def test_the_disk_that_weights_will_take_is_reported_before_a_study_begins(
    plan: StudyPlan, jobs: list[Job], capsys: pytest.CaptureFixture[str]
) -> None:
    finish(jobs[0])
    RunFiles(jobs[0].directory).weights.touch()
    StudyProgress(plan, jobs, QUERY)
    known = replace(jobs[1].config, vocabulary=WordPiece(size=100))
    size = weights_bytes(known)
    with torch.device("meta"):
        model = PronounModel(known.model, known.task.prediction, 100)
    assert size == pytest.approx(4 * sum(weight.numel() for weight in model.parameters()), rel=0.1)
    each = weights_bytes(jobs[1].config)
    assert (
        f"about {format_bytes(2 * each)} for the weights of the runs that are left (2), and at most "
        f"{format_bytes(4 * plan.side_by_side * each)} more while they train"
    ) in " ".join(capsys.readouterr().out.split())
    StudyProgress(replace(plan, train=False), jobs, QUERY)
    assert "runs that are left" not in capsys.readouterr().out

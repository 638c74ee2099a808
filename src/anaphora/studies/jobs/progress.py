"""Progress of a study in the terminal: the outcome of each run and the estimated time left."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path

from anaphora.base.console import format_bytes
from anaphora.base.errors import UserError
from anaphora.base.files import write_json
from anaphora.base.locale.translation import N_
from anaphora.report.numbers import duration_text
from anaphora.report.terminal import print_phrase
from anaphora.runs.directory import RunFiles
from anaphora.settings.model.encoder import about_weights
from anaphora.settings.run import Config
from anaphora.settings.vocabulary import SubwordVocabulary
from anaphora.studies.grid import Job
from anaphora.studies.page.words import status_text
from anaphora.studies.plan import StudyPlan
from anaphora.studies.records import FAILURE_FILE, Query, RunRecord, read_record
from anaphora.training.loggers import checkpoint_step

_CHECKPOINT_COPIES = 4  # last weights, two optimizer states per weight, and best weights
_USUAL_VOCABULARY = 5_000  # tokens of a vocabulary whose size depends on the text; about that of the built-in corpus


class StudyProgress:
    """Progress reporter of a study, which also stops a study that would take too long.

    The time left is estimated from the remaining training steps and the speed of the runs trained from the start.

    Attributes:
        ended: number of runs that have ended, failed runs included.
    """

    def __init__(self, plan: StudyPlan, jobs: Sequence[Job], query: Query) -> None:
        self.plan, self.jobs, self.query = plan, jobs, query
        self.ended = 0
        self.timed_steps, self.timed_seconds = 0, 0.0
        self.begun = time.perf_counter()
        to_train = [job for job in jobs if self._is_to_train(job)]
        self._steps_left = {job.directory: job.config.steps - _steps_done(job) for job in to_train}
        # Determined here, because on a cluster a run is noticed only some time after its start.
        self._from_start = {job.directory for job in to_train if not RunFiles(job.directory).config.exists()}
        self._begun: dict[Path, float] = {}
        print_phrase(
            N_("study {study}: {runs} runs, {at_a_time} at a time"),
            study=plan.name,
            runs=len(jobs),
            at_a_time=plan.side_by_side,
        )
        if plan.train and query.of_runs:
            _print_disk_needed(to_train, plan.side_by_side)

    @property
    def steps_left(self) -> int:
        """Return the number of training steps left, counted from the last checkpoint of each run."""
        return sum(self._steps_left.values())

    def begin(self, job: Job) -> None:
        """Record that a run has started."""
        self._begun.setdefault(job.directory, time.perf_counter())

    def end(self, job: Job, error: str = "") -> None:
        """Record the end of a run and print its outcome.

        Args:
            job: the run.
            error: reason for a failure, which is stored in `FAILURE_FILE` if the run has stored no result itself.

        Raises:
            UserError: after the first run, if the study would take longer than `minutes`.
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
        self._print_end(job, record, seconds, left if self._steps_left else None)
        if first and left is not None and self.plan.minutes is not None:
            self._stop_in_time(left)

    def _print_end(self, job: Job, record: RunRecord, seconds: float, left: float | None) -> None:
        values = {
            "ended": self.ended,
            "runs": len(self.jobs),
            "cell": job.cell,
            "seed": job.seed,
            "outcome": status_text(record.status, record.error),
            "duration": duration_text(seconds),
        }
        if left is None:
            print_phrase(N_("{ended} of {runs}  {cell}, seed {seed}: {outcome} ({duration})"), **values)
        else:
            print_phrase(
                N_("{ended} of {runs}  {cell}, seed {seed}: {outcome} ({duration}); about {left} left"),
                **values,
                left=duration_text(left),
            )

    def _read_record(self, job: Job) -> RunRecord:
        """Return a run's record; if it is damaged, the run counts as unfinished, because it is measured again."""
        try:
            return read_record(job, self.query)
        except UserError:
            return RunRecord(cell=job.cell, seed=job.seed, status="unfinished", groups={})

    def _is_to_train(self, job: Job) -> bool:
        """Return whether the study still has to train a run or, without measures of runs, to measure its settings.

        False if `plan.train` is False.
        """
        if not self.plan.train:
            return False
        if self.query.of_runs:
            return not RunFiles(job.directory).weights.exists()
        return self._read_record(job).status != "finished"

    def _seconds_left(self) -> float | None:
        if not self.timed_steps:
            return None
        at_a_time = max(min(self.plan.side_by_side, len(self._steps_left)), 1)
        return self.steps_left * self.timed_seconds / self.timed_steps / at_a_time

    def _stop_in_time(self, left: float) -> None:
        whole = (time.perf_counter() - self.begun + left) / 60
        assert self.plan.minutes is not None
        if whole > self.plan.minutes:
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
    """Print the approximate disk space that the remaining runs need for weights and, during training, checkpoints."""
    left = [weights_bytes(job.config) for job in to_train]
    training = _CHECKPOINT_COPIES * sum(sorted(left)[-side_by_side:])
    print_phrase(
        N_(
            "disk      about {weights} for the weights of the {runs} runs that are left, and at most {more} more while "
            "they train"
        ),
        weights=format_bytes(sum(left)),
        runs=len(left),
        more=format_bytes(training),
    )


def weights_bytes(config: Config) -> int:
    """Return the approximate size in bytes of a run's weight file, from its settings or its start model."""
    start = RunFiles(Path(config.start)).weights if config.start else None
    if start is not None and start.exists():
        return start.stat().st_size
    known = config.vocabulary.size if isinstance(config.vocabulary, SubwordVocabulary) else _USUAL_VOCABULARY
    matrices = 1 if config.model.tied_output else 2  # the embedding, and the output if it is not tied
    return round(4 * (about_weights(config.model) + matrices * known * config.model.width))

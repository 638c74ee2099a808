"""How far a study is: a line in the terminal after each run, and a page that is rewritten while runs go on."""

from __future__ import annotations

import math
import string
import time
from collections.abc import Sequence
from pathlib import Path

from anaphora.base.console import format_bytes
from anaphora.base.errors import UserError
from anaphora.base.files import write_json, write_text
from anaphora.base.locale.translation import interface_language, spoken_in
from anaphora.report.numbers import NOT_MEASURED, duration_text
from anaphora.report.page.elements import NoteElement, Section, TableElement
from anaphora.report.page.offline import font_placeholder, read_asset, template_environment, trusted_markup, with_fonts
from anaphora.report.page.translations import other_pages, page_names, page_suffixes, remove_translation
from anaphora.report.terminal import print_phrase
from anaphora.report.wording import phrase, spoken_language
from anaphora.runs.directory import RunFiles
from anaphora.settings.commands.study import StudyPlan
from anaphora.settings.model.encoder import about_weights
from anaphora.settings.run import Config
from anaphora.settings.vocabulary import SubwordVocabulary
from anaphora.studies.grid import Job
from anaphora.studies.page.study import STUDY_PAGE
from anaphora.studies.page.words import cell_label, own_names, own_words, status_text
from anaphora.studies.records import FAILURE_FILE, Query, RunRecord, read_record
from anaphora.training.loggers import checkpoint_step

PAGE = "progress"
"""What the name of the page begins with."""
PAGE_SECONDS = 10.0
"""How often the page is rewritten while nothing ends, and how often a browser loads it again."""

_CHECKPOINT_COPIES = 4  # the last weights, two numbers of the optimizer for each, and the best weights
_USUAL_VOCABULARY = 5_000  # tokens, where the text decides how many; about those of the built-in corpus


class StudyProgress:
    """Reports how far the study is and how long it may take, and stops one that would take too long.

    The time left is that of the steps of training left, at the pace of the runs that were trained from their start.

    Attributes:
        ended: how many runs have ended, failed ones among them.
    """

    def __init__(self, plan: StudyPlan, jobs: Sequence[Job], query: Query) -> None:
        self.plan, self.jobs, self.query = plan, jobs, query
        self._folder = Path(plan.output) / plan.name
        self._suffixes = page_suffixes(plan.interface_language)
        self._pages = page_names(PAGE, self._suffixes)
        self.ended = 0
        self.timed_steps, self.timed_seconds = 0, 0.0
        self.begun = time.perf_counter()
        self._records = {job.directory: self._read_record(job) for job in jobs}
        to_train = [job for job in jobs if self._is_to_train(job)]
        self._steps_left = {job.directory: job.config.steps - self._steps_done(job) for job in to_train}
        # Not asked when a run is seen to have begun: on a cluster it has then been at work for a while.
        self._from_start = {job.directory for job in to_train if not RunFiles(job.directory).config.exists()}
        self._running: dict[Path, float] = {}  # since when
        self._page_written = -math.inf
        self._font_characters: set[str] = set()
        self._faces = ""
        print_phrase("study", study=plan.name, runs=len(jobs), at_a_time=plan.side_by_side)
        if plan.train and query.of_runs:
            _print_disk_needed(to_train, plan.side_by_side)
        for name in self._pages.values():
            print_phrase("study_progress", path=self._folder / name)
        self.write_page()
        if len(self._pages) == 1:
            remove_translation(self._folder, PAGE)

    @property
    def steps_left(self) -> int:
        """Of the runs that are still to be trained, from their last checkpoints."""
        return sum(self._steps_left.values())

    def begin(self, job: Job) -> None:
        """A run begins, or is seen to have begun."""
        self._running.setdefault(job.directory, time.perf_counter())

    def end(self, job: Job, error: str = "") -> None:
        """A run has ended.

        Args:
            job: the run.
            error: how its process ended, where it may not have written the reason itself.

        Raises:
            UserError: it was the first, and by its time all would take longer than `minutes`.
        """
        begun = self._running.pop(job.directory, None)  # None where it ended before it was seen to have begun
        seconds = 0.0 if begun is None else time.perf_counter() - begun
        record = self._read_record(job)
        if error and record.status in ("unfinished", "not begun"):
            write_json(job.directory / FAILURE_FILE, {"error": error})
            record = self._read_record(job)
        self._records[job.directory] = record
        self.ended += 1
        self._steps_left.pop(job.directory, None)
        first = False
        if begun is not None and job.directory in self._from_start and record.status == "finished":
            first = not self.timed_steps
            self.timed_steps += job.config.steps
            self.timed_seconds += seconds
        left = self._seconds_left()
        self._print_end(job, record, seconds, left if self._steps_left else None)
        self.write_page()
        if first and left is not None and self.plan.minutes is not None:
            self._stop_in_time(left)

    def update_page(self) -> None:
        """Write the page again where that has not been done for a while."""
        if time.perf_counter() - self._page_written >= PAGE_SECONDS:
            self.write_page()

    def write_page(self) -> None:
        """Write the page, in both languages where both are asked for."""
        self._write_page(None)

    def write_last_page(self, *, stopped: bool) -> None:
        """Write the page for the last time, so that a browser need not load it again.

        Args:
            stopped: before every run had ended; runs on this machine then go on no longer.
        """
        if stopped and self.plan.executor != "slurm":
            self._records |= {
                job.directory: self._read_record(job) for job in self.jobs if job.directory in self._running
            }
            self._running.clear()
        self._write_page("stopped" if stopped else "over")

    def _write_page(self, end: str | None) -> None:
        for language, name in self._pages.items():
            with spoken_in(language):
                html = self._html(end)
                write_text(self._folder / name, self._with_chinese_font(html) if language == "zh" else html)
        self._page_written = time.perf_counter()

    def _with_chinese_font(self, html: str) -> str:
        """The page with its font, which is made again only for new characters: the page is written every few seconds.

        Latin letters are on every machine, so that only a Chinese page needs a font.
        """
        placeholder = str(font_placeholder())
        if not self._font_characters.issuperset(html):
            self._font_characters |= {*html, *string.printable}
            self._faces = with_fonts(placeholder, self._font_characters, (400, 700))
        return html.replace(placeholder, self._faces, 1)

    def _html(self, end: str | None) -> str:
        language = spoken_language()
        left = self._seconds_left()
        failed = [job for job in self.jobs if self._record(job).status == "failed"]
        finished = sum(record.status == "finished" for record in self._records.values())
        results = trusted_markup('<a href="{0}">{0}</a>').format(f"{STUDY_PAGE}{self._suffixes[language]}.html")
        return template_environment().get_template("single.html.j2").render(
            title=phrase("study_progress", "title", study=self.plan.name),
            translations=other_pages(self._pages, language),
            lead=own_words(self.plan.question, self.plan.question_zh),
            openings=[trusted_markup(phrase("study_progress", end)).format(page=results)] if end else [],
            facts=[
                (phrase("study_progress", "finished"),
                 phrase("study", "count_of", count=finished, all=len(self.jobs))),
                (phrase("study_progress", "failed"), str(len(failed))),
                (phrase("study_progress", "running"), str(len(self._running))),
                (phrase("study_progress", "left"), NOT_MEASURED if left is None else duration_text(left)),
                (phrase("study_progress", "written"), time.strftime("%Y-%m-%d %H:%M:%S")),
            ],
            sections=[
                Section(
                    name="failures",
                    title=phrase("study_progress", "failures_title"),
                    explanation=phrase("study_progress", "failures_explanation"),
                    elements=[NoteElement(text=self._failure(job)) for job in failed],
                    missing=phrase("study_progress", "failures_missing"),
                ),
                Section(
                    name="runs",
                    title=phrase("study_progress", "runs_title"),
                    explanation=phrase("study_progress", "runs_explanation"),
                    elements=[self._table()],
                ),
            ],
            pictures={},
            refresh=None if end else round(PAGE_SECONDS),
            style=read_asset("report.css"),
            font_mark=font_placeholder(),
        )  # fmt: skip

    def _print_end(self, job: Job, record: RunRecord, seconds: float, left: float | None) -> None:
        spoken = interface_language()
        values = {
            "ended": self.ended,
            "runs": len(self.jobs),
            "cell": job.cell,
            "seed": job.seed,
            "outcome": phrase("run_outcomes", record.status, spoken, error=record.error),
            "duration": duration_text(seconds, spoken),
        }
        if left is None:
            print_phrase("study_run", **values)
        else:
            print_phrase("study_run_left", **values, left=duration_text(left, spoken))

    def _read_record(self, job: Job) -> RunRecord:
        """A run's record; a damaged one counts as unfinished, for the run is measured again."""
        try:
            return read_record(job, self.query)
        except UserError:
            return RunRecord(cell=job.cell, seed=job.seed, status="unfinished", groups={})

    def _is_to_train(self, job: Job) -> bool:
        """Whether a run has no final weights yet; where settings alone are measured, whether that is not done yet."""
        if not self.plan.train:
            return False
        if self.query.of_runs:
            return not RunFiles(job.directory).weights.exists()
        return self._record(job).status != "finished"

    def _record(self, job: Job) -> RunRecord:
        return self._records[job.directory]

    def _failure(self, job: Job) -> str:
        return phrase("study_progress", "failure", run=self._title(job), error=self._record(job).error)

    def _title(self, job: Job) -> str:
        return phrase(
            "study_progress",
            "run",
            cell=cell_label(job.cell, own_names(self.plan.names, self.plan.names_zh)),
            seed=job.seed,
        )

    def _table(self) -> TableElement:
        rows = []
        for job in self.jobs:
            status, steps = self._record(job).status, job.config.steps
            state = status_text(status)
            running = self._running.get(job.directory)
            if running is not None:
                duration = duration_text(time.perf_counter() - running)
                state = phrase("study_progress", "running_for", duration=duration)
            done = steps if status == "finished" and running is None else self._steps_done(job)
            of_all = phrase("study_progress", "steps_of", done=f"{done:,}", steps=f"{steps:,}")
            rows.append([self._title(job), state, of_all])
        columns = [phrase("study_columns", name) for name in ("run", "state", "steps")]
        return TableElement(title=phrase("study_progress", "runs"), columns=columns, rows=rows, texts=2)

    def _steps_done(self, job: Job) -> int:
        try:
            return checkpoint_step(RunFiles(job.directory))
        except Exception:  # a damaged checkpoint is the run's own failure, not the page's
            return 0

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


def _print_disk_needed(to_train: Sequence[Job], side_by_side: int) -> None:
    """Print about how much the weights of the runs that are left take, and what is to be resumed from beside them."""
    left = [weights_bytes(job.config) for job in to_train]
    training = _CHECKPOINT_COPIES * sum(sorted(left)[-side_by_side:])
    print_phrase("study_disk", weights=format_bytes(sum(left)), runs=len(left), more=format_bytes(training))


def weights_bytes(config: Config) -> int:
    """About how large the file of a run's weights will be, by its settings, or by what it starts from."""
    start = RunFiles(Path(config.start)).weights if config.start else None
    if start is not None and start.exists():
        return start.stat().st_size
    known = config.vocabulary.size if isinstance(config.vocabulary, SubwordVocabulary) else _USUAL_VOCABULARY
    matrices = 1 if config.model.tied_output else 2  # the embedding, and the output's own
    return round(4 * (about_weights(config.model) + matrices * known * config.model.width))

"""Execution of a study: training, measurement of the runs, summary and pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from anaphora.base.console import console, headed_table, say
from anaphora.base.device import torch_device
from anaphora.base.errors import UserError
from anaphora.base.files import OTHER_FOLDER, check_writable, locked_directory, write_csv, write_json
from anaphora.base.translation import _, interface_language, pgettext, spoken_in
from anaphora.data.store import files_read
from anaphora.report.figures.files import save_figure
from anaphora.report.numbers import NOT_MEASURED
from anaphora.report.page.offline import other_pages, page_names, page_suffixes, remove_translation
from anaphora.report.wording import label, language_name, language_names
from anaphora.runs.directory import RunFiles
from anaphora.studies.grid import Job, cells_of, jobs_of
from anaphora.studies.jobs import LocalProcesses, StudyProgress, run_with, train_and_measure
from anaphora.studies.page import words
from anaphora.studies.page.figures import NOT_COMPARED
from anaphora.studies.page.index import INDEX, read_studies, write_study_index
from anaphora.studies.page.study import STUDY_PAGE, draw_study_figures, write_study_page
from anaphora.studies.plan import StudyPlan
from anaphora.studies.records import Query, RunRecord, check_replaced, read_record
from anaphora.studies.schema import Study
from anaphora.studies.slurm import Cluster, check_cluster
from anaphora.studies.summary import summarise, table_rows
from anaphora.training.reuse import check_settings

if TYPE_CHECKING:
    from rich.table import Table


def run_study(plan: StudyPlan, folder: Path) -> Study:
    """Train and measure the runs of a study that are missing, and write results and pages.

    The results are `study.json`, `study.csv` and figures. The pages are the page of the study and the list of all
    studies. Results and pages cover all cells (configurations), including those not in `plan.only`. `folder` holds the
    configuration files.

    Raises:
        UserError: before any run, if a cell has invalid settings; if the data, the device or the cluster do not exist;
            if a directory contains a run with other settings; if a stored result is damaged, or would be replaced by a
            result on other items. After the first run, if the study would take longer than `plan.minutes`.
    """
    cells = cells_of(plan, folder)
    all_jobs = jobs_of(plan, cells)
    jobs = [job for job in all_jobs if not plan.only or job.cell in plan.only]
    untrained = [job for job in jobs if not RunFiles(job.directory).weights.exists()]
    if plan.executor == "here":
        for device in {job.config.trainer.device for job in untrained if plan.train}:
            torch_device(device)
    else:
        check_cluster()
    query = Query(plan.measures, plan.split, plan.items, plan.overwrite)
    if plan.train and query.needs_runs:
        _check_data(plan, untrained)
    # The page covers the whole study even if `only` is set.
    for job in all_jobs:
        check_settings(job.config, "choose another output= or name=")
    root = Path(plan.output) / plan.name
    with locked_directory(root, OTHER_FOLDER):
        measured = [job for job in jobs if plan.train or RunFiles(job.directory).weights.exists()]
        _check_results(plan, root, all_jobs, measured, query)
        run_jobs(plan, measured, query)
        study = summarise(plan, cells, _current_records(all_jobs, measured, query))
        write_study(plan, study)
    return study


def write_study(plan: StudyPlan, study: Study) -> None:
    """Write the results, the figures and the page of a study, and the page that lists all studies.

    The tables and the verdict are also printed. Pages and figures are written in each language of
    `plan.interface_language`. If this is a single language, the Chinese pages and figures of an earlier bilingual run
    are removed.
    """
    root = Path(plan.output) / plan.name
    write_json(root / "study.json", study.to_json())
    write_csv(root / "study.csv", table_rows(study))
    suffixes = page_suffixes(plan.interface_language)
    pages, indexes = page_names(STUDY_PAGE, suffixes), page_names(INDEX, suffixes)
    figures = root / "figures"
    drawn: list[Path] = []
    for language, suffix in suffixes.items():
        with spoken_in(language):
            of_page = draw_study_figures(study)
            for name, figure in of_page.items():
                save_figure(figure, figures / f"{name}{suffix}", plan.formats)
            write_study_page(root / pages[language], study, of_page, other_pages(pages, language))
            write_study_index(root.parent, indexes)
        drawn = [figures / name for name in of_page]
    if len(pages) == 1:
        remove_translation(root, STUDY_PAGE, drawn)
        remove_translation(root.parent, INDEX)
    with spoken_in(interface_language()):
        for line in terminal_report(study):
            console.print(line, soft_wrap=isinstance(line, str))
    say("numbers   {path}", path=root / "study.json")
    for page in pages.values():
        say("page      {path}", path=root / page)
    for index in indexes.values():
        say("all       {path}", path=root.parent / index)


def run_jobs(plan: StudyPlan, jobs: Sequence[Job], query: Query) -> None:
    """Run the jobs of a study in this process, in several processes or on a cluster, and print the progress.

    Raises:
        UserError: after the first run, if the study would take longer than `plan.minutes`; or if the file with the
            submitted jobs is damaged.
    """
    progress = StudyProgress(plan, jobs, query)
    logs = Path(plan.output) / plan.name / "logs"
    if plan.executor == "slurm":
        run_with(Cluster(plan, query, logs), jobs, progress)
    elif plan.side_by_side > 1:
        run_with(LocalProcesses(plan, query, logs), jobs, progress)
    else:
        _run_in_this_process(jobs, query, plan, progress)


def _run_in_this_process(jobs: Sequence[Job], query: Query, plan: StudyPlan, progress: StudyProgress) -> None:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(plan.threads or before)
    try:
        for job in jobs:
            progress.begin(job)
            train_and_measure(job.config, query, plan.train)
            progress.end(job)
    finally:
        torch.set_num_threads(before)


def _check_results(plan: StudyPlan, root: Path, jobs: Sequence[Job], anew: Sequence[Job], query: Query) -> None:
    """Check before any run that stored results are intact and would not be overwritten, and that pages can be written.

    Raises:
        UserError: a stored result of a job that is not in `anew` (jobs to be measured again) is damaged, a page cannot
            be written, or measuring a job in `anew` would overwrite other measures (`check_replaced`).
    """
    for name in page_names(INDEX, page_suffixes(plan.interface_language)).values():
        check_writable(root.parent / name, OTHER_FOLDER)
    read_studies(root.parent, without=plan.name)
    written = {job.directory for job in anew}
    for job in jobs:
        if job.directory in written:
            check_replaced(job, query)
        else:
            read_record(job, query)


def _current_records(jobs: Sequence[Job], measured: Sequence[Job], query: Query) -> list[RunRecord]:
    """Read the stored results of all jobs.

    Cells (configurations) that are not in `plan.only` are not measured again. If the data or the evaluation code have
    changed since such a cell was measured, its results are not comparable with the new ones: its runs get the status
    "unfinished", and a message that names the cell is printed.

    Args:
        jobs: all jobs of the study.
        measured: jobs that this command has measured.
        query: measures of the study.
    """
    records = [read_record(job, query) for job in jobs]
    anew = {job.directory for job in measured}
    finished = [(job, record) for job, record in zip(jobs, records, strict=True) if record.status == "finished"]
    current = {_items_of(job): record.measured_on for job, record in finished if job.directory in anew}
    codes = {about.get("code") for about in current.values()}
    outdated = {
        job.directory: job.cell
        for job, record in finished
        if (codes and record.measured_on.get("code") not in codes)
        or current.get(_items_of(job), record.measured_on) != record.measured_on
    }
    if outdated:
        say(
            "not shown: {cells}, measured on other items or by other code than the runs of this command; "
            "'only=[{cells}]' measures again",
            cells=",".join(dict.fromkeys(outdated.values())),
        )
    return [
        RunRecord(cell=job.cell, seed=job.seed, status="unfinished") if job.directory in outdated else record
        for job, record in zip(jobs, records, strict=True)
    ]


def _items_of(job: Job) -> str:
    """Return a key that is equal for jobs that are evaluated on the same items."""
    return repr((job.config.data, job.config.trainer.limit_items))


def _check_data(plan: StudyPlan, untrained: Sequence[Job]) -> None:
    for job in {repr(job.config.data): job for job in reversed(untrained)}.values():
        try:
            files_read(job.config.data)
        except UserError as error:
            raise UserError(f"study {plan.name}, cell {job.cell}: {error}") from None


def terminal_report(study: Study) -> Iterator[Table | str]:
    """Yield what is printed at the end of a study: question, a table per language, unfinished runs, rules and verdict.

    Cells (configurations) are given by the names used in commands, not by their display names.
    """
    yield _("{study}: {question}").format(study=study.name, question=words.question_of(study))
    for language in study.measured_languages:
        yield _terminal_table(study, language)
    for cell in study.cells:
        for run in cell.runs:
            if run.status != "finished":
                state = words.status_text(run.status, run.error)
                yield _("{cell}, seed {seed}: {state}").format(cell=cell.name, seed=run.seed, state=state)
    for row in study.verdict.rules:
        values = [
            words.value_in(language, words.judged_value(row, row.spreads.get(language)))
            for language in words.judged_languages(row)
        ]
        text = {
            True: _("holds: {statement} ({measured}; needed {needed})"),
            False: _("FAILS: {statement} ({measured}; needed {needed})"),
            None: _("not checked: {statement} ({measured}; needed {needed})"),
        }[row.passed]
        yield text.format(
            statement=words.in_page_language(row.statement, row.statement_zh),
            measured=pgettext("list", ", ").join(values) or NOT_MEASURED,
            needed=words.condition_text(row),
        )
    yield _("verdict: {verdict}").format(verdict=label(words.verdict_names(), study.verdict.verdict))


def _terminal_table(study: Study, language: str) -> Table:
    title = _("Median (lowest to highest) over seeds")
    if language in language_names():
        title = (
            _("{spoken}: median (lowest to highest) over seeds; ~ task not solved")
            if words.has_alignment(study)
            else _("{spoken}: median (lowest to highest) over seeds")
        ).format(spoken=language_name(language))
    measures = dict.fromkeys(
        measure
        for group in study.groups_in(language)
        for measure in group.measures
        # The measures of all layers would not fit in a line.
        if measure not in NOT_COMPARED and not words.is_of_route(measure)
    )
    texts = (_("cell"), _("kind of items"), pgettext("number of", "runs"))
    table = headed_table(title, texts, map(words.measure_label, measures), padding=(0, 1), pad_edge=False)
    for cell in study.table_cells:
        for group, summary in cell.groups.get(language, {}).items():
            values = [words.measure_text(summary, name) for name in measures]
            table.add_row(cell.name, words.items_label(group), str(summary.runs), *values)
    return table

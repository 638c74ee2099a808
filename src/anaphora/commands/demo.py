"""Train a model if necessary, measure its attention, and write a report.

Example: anaphora demo name=smoke trainer=smoke data.train_items=300 data.test_items=60
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from anaphora.base.errors import UserError
from anaphora.base.files import OTHER_FOLDER
from anaphora.base.translation import _
from anaphora.settings.compose import is_sweep_job, job_name, job_overrides
from anaphora.settings.data import TextCorpus
from anaphora.settings.model.attention import Recurrent
from anaphora.settings.run import Config


def demo(config: Config) -> float | None:
    """Train a model if necessary, measure it, write attention rows, figures and a report, and print the main scores.

    In a job of a sweep, return the run's objective, which the sampler minimises; otherwise None.

    Raises:
        UserError: the data are texts without annotated pronouns, the model has no attention maps, or a sweep minimises
            an objective that these settings do not measure; also the errors of `load_or_train`.
    """
    from anaphora.analysis.evidence.measurement import gather_evidence
    from anaphora.analysis.maps.rows import write_attention_rows
    from anaphora.base.console import say, working
    from anaphora.commands.attention import example_figures
    from anaphora.commands.parts.pages import write_pages
    from anaphora.commands.parts.shared import result_settings
    from anaphora.commands.report import Report, evidence_results, page_results
    from anaphora.model.mixer import NO_MAPS
    from anaphora.report.figures.files import save_in_languages
    from anaphora.report.page.offline import page_suffixes
    from anaphora.report.terminal import print_headline, print_verdict
    from anaphora.runs.directory import RunFiles, claimed, locked_run
    from anaphora.training.reuse import load_or_train, objective

    if isinstance(config.data, TextCorpus):
        raise UserError(
            f"data={config.data.kind} has no pronoun questions, and the demo measures them; train with anaphora train"
        )
    if isinstance(config.model.attention, Recurrent):
        raise UserError(NO_MAPS)
    if is_sweep_job():
        config.check_objective()
    name = config.name or (job_name(job_overrides()) if is_sweep_job() else "demo")
    run = load_or_train(replace(config, name=name), "choose another name=")
    directory, layout = run.directory, RunFiles(run.directory)
    settings = Report(run=str(directory))
    results = evidence_results(directory, run, settings) | page_results(directory, [run], settings)
    rows = directory / "attention"
    no_choice: dict[str, Any] = {"items": None, "words": [], "chunk_tokens": None}  # defaults of `anaphora extract`
    with (
        locked_run(directory, OTHER_FOLDER),
        claimed(directory, results, settings, way_out := "choose another name="),
        claimed(rows, {"test.parquet": result_settings(rows, run, settings) | no_choice}, settings, way_out),
        working(_("reading the data")) as progress,
    ):
        measured = gather_evidence(run, settings, progress)
        progress(_("writing rows and figures"))
        write_attention_rows(rows / "test.parquet", measured.headline.capture.records)
        suffixes = page_suffixes(settings.interface_language)
        save_in_languages(example_figures(measured.headline), layout.figures, settings.formats, suffixes)
        [page] = write_pages([measured], settings)
    print_headline(measured.evidence)
    print_verdict(measured.evidence)
    say("numbers   {path}", path=layout.metrics)
    say("figures   {path}", path=layout.figures)
    say("rows      {path}", path=rows)
    say("report    {path}", path=page)
    return objective(directory, config.objective) if is_sweep_job() else None

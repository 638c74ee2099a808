"""Draw one sentence, or the figures of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from anaphora.analysis.evidence.exhibits import first_right_and_wrong
from anaphora.analysis.evidence.headline import Headline
from anaphora.analysis.evidence.storage import stored_head
from anaphora.analysis.maps.capture import whole_maps
from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.maps.words import word_map
from anaphora.base.console import console, working
from anaphora.commands.report import report_run
from anaphora.commands.shared import headline_of, held_output, requested_head, sentence_of
from anaphora.report.figures import pictures
from anaphora.report.figures.files import save_figure
from anaphora.report.page.elements import figures_of
from anaphora.report.page.sections.all import score_sections
from anaphora.runs.directory import Run, load, training_record
from anaphora.runs.items import encode
from anaphora.settings.commands.analysis import Analysis


def plot(settings: Analysis) -> None:
    """Draw one sentence, or the figures of a run's scores."""
    run = load(settings.run, settings.trainer)
    with held_output(settings.output, run.directory / "figures") as folder:
        if settings.text is not None:
            paths = plot_sentence(run, settings, folder)
        else:
            with working("reading the data") as progress:
                headline = headline_of(run, replace(settings, untrained=0), progress)
            paths = [
                *plot_scores(headline, folder, settings.formats),
                *plot_examples(headline, folder, settings.formats),
            ]
    for path in paths:
        console.print(str(path), soft_wrap=True)


def plot_sentence(run: Run, settings: Analysis, folder: Path) -> list[Path]:
    """The heat map and the pronoun's row of one sentence."""
    example = sentence_of(settings)
    head = requested_head(settings, run) or stored_head(run)
    encode(run, [example])  # refuses a text that the model cannot hold
    tokens, maps = whole_maps(run.model, run.tokenizer, example, run.config.task.prediction)
    pronoun_tokens = tokens.covering(example.pronoun)
    record = AttentionRecord.of(example, tokens, maps[:, :, pronoun_tokens].mean(axis=2))
    heat_map = word_map(maps, tokens.words)
    return pictures.save_sentence_figures(record, heat_map, head, folder / "sentence", settings.formats)


def plot_scores(headline: Headline, folder: Path, formats: Sequence[str]) -> list[Path]:
    """The figures that the report has too: scoreboard, heads on development, quads, and alignment through training."""
    run = headline.run
    of_run = report_run(run.name, headline, headline.evidence(), training_record(run.directory))
    figures = figures_of(score_sections(of_run))
    return [path for name, figure in figures.items() for path in save_figure(figure, folder / name, formats)]


def plot_examples(headline: Headline, folder: Path, formats: Sequence[str]) -> list[Path]:
    """The pronoun's row in the first sentence where the head is right and the first where it is wrong, by language."""
    run, head, paths = headline.run, headline.head, []
    for language in headline.evidence().languages:
        for name, record in first_right_and_wrong(headline, language).items():
            row = pictures.sentence_pronoun_row(record, head)
            paths += save_figure(row, folder / f"row_{language}_{name}", formats)
            if name == "right":
                _, maps = whole_maps(run.model, run.tokenizer, record.example, run.config.task.prediction)
                heat_map = pictures.sentence_heat_map(record, word_map(maps, record.words), head)
                paths += save_figure(heat_map, folder / f"heat_map_{language}", formats)
    return paths

"""Draw one sentence, or the figures of a run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from anaphora.analysis.evidence.exhibits import first_right_and_wrong
from anaphora.analysis.evidence.headline import Headline
from anaphora.analysis.evidence.storage import stored_head
from anaphora.analysis.maps.capture import whole_maps
from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.maps.words import word_map
from anaphora.base.console import console, working
from anaphora.base.locale.translation import _
from anaphora.commands.report import report_run
from anaphora.commands.shared import (
    asks_alike,
    check_place_of_other_data,
    head_of_settings,
    headline_of,
    held_output,
    sentence_of,
)
from anaphora.data.own_sentence import name_of_sentence
from anaphora.report.figures import pictures
from anaphora.report.figures.files import save_in_languages
from anaphora.report.page.elements import figures_of
from anaphora.report.page.sections.all import score_sections
from anaphora.report.page.translations import page_suffixes
from anaphora.runs.directory import Run, load, training_record
from anaphora.runs.items import encode
from anaphora.settings.commands.analysis import Drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot(settings: Drawing) -> None:
    """Draw one sentence, or the figures of a run's scores, in each language that is wanted.

    Raises:
        UserError: the items are of other data than the run's own, and `output` would put their figures among its own.
    """
    run = load(settings.run, settings.trainer)
    if settings.text is None and asks_alike(run, settings):
        check_place_of_other_data(run, settings)
    suffixes = page_suffixes(settings.interface_language)
    with held_output(settings.output, run.directory / "figures", run) as folder:
        if settings.text is not None:
            asked = (settings.run, settings.pronoun, settings.candidates, settings.antecedent)
            place = folder / f"sentence_{name_of_sentence(settings.text, *asked, settings.layer, settings.head)}"
            paths = save_in_languages(sentence_figures(run, settings), place, settings.formats, suffixes)
        else:
            with working(_("reading the data")) as progress:
                headline = headline_of(run, settings, 0, progress)
            paths = [
                *save_in_languages(lambda: score_figures(headline), folder, settings.formats, suffixes),
                *save_in_languages(example_figures(headline), folder, settings.formats, suffixes),
            ]
    for path in paths:
        console.print(str(path), soft_wrap=True)


def sentence_figures(run: Run, settings: Drawing) -> Callable[[], dict[str, Figure]]:
    """What draws the heat map and the pronoun's row of one sentence, which is read once."""
    example = sentence_of(settings)
    head = head_of_settings(settings, run) or stored_head(run)
    encode(run, [example])  # refuses a text that the model cannot hold
    tokens, maps = whole_maps(run.model, run.tokenizer, example, run.config.task.prediction)
    pronoun_tokens = tokens.covering(example.pronoun)
    record = AttentionRecord.of(example, tokens, maps[:, :, pronoun_tokens].mean(axis=2))
    return partial(pictures.sentence_figures, record, word_map(maps, tokens.words), head)


def score_figures(headline: Headline) -> dict[str, Figure]:
    """The figures that the report has too: scoreboard, heads on development, quads, and alignment through training."""
    run = headline.run
    of_run = report_run(run.name, headline, headline.evidence(), training_record(run.files.directory))
    return figures_of(score_sections(of_run))


def example_figures(headline: Headline) -> Callable[[], dict[str, Figure]]:
    """What draws the pronoun's row in the first sentence where the head is right and the first where it is wrong.

    Both are taken from each language of the texts; where the head is right, the whole map is drawn too.
    """
    run, head = headline.run, headline.head
    examples = {language: first_right_and_wrong(headline, language) for language in headline.evidence().languages}
    maps = {
        language: whole_maps(run.model, run.tokenizer, records["right"].example, run.config.task.prediction)[1]
        for language, records in examples.items()
        if "right" in records
    }

    def draw() -> dict[str, Figure]:
        figures = {}
        for language, records in examples.items():
            for name, record in records.items():
                figures[f"row_{language}_{name}"] = pictures.sentence_pronoun_row(record, head)
            if language in maps:
                right = records["right"]
                words = word_map(maps[language], right.words)
                figures[f"heat_map_{language}"] = pictures.sentence_heat_map(right, words, head)
        return figures

    return draw

"""Write any model's attention in one text as an HTML page, a table or a picture, or draw a run's scores.

The suffix of `output` determines the format. If candidates are given, a command that writes a page or a table also
prints the heads in which the pronoun attends most to each of the candidates.

Example: anaphora attention run=outputs/demo text="Anna left because she was tired." pronoun=she
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from anaphora.base.checks import FIGURE_FORMATS, file_ending, one_of
from anaphora.base.files import OTHER_FILE, check_new, check_writable
from anaphora.base.language import LANGUAGES, split_names
from anaphora.base.translation import _, environment_language, in_language_of_messages
from anaphora.commands.parts.settings import RunHead, SentenceOrItems

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from anaphora.analysis.evidence.headline import Headline
    from anaphora.api import SentenceAttention
    from anaphora.data.example import Example
    from anaphora.runs.directory import Run

PAGES = (".html", ".parquet")
"""Suffixes of pages and tables."""
PICTURES = (".png", ".svg", ".pdf")
"""Suffixes of pictures."""
_HEADS = 5
"""Number of heads printed for each candidate."""
_ELSEWHERE = "outputs/other/attention.png"
"""Suggested `output` in the error about pictures for other data than the run's own."""


@dataclass(kw_only=True)
class AttentionQuery(RunHead, SentenceOrItems):
    """Settings of `anaphora attention`."""

    any_model: ClassVar[bool] = True  # a transformers model has no config.yaml
    run: str = "outputs/demo"  # a run directory, a folder with a transformers model, or hf://owner/name
    # A word of the text ("it:2" for the second "it"), or its characters as "start:end"; by default its last
    # third-person pronoun.
    pronoun: str | None = None
    second: str | None = None  # second text of a pair for a transformers model, for a page or a table
    by: str = "word"  # `word`, or `token` for one row per subword; for a page or a table
    # The text with spaces between the words into which tokens are merged, as in "小红 推 了 小明"; by default words end
    # at spaces and punctuation, and in Chinese each token is a word. For a page or a table.
    words: str | None = None
    special: bool = True  # keep special tokens such as [CLS]; if false, the rest of each row is rescaled
    # Language of a page or of pictures: `en`, `zh`, or for pictures `both` (one file each); texts are not translated.
    interface_language: str = field(default_factory=environment_language)
    # File to write. With a text: .html for a page of all layers and heads (the default, named after the text), .parquet
    # for a table, or .png, .svg or .pdf for pictures of one head, whose names begin with the name of this file. Without
    # a text, pictures show a run's scores and go by default to its folder `figures`.
    output: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("by", self.by, ("word", "token"))
        if self.output is not None:
            file_ending("output", self.output, *PAGES, *PICTURES)
        if not self.draws:
            self._check_page()
            return
        one_of("interface_language", self.interface_language, (*LANGUAGES, "both"))
        of_pages = {
            "second": self.second is not None,
            "words": self.words is not None,
            f"by ({self.by})": self.by != "word",
            "special (false)": not self.special,
        }
        if given := next((name for name, is_given in of_pages.items() if is_given), None):
            raise ValueError(
                f"{given} is for a page or a table; give text=... and an output that ends in .html or .parquet"
            )

    @property
    def draws(self) -> bool:
        return self.text is None if self.output is None else Path(self.output).suffix in PICTURES

    def _check_page(self) -> None:
        one_of("interface_language", self.interface_language, LANGUAGES)
        if self.words is not None and self.by != "word":
            raise ValueError(f"words and by ({self.by}) do not go together: words merge the tokens, with by=word")
        if self.text is None:
            raise ValueError(f"output ({self.output}) needs text=...; without one, pictures end in .png, .svg or .pdf")
        if self.antecedent is not None and Path(self.output or "").suffix == ".parquet":
            raise ValueError(f"antecedent ({self.antecedent!r}) is for a page or pictures; a table does not mark it")
        for name in ("layer", "language"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"{name} ({getattr(self, name)}) is for pictures, whose output ends in .png, .svg or .pdf"
                )


def attention(settings: AttentionQuery) -> None:
    """Write the attention in a text as an HTML page or a table (`show_text`), or draw pictures."""
    if settings.draws:
        draw_pictures(settings)
    else:
        show_text(settings, settings.text or "")


def show_text(settings: AttentionQuery, text: str) -> None:
    """Write the attention in a text as an HTML page or a table.

    If candidates are given, also print the heads in which the pronoun attends most to each of them.

    Raises:
        UserError: the file cannot be written; also the errors of `anaphora.attention`.
    """
    from anaphora.api.models import attention as read_attention
    from anaphora.base.console import console, say
    from anaphora.data.own_sentence import name_of_sentence
    from anaphora.report.page.answer_notes import unread_note

    candidates = split_names(settings.candidates)
    question = (settings.run, settings.pronoun, candidates, settings.antecedent)
    words = [] if settings.words is None else [settings.words]
    second = [] if settings.second is None else [settings.second]
    view = (settings.by, settings.special, settings.interface_language, *words, *second)
    path = Path(settings.output or f"attention_{name_of_sentence(text, *question, *view)}.html")
    is_named = settings.output is not None  # the default name has a digest of all settings
    check_new(path, overwrite=settings.overwrite or not is_named)
    maps = read_attention(
        settings.run,
        text,
        settings.pronoun,
        candidates,
        antecedent=settings.antecedent,
        by=settings.by,
        words=settings.words,
        second=settings.second,
        device=settings.trainer,
    )
    if not settings.special:
        maps = maps.without_special()
    if settings.pronoun is None:
        print_choice_of_pronoun(maps.example)
    if maps.example is not None and candidates:
        print_ranking(maps, maps.example, candidates)
    if maps.is_decoder:
        say("A decoder: no word sees what follows it.")
    if maps.unread:
        say(unread_note(maps.unread))
    check_new(path, overwrite=settings.overwrite or not is_named)
    written = maps.save(path) if path.suffix == ".parquet" else maps.page(path, settings.interface_language).path
    console.print(str(written), soft_wrap=True)


@in_language_of_messages
def print_choice_of_pronoun(example: Example | None) -> None:
    """Print which pronoun was chosen if the text has several, or a note if it has none."""
    from anaphora.base.console import say
    from anaphora.report.page.answer_notes import no_pronoun_note, pronoun_note

    note = no_pronoun_note() if example is None else pronoun_note(example.text, example.pronoun)
    if note:
        say(note)


@in_language_of_messages
def print_ranking(maps: SentenceAttention, example: Example, candidates: list[str]) -> None:
    """Print the heads in which the pronoun attends most to each candidate, with the attention weights (0 to 1)."""
    from rich.table import Table

    from anaphora.base.console import print_table, say
    from anaphora.data.own_sentence import written_span

    table = Table()
    for candidate in candidates:
        name = example.text[slice(*example.pronoun)]
        table.add_column(_("from {pronoun} to {candidate}").format(pronoun=name, candidate=candidate))
    pronoun = written_span(example.text, example.pronoun)
    columns = [maps.rank(pronoun, candidate)[:_HEADS] for candidate in candidates]
    say("The heads with most weight, as layer.head:")
    for row in zip(*columns, strict=True):
        table.add_row(*(f"{one.layer}.{one.head}  {one.weight:.2f}" for one in row))
    print_table(table)


def draw_pictures(settings: AttentionQuery) -> None:
    """Draw figures of the attention in one sentence, or of a run's scores, in each requested language.

    Raises:
        UserError: figures for other data would be written to the folder for the run's own data, or a file cannot be
            written; also the errors of `sentence_figures` and `headline_of`.
    """
    from anaphora.base.console import console, working
    from anaphora.commands.parts.shared import check_place_of_like_data, headline_of, held_output
    from anaphora.report.figures.files import save_in_languages
    from anaphora.report.page.offline import page_suffixes
    from anaphora.report.page.sections import FIGURES
    from anaphora.runs.directory import load, results_folder
    from anaphora.runs.warm_start import holds_run

    named = Path(settings.output) if settings.output else None
    formats = [named.suffix[1:]] if named else FIGURE_FORMATS
    is_run = settings.text is None or holds_run(settings.run)  # without a text, pretrained weights are taken as a run
    run = load(settings.run, settings.trainer) if is_run else None
    if run is not None and settings.text is None:
        check_place_of_like_data(run, settings, _ELSEWHERE)
    if named:
        check_writable(named, OTHER_FILE)
        for picture in sorted(named.parent.glob(f"{escape(named.stem)}_*{named.suffix}")):
            figure = picture.name.removeprefix(f"{named.stem}_").split(".")[0]
            if figure in FIGURES or figure.startswith(("heat_map", "pronoun_row", "row_")):
                check_new(picture, settings.overwrite)
    default = (results_folder(settings.run) if run is None else run.directory) / "figures"
    stem = named.stem if named else settings.results_name  # the report's figures have other names
    folder = named.parent if named else default
    with held_output(folder, run or settings.run, settings, {}, _ELSEWHERE):
        if run is None:
            drawings = [figures_of_other_model(settings)]
        elif settings.text is not None:
            drawings = [sentence_figures(run, settings)]
        else:
            with working(_("reading the data")) as progress:
                headline = headline_of(run, settings, 0, progress)
            drawings = [partial(score_figures, headline), example_figures(headline)]
        for draw in drawings:
            paths = save_in_languages(draw, folder / f"{stem}_", formats, page_suffixes(settings.interface_language))
            for path in paths:
                console.print(str(path), soft_wrap=True)


def sentence_figures(run: Run, settings: AttentionQuery) -> Callable[[], dict[str, Figure]]:
    """Run the model on one sentence; return a function that draws a heat map and the pronoun's row in one head.

    Raises:
        UserError: the sentence is invalid or too long for the model, the head in the settings does not exist, or no
            head is set and none was chosen on the development split.
    """
    from anaphora.analysis.evidence.storage import stored_head
    from anaphora.analysis.maps.capture import whole_maps
    from anaphora.analysis.maps.record import AttentionRecord
    from anaphora.analysis.maps.words import word_map
    from anaphora.commands.parts.shared import head_of_settings, sentence_of
    from anaphora.report.figures import pictures
    from anaphora.runs.items import encode

    example = sentence_of(settings)
    head = head_of_settings(settings, run) or stored_head(run, example.language)
    encode(run, [example])  # raises an error if the text is too long for the model
    tokens, maps = whole_maps(run.model, run.tokenizer, example)
    pronoun_tokens = tokens.covering(example.pronoun)
    record = AttentionRecord.of(example, tokens, maps[:, :, pronoun_tokens].mean(axis=2))
    return partial(pictures.sentence_figures, record, word_map(maps, tokens.words), head)


def figures_of_other_model(settings: AttentionQuery) -> Callable[[], dict[str, Figure]]:
    """Return a function that draws the figures of `sentence_figures`, for a model of `transformers`.

    Raises:
        UserError: the model cannot be read; also the errors of `sentence_figures`.
    """
    from anaphora.analysis.evidence.storage import head_chosen_in, no_head_error
    from anaphora.analysis.maps.words import word_map
    from anaphora.analysis.results.scores import existing_head
    from anaphora.base.device import torch_device
    from anaphora.commands.parts.shared import holds_other_run, named_head, sentence_of
    from anaphora.hf.reader import open_model
    from anaphora.report.figures import pictures
    from anaphora.runs.directory import results_folder

    example, results = sentence_of(settings), results_folder(settings.run)
    # The folder may be that of a run with the same name, whose head says nothing about this model.
    places, argument = [] if holds_other_run(results) else [results], f"{settings.run} data=..."
    head = named_head(settings) or head_chosen_in(places, argument, example.language)
    model = open_model(settings.run).on(torch_device(settings.trainer.device))
    if head is None:
        raise no_head_error(results, argument)
    head = existing_head(head, model.attending_layers, model.heads)
    (record,), (tokens, maps) = model.records([example]), model.maps(example.text)
    return partial(pictures.sentence_figures, record, word_map(maps, tokens.words), head)


def score_figures(headline: Headline) -> dict[str, Figure]:
    """Return the figures of the report's sections on scores, all heads, quads (four related sentences) and training."""
    from anaphora.commands.parts.pages import report_run
    from anaphora.report.page.elements import figures_of
    from anaphora.report.page.sections import score_sections
    from anaphora.runs.directory import training_record

    run = headline.run
    of_run = report_run(run.name, headline, headline.evidence(), training_record(run.files.directory))
    return figures_of(score_sections(of_run))


def example_figures(headline: Headline) -> Callable[[], dict[str, Figure]]:
    """Return a function that draws the pronoun's attention row in up to two sentences of each language.

    These are the first item in which the evaluated head attends more to the antecedent than to any other candidate, and
    the first in which it does not. For the former, the function also draws the whole attention map of the head.
    """
    from anaphora.analysis.evidence.example_sentences import first_right_and_wrong
    from anaphora.analysis.maps.capture import whole_maps
    from anaphora.analysis.maps.words import word_map
    from anaphora.report.figures import pictures

    run, head = headline.run, headline.head
    examples = {language: first_right_and_wrong(headline, language) for language in headline.evidence().languages}
    maps = {
        language: whole_maps(run.model, run.tokenizer, records["right"].example)[1]
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

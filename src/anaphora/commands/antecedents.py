"""Evaluate attention heads as antecedent selectors on a corpus.

Example: anaphora antecedents run=outputs/demo data=litbank data.path=litbank/coref/tsv
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anaphora.base.checks import FIGURE_FORMATS, at_least, figure_formats, one_of
from anaphora.base.device import Device
from anaphora.base.errors import UserError
from anaphora.base.files import stored_settings, write_csv, write_json
from anaphora.base.translation import _, in_language_of_messages, interface_language, pgettext, spoken_in
from anaphora.commands.parts.settings import Overwriting
from anaphora.settings.data import Data

if TYPE_CHECKING:
    from anaphora.api.models import AnyModel
    from anaphora.data.example import Example

_RESULTS = "antecedents.json"


@dataclass(kw_only=True)
class AntecedentSelection(Overwriting):
    """Settings of `anaphora antecedents` (after Clark et al. 2019, table 2); heads are chosen on the split `dev`."""

    run: str = "outputs/demo"  # a run directory, a folder with a transformers model, or hf://owner/name
    data: Data | None = None  # by default the run's own data; for instance data=litbank data.path=...
    split: str = "test"  # split to report, `test` or `train`
    # Factors, such as `seen` or `genre`, by which the table is broken down.
    by: list[str] = field(default_factory=list)
    untrained: int = 5  # number of untrained models to measure as a control
    output: str | None = None  # folder for the files; by default `antecedents/<corpus>` in the run directory
    formats: list[str] = field(default_factory=lambda: [*FIGURE_FORMATS])  # formats of figures: `png`, `svg`, `pdf`
    trainer: Device = field(default_factory=Device)  # device to compute on

    def __post_init__(self) -> None:
        one_of("split", self.split, ("test", "train"))
        figure_formats(self.formats)
        at_least("untrained", self.untrained, 0)


def antecedents(settings: AntecedentSelection) -> dict[str, Any]:
    """Choose heads on the development documents, evaluate them on another split, and print and save the results.

    Returns:
        Content of `antecedents.json`: "source", "run", "settings", "split", "by", "untrained_models" (number),
        "passages" (number of texts, by split), "development_items", "left_out" (number of items without an antecedent
        before the mention), "not_separate" (number of items left out because the antecedent shares a token with the
        mention) and "rows" (see `selection_table`).

    Raises:
        UserError: `data` is not set for a model that is not a run; the split `dev` or the evaluated split has no
            mention with an antecedent before it; or a factor in `by` is unknown. Also the errors of `held_output` and
            `select_antecedents`.
    """
    from anaphora.api.runs import OpenRun
    from anaphora.commands.parts.shared import held_output, open_run_or_model, output_folder, result_settings
    from anaphora.runs.directory import results_folder

    model = open_run_or_model(settings.run, settings.trainer)
    run = model.run if isinstance(model, OpenRun) else None
    source = settings.data or (run.config.data if run else None)
    if source is None:
        raise UserError(f"data: {model.name} has no data of its own; name a corpus, such as data=litbank data.path=...")
    place = run.directory if run else results_folder(settings.run)
    folder = output_folder(settings.output, place / "antecedents" / source.kind)
    about = result_settings(folder, run or settings.run, settings, "split", "by", "untrained")
    with held_output(folder, run or settings.run, settings, {_RESULTS: about}):
        return _select(model, source, settings, folder)


def _select(model: AnyModel, source: Data, settings: AntecedentSelection, folder: Path) -> dict[str, Any]:
    from tqdm import tqdm

    from anaphora.analysis.results.typed_json import table_row
    from anaphora.analysis.tasks.antecedent_selection import NO_SEPARATE_ANTECEDENT, heads_table
    from anaphora.api.head_choices import select_antecedents, with_preceding_antecedent
    from anaphora.api.runs import OpenRun
    from anaphora.api.scoring import unread_by
    from anaphora.base.console import say
    from anaphora.commands.parts.shared import print_unread
    from anaphora.commands.parts.tables import print_trained_items
    from anaphora.data.store import load as load_corpus
    from anaphora.report.antecedents import antecedent_figure
    from anaphora.report.figures.files import save_figure
    from anaphora.runs.items import corpus_of, questions_of

    corpus = corpus_of(model.run, settings.data) if isinstance(model, OpenRun) else load_corpus(source)
    examples = {name: corpus.examples(name) for name in ("dev", settings.split)}
    mentions = {name: with_preceding_antecedent(split, name) for name, split in examples.items()}
    development, measured = mentions.values()
    _check_factors(settings.by, measured)
    passages = {name: len({example.text for example in split}) for name, split in mentions.items()}
    total = sum(passages.values()) * (1 + settings.untrained)
    with tqdm(total=total, unit=pgettext("unit of progress", "text"), mininterval=1) as bar:
        selected = select_antecedents(
            model, development, measured, settings.untrained, settings.by, bar.set_description, bar.update
        )
    metrics = {
        "source": "Clark et al. 2019, table 2",
        "run": model.name,
        "settings": stored_settings(source),
        "split": settings.split,
        "by": settings.by,
        "untrained_models": settings.untrained,
        "passages": passages,
        "development_items": len(selected.development.examples),
        "left_out": len(examples[settings.split]) - len(measured),
        "not_separate": (not_separate := len(measured) - len(selected.measured.examples)),
        "rows": selected.rows,
    }
    write_json(folder / _RESULTS, metrics)
    write_csv(folder / "antecedents.csv", selected.rows)
    heads = [*heads_table(selected.development, "dev"), *heads_table(selected.measured, settings.split)]
    write_csv(folder / "heads.csv", [table_row(head) for head in heads])
    with spoken_in(interface_language()):
        figure = antecedent_figure(metrics)
    save_figure(figure, folder / "figures" / "antecedent_selection", settings.formats)
    print_selections(metrics)
    if not_separate:
        say("left out: {items:item|items} ({reason})", items=not_separate, reason=_(NO_SEPARATE_ANTECEDENT))
    print_unread(unread_by(model, measured))
    if isinstance(model, OpenRun):
        print_trained_items(model.run, settings.data, questions_of(measured), settings.split)
    say("written   {path}", path=folder)
    return metrics


@in_language_of_messages
def print_selections(metrics: Mapping[str, Any]) -> None:
    """Print the tables of `antecedents.json`, and a sentence on the best head for each set of candidate words."""
    from rich.table import Table

    from anaphora.base.console import console, print_table
    from anaphora.report.antecedents import terminal_tables

    for part in terminal_tables(metrics):
        if isinstance(part, Table):
            print_table(part)
        else:
            console.print(part, soft_wrap=True)


def _check_factors(by: list[str], examples: list[Example]) -> None:
    from anaphora.analysis.tasks.task_accuracy import check_is_factor

    known = sorted({name for example in examples for name in example.factors} - {"extent", "extents"})
    for name in by:
        check_is_factor("by", name, known)

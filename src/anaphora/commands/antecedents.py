"""Heads as antecedent selectors from end to end: a stored model, a corpus, the table, and the files that hold it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.table import Table
from tqdm import tqdm

from anaphora.analysis.tasks.antecedent_selection import (
    Selections,
    collect_selections,
    has_preceding_antecedent,
    heads_table,
    selection_table,
)
from anaphora.analysis.tasks.passages import Passages
from anaphora.base.console import console, print_table
from anaphora.base.errors import UserError
from anaphora.base.files import write_csv, write_json
from anaphora.commands.shared import held_output
from anaphora.data.example import Example
from anaphora.data.store import load as load_corpus
from anaphora.model.pronoun_model import PronounModel
from anaphora.report.antecedents import antecedent_figure, terminal_tables
from anaphora.report.figures.files import save_figure
from anaphora.runs.directory import Run, load
from anaphora.settings.commands.analysis import AntecedentSelection
from anaphora.settings.data import Data
from anaphora.settings.model.encoder import check_length


def select_antecedents(settings: AntecedentSelection) -> dict[str, Any]:
    """Choose heads on the development documents, measure them on others, print, and write tables and a figure.

    Returns:
        What `antecedents.json` holds: "source", "run", "settings", "split", "passages", "development_items",
        "left_out" (items without an antecedent before the mention) and "rows" (see `selection_table`).

    Raises:
        UserError: a split holds no items, a factor of `by` is unknown, or a text is too long for the model.
    """
    run = load(settings.run, settings.trainer)
    source = settings.data or run.config.data
    with held_output(settings.output, run.directory / "antecedents" / source.kind) as folder:
        return _select_antecedents(run, source, settings, folder)


def _select_antecedents(run: Run, source: Data, settings: AntecedentSelection, folder: Path) -> dict[str, Any]:
    corpus = load_corpus(source)
    passages = {}
    left_out = 0
    for name in ("dev", settings.split):
        examples = corpus.examples(name)
        kept = [example for example in examples if has_preceding_antecedent(example)]
        if not kept:
            raise UserError(f"split ({name}) holds no mention with an antecedent before it")
        if name == settings.split:
            left_out = len(examples) - len(kept)
            _check_factors(settings.by, kept)
        passages[name] = Passages(kept, run.tokenizer)
        check_length(run.config.model, passages[name].encoded.max_tokens())
    total = sum(map(len, passages.values()))

    def selections(model: PronounModel, title: str) -> tuple[Selections, Selections]:
        with tqdm(total=total, desc=title, unit="text", mininterval=1) as bar:
            first, second = (
                collect_selections(each.examples, each.records(model.encoder, run.config.batching, bar.update))
                for each in passages.values()
            )
        return first, second

    development, measured = selections(run.model, run.name)
    untrained = [
        selections(run.untrained_model(seed), f"untrained {seed}") for seed in range(1, settings.untrained + 1)
    ]
    with console.status("drawing documents for the intervals"):
        rows = selection_table(development, measured, untrained, settings.by)
    metrics = {
        "source": "Clark et al. 2019, table 2",
        "run": run.name,
        "settings": asdict(source),
        "split": settings.split,
        "passages": {name: len(each) for name, each in passages.items()},
        "development_items": len(development.examples),
        "left_out": left_out,
        "untrained_models": settings.untrained,
        "rows": rows,
    }
    write_json(folder / "antecedents.json", metrics)
    write_csv(folder / "antecedents.csv", rows)
    write_csv(folder / "heads.csv", [*heads_table(development, "dev"), *heads_table(measured, settings.split)])
    save_figure(antecedent_figure(metrics), folder / "figures" / "antecedent_selection", settings.formats)
    for part in terminal_tables(metrics):
        if isinstance(part, Table):
            print_table(part)
        else:
            console.print(part, soft_wrap=True)
    console.print(f"written   {folder}", soft_wrap=True)
    return metrics


def _check_factors(by: list[str], examples: list[Example]) -> None:
    known = sorted({name for example in examples for name in example.factors} - {"extent", "extents"})
    for name in by:
        if name not in known:
            raise UserError(f"by ({name!r}) must be taken from the factors of these data: {', '.join(known)}")

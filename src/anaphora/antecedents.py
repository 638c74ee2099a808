"""Heads as antecedent selectors from end to end: a stored model, a corpus, the table, and the files that hold it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from tqdm import tqdm

from anaphora.analysis.antecedent_selection import Selections, can_be_asked, gather, heads_table, table
from anaphora.analysis.passages import Passages
from anaphora.analysis.settings import AntecedentSelection
from anaphora.checkpoint import load
from anaphora.data.example import Example
from anaphora.data.store import load as load_corpus
from anaphora.errors import UserError
from anaphora.files import write_json
from anaphora.model.resolver import Resolver
from anaphora.model.settings import check_length
from anaphora.report.antecedents import WIDTH, drawn, shown
from anaphora.report.write import save, write_table


def select_antecedents(asked: AntecedentSelection) -> dict[str, Any]:
    """Choose heads on the development documents, measure them on others, print, and write tables and a figure.

    Returns:
        What `antecedents.json` holds: "source", "run", "settings", "split", "passages", "development_items",
        "not_asked" (items without an antecedent before the mention) and "rows" (see `table`).

    Raises:
        UserError: a split holds no items, a factor of `by` is unknown, or a text is too long for the model.
    """
    run = load(asked.run, asked.trainer)
    source = asked.data or run.config.data
    corpus = load_corpus(source)
    console = Console(width=max(WIDTH, Console().width))
    passages = {}
    not_asked = 0
    for name in ("dev", asked.split):
        examples = corpus.examples(name)
        kept = [example for example in examples if can_be_asked(example)]
        if not kept:
            raise UserError(f"split ({name}) holds no mention with an antecedent before it")
        if name == asked.split:
            not_asked = len(examples) - len(kept)
            _check_factors(asked.by, kept)
        passages[name] = Passages(kept, run.tokenizer)
        check_length(run.config.model, passages[name].encoded.longest())
    total = sum(map(len, passages.values()))

    def selections(resolver: Resolver, title: str) -> tuple[Selections, Selections]:
        with tqdm(total=total, desc=title, unit="text", mininterval=1) as bar:
            first, second = (
                gather(each.examples, each.records(resolver.encoder, run.config.batching, bar.update))
                for each in passages.values()
            )
        return first, second

    development, measured = selections(run.resolver, run.name)
    untrained = [selections(run.untrained(seed), f"untrained {seed}") for seed in range(1, asked.untrained + 1)]
    with console.status("drawing documents for the intervals"):
        rows = table(development, measured, untrained, asked.by)
    metrics = {
        "source": "Clark et al. 2019, table 2",
        "run": run.name,
        "settings": asdict(source),
        "split": asked.split,
        "passages": {name: len(each) for name, each in passages.items()},
        "development_items": len(development.examples),
        "not_asked": not_asked,
        "untrained_models": asked.untrained,
        "rows": rows,
    }
    folder = Path(asked.output) if asked.output else run.directory / "antecedents" / source.kind
    write_json(folder / "antecedents.json", metrics)
    write_table(folder / "antecedents.csv", rows)
    write_table(folder / "heads.csv", [*heads_table(development, "dev"), *heads_table(measured, asked.split)])
    save(drawn(metrics), folder / "figures" / "antecedent_selection", asked.formats)
    for line in shown(metrics):
        console.print(line, soft_wrap=isinstance(line, str))
    console.print(f"written   {folder}", soft_wrap=True)
    return metrics


def _check_factors(by: list[str], examples: list[Example]) -> None:
    known = sorted({name for example in examples for name in example.factors} - {"extent", "extents"})
    for name in by:
        if name not in known:
            raise UserError(f"by ({name!r}) must be taken from the factors of these data: {', '.join(known)}")

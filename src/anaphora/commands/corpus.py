"""Counts of a corpus, what was dropped, and how far every shortcut gets."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.table import Table

from anaphora.analysis.scores.baselines.accuracy import accuracy_by_factor, accuracy_by_kind
from anaphora.analysis.scores.baselines.order_models import TABLE_OF_WORDINGS, wordings_seen
from anaphora.analysis.scores.baselines.stored import shortcut_correctness
from anaphora.base.console import console, print_table, working
from anaphora.base.errors import UserError
from anaphora.base.files import locked_directory, write_csv, write_text
from anaphora.data.controlled.describe import corpus_table as describe_table
from anaphora.data.corpora.division import ReadingReport
from anaphora.data.corpora.registry import origin_of
from anaphora.data.example import SPLITS
from anaphora.data.records import item_columns
from anaphora.data.store import Corpus
from anaphora.data.store import load as load_corpus
from anaphora.data.text import Text
from anaphora.report.cards import CARD, corpus_card, is_corpus_card
from anaphora.settings.commands.analysis import CorpusDescription
from anaphora.settings.data import Data, ExternalCorpus, PlainText, SilverStandard, TextCorpus


def describe(settings: CorpusDescription) -> None:
    """Print a corpus's counts, what was dropped, and how far every shortcut gets on its test split."""
    if settings.output is not None:
        _check_folder(settings.output)
    with locked_directory(Path(settings.output)) if settings.output else nullcontext():
        _describe(settings)


def _describe(settings: CorpusDescription) -> None:
    started = time.perf_counter()
    corpus = load_corpus(settings.data)
    if isinstance(settings.data, TextCorpus):
        texts = {name: corpus.texts(name) for name in SPLITS}
        counts = describe_texts(texts, corpus.report, time.perf_counter() - started, settings)
        _write_corpus(corpus, settings, counts)
        return
    splits = {name: corpus.examples(name) for name in SPLITS}
    seconds = time.perf_counter() - started
    counts = describe_table(splits)
    print_table(_plain_table("items", counts))
    _print_corpus_report(f"{sum(map(len, splits.values()))} items", corpus.report, seconds, settings.data)
    rows: list[dict[str, Any]] = []
    if splits["test"]:
        with working("fitting the shortcuts on the training split"):
            results = shortcut_correctness(splits["train"], splits["test"])
            wordings = wordings_seen(splits["train"], splits["test"])
            if not np.isnan(wordings).all():
                results[TABLE_OF_WORDINGS] = wordings
        rows = [asdict(row) for row in accuracy_by_kind(results, splits["test"])]
        print_table(_plain_table("shortcuts on the test split, 95 % intervals over templates, else groups", rows))
        factors = accuracy_by_factor(results, splits["test"])
        if factors:
            print_table(_plain_table("the same by factor", factors))
    else:
        console.print("no test split: no shortcut is measured (data.test_share)")
    if not splits["train"]:
        console.print("no training split: there are no learned shortcuts (data.test_share, data.dev_share)")
    if settings.output:
        write_csv(Path(settings.output) / "shortcuts.csv", rows)
    _write_corpus(corpus, settings, counts)


def describe_texts(
    splits: Mapping[str, Sequence[Text]], report: ReadingReport, seconds: float, settings: CorpusDescription
) -> list[dict[str, Any]]:
    """Print how many texts, words and characters each split and label has, what was dropped and how long it took.

    Returns:
        The rows of the table of counts.
    """
    counts = []
    for split, texts in splits.items():
        for label in sorted({text.label or "" for text in texts}):
            written = [text.text for text in texts if (text.label or "") == label]
            words = sum(len(text.split()) for text in written)
            cells = {"texts": len(written), "words": words, "characters": sum(map(len, written))}
            counts.append({"split": split, "label": label, **cells})
    print_table(_plain_table("texts; words stand between blanks", counts))
    _print_corpus_report(f"{sum(map(len, splits.values()))} texts", report, seconds, settings.data)
    return counts


def _check_folder(output: str) -> None:
    """Refuse a folder with files of these names that this command has not written."""
    folder = Path(output)
    names = (CARD, *(f"{split}.parquet" for split in SPLITS))
    there = [name for name in names if (folder / name).exists()]
    if there and not (CARD in there and is_corpus_card((folder / CARD).read_text(encoding="utf-8", errors="replace"))):
        raise UserError(f"output ({output}) holds another {there[0]}, which would be overwritten; name another folder")


def _write_corpus(corpus: Corpus, settings: CorpusDescription, counts: Sequence[Mapping[str, Any]]) -> None:
    """The counts, the items as Parquet, and the card by which `datasets` knows the splits; nothing without a folder."""
    if settings.output is None:
        return
    folder, columns = Path(settings.output), item_columns(settings.data)
    write_csv(folder / "counts.csv", counts)
    for split in SPLITS:
        (folder / f"{split}.parquet").unlink(missing_ok=True)
    splits = corpus.write_items(folder, columns)
    chosen = {"data" if name == "kind" else f"data.{name}": value for name, value in _plain_settings(settings.data)}
    write_text(folder / CARD, corpus_card(chosen, origin_of(settings.data).licence, splits, columns, counts))
    console.print(f"tables {settings.output}", soft_wrap=True)


def _plain_settings(data: Data) -> Iterator[tuple[str, str]]:
    """The settings of a corpus as one types them, its kind first; of a path the last part alone."""
    yield "kind", data.kind
    for one in fields(data):
        value = getattr(data, one.name)
        if one.name != "kind" and value not in (None, []):
            yield one.name, Path(value).name if one.name == "path" else json.dumps(value, ensure_ascii=False)


def _print_corpus_report(items: str, report: ReadingReport, seconds: float, data: Data) -> None:
    """Where a corpus comes from, on what terms, how much of it was read in what time, and what was dropped."""
    if isinstance(data, ExternalCorpus):
        also = data.also if isinstance(data, PlainText | SilverStandard) else []
        console.print(f"source: {', '.join((data.path, *also))}", soft_wrap=True)
    licence = origin_of(data).licence
    if licence:
        console.print(f"licence as stated: {licence} (docs/corpora.md)", soft_wrap=True)
    console.print(f"read: {items} from {report.rows} rows in {seconds:.1f} s")
    for reason, number in report.reasons.items():
        console.print(f"dropped: {number} rows ({reason})", soft_wrap=True)


def _plain_table(title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 0), pad_edge=False)
    names = [name for name in (rows[0] if rows else ()) if any(row[name] not in ("", None) for row in rows)]
    for name in names:
        value = rows[0][name]
        table.add_column(name.replace("_", "\n"), justify="left" if isinstance(value, str) else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(_formatted(row[name]) for name in names))
    return table


def _formatted(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value)

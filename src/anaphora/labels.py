"""The table of labels: runs of one recipe and linear models on the same split of texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from anaphora.analysis.classification import bag_of_tokens, bag_of_words, label_answers, label_table, labels_of
from anaphora.analysis.settings import LabelTable
from anaphora.checkpoint import load, run_directories
from anaphora.cross_validation import console, refuse_unlike
from anaphora.data.store import load as load_corpus
from anaphora.data.text import thinned
from anaphora.errors import UserError
from anaphora.model.settings import Label
from anaphora.report.write import write_table


def label(asked: LabelTable) -> list[dict[str, Any]]:
    """Answer, print the table, and keep it as CSV where a file is named.

    Raises:
        UserError: a run gives no labels, the runs differ in more than the seed, or the split holds no text.
    """
    runs = [load(directory, asked.trainer) for directory in run_directories(asked.runs)]
    for run in runs:
        if not isinstance(run.config.task.readout, Label):
            raise UserError(f"runs ({run.directory}) gives no labels (task.readout={run.config.task.readout.kind})")
    refuse_unlike(runs)
    first = runs[0]
    corpus = load_corpus(first.config.data)
    training, development = corpus.texts("train"), corpus.texts("dev")
    texts = thinned(corpus.texts(asked.split), first.config.trainer.limit_items)
    if not texts:
        raise UserError(f"split ({asked.split}) holds no texts")
    with console.status("answering"):
        names = labels_of(first)
        said: dict[str, list[list[str]]] = {
            "encoder": [[names[one] for one in label_answers(run, texts)] for run in runs]
        }
    with console.status("fitting the linear models on the training split"):
        said["bag of its tokens"] = [bag_of_tokens(first, training, development, texts)]
        said["bag of words and pairs"] = [bag_of_words(training, development, texts)]
    ((most, _),) = Counter(one.label or "" for one in training).most_common(1)
    said["most frequent label"] = [[most] * len(texts)]
    rows = label_table(texts, said)
    console.print(_shown(rows, f"{first.config.data.kind}, {asked.split} split, {len(runs)} runs"))
    if asked.output:
        write_table(Path(asked.output), rows)
        console.print(f"table {asked.output}", soft_wrap=True)
    return rows


def _shown(rows: Sequence[Mapping[str, Any]], title: str) -> Table:
    table = Table(title=f"{title}; accuracy in %, 95 % over texts", title_justify="left", box=box.SIMPLE_HEAD)
    for name in ("policy", "texts", "accuracy", "runs", "encoder minus it, points"):
        table.add_column(name, justify="left" if name == "policy" else "right")
    for place, row in enumerate(rows):
        spread = "" if row["lowest"] is None else f"{100 * row['lowest']:.1f} to {100 * row['highest']:.1f}"
        ends = [(row["accuracy"], row["low"], row["high"])]
        ends += [(row["first_minus"], row["first_minus_low"], row["first_minus_high"])]
        shares = [
            f"{100 * value:.1f}" + ("" if low is None else rf" \[{100 * low:.1f}, {100 * high:.1f}]")
            for value, low, high in ends
        ]
        table.add_row(row["policy"], str(row["texts"]), shares[0], spread, shares[1] if place else "")
    return table

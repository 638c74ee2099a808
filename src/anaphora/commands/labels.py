"""The table of labels: runs of one recipe and linear models on the same split of texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table

from anaphora.analysis.results.rows import table_row
from anaphora.analysis.tasks.folds import require_same_recipe
from anaphora.analysis.tasks.labels import accuracy_by_policy, bag_of_tokens, bag_of_words, label_names, predict_labels
from anaphora.base.console import print_table, working
from anaphora.base.errors import UserError
from anaphora.base.locale.translation import _
from anaphora.commands.cross_validate import percent_cell
from anaphora.commands.shared import TableFile, file_column_names, load_runs, policy_name
from anaphora.data.text import evenly_sampled
from anaphora.report.numbers import format_range
from anaphora.report.terminal import in_language_of_messages
from anaphora.report.wording import label, split_names
from anaphora.runs.items import check_training_items, corpus_of
from anaphora.settings.commands.analysis import LabelTable
from anaphora.settings.model.prediction import Label


def compare_labels(settings: LabelTable) -> list[dict[str, Any]]:
    """Answer, print the table, and keep it as CSV where a file is named.

    Raises:
        UserError: a run predicts no labels, the runs differ in more than the seed, or the split holds no text.
    """
    table = TableFile.checked(settings.output)
    runs = load_runs(settings.runs, settings.trainer)
    for run in runs:
        if not isinstance(run.config.task.prediction, Label):
            raise UserError(
                f"runs ({run.directory}) predicts no labels (task.prediction={run.config.task.prediction.kind})"
            )
    require_same_recipe(runs)
    first = runs[0]
    corpus = corpus_of(first)
    for run in runs[1:]:
        check_training_items(run.files.directory, run.config.data, corpus)
    training, development = corpus.texts("train"), corpus.texts("dev")
    texts = evenly_sampled(corpus.texts(settings.split), first.config.trainer.limit_items)
    if not texts:
        raise UserError(f"split ({settings.split}) holds no texts")
    with working(_("answering")):
        names = label_names(first)
        labels: dict[str, list[list[str]]] = {
            "encoder": [[names[label] for label in predict_labels(run, texts)] for run in runs]
        }
    with working(_("fitting the linear models on the training split")):
        labels["bag of its tokens"] = [bag_of_tokens(first, training, development, texts)]
        labels["bag of words and pairs"] = [bag_of_words(training, development, texts)]
    ((most, _count),) = Counter(text.label or "" for text in training).most_common(1)
    labels["most frequent label"] = [[most] * len(texts)]
    rows = [table_row(row) for row in accuracy_by_policy(texts, labels)]
    print_labels(rows, first.config.data.kind, settings.split, len(runs))
    table.write(rows)
    return rows


@in_language_of_messages
def print_labels(rows: Sequence[Mapping[str, Any]], data: str, split: str, runs: int) -> None:
    """Print what `accuracy_by_policy` gives of so many runs on a split."""
    title = _("{data}, {split} split, {runs} runs; accuracy in %, 95 % over texts").format(
        data=data, split=label(split_names(), split), runs=runs
    )
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for name in ("policy", "texts", "accuracy", "runs", "encoder_minus"):
        table.add_column(label(file_column_names(), name), justify="left" if name == "policy" else "right")
    for number, row in enumerate(rows):
        spread = "" if row["lowest"] is None else format_range(row["lowest"], row["highest"])
        accuracy = percent_cell(row, "accuracy", ("low", "high"))
        difference = percent_cell(row, "first_minus") if number else ""
        table.add_row(policy_name(row["policy"]), str(row["texts"]), accuracy, spread, difference)
    print_table(table)

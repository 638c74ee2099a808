"""Answer every item of a split."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.table import Table

from anaphora.analysis.evidence.headline import score_split
from anaphora.analysis.evidence.storage import chosen_head, stored_head
from anaphora.analysis.maps.answers import correctness
from anaphora.analysis.maps.capture import predict_answers
from anaphora.analysis.results.rows import table_row
from anaphora.analysis.results.scores import Head
from anaphora.analysis.scores.strata import template_rows
from anaphora.analysis.tasks import labels as classification
from anaphora.base.console import console, working
from anaphora.base.errors import UserError
from anaphora.base.files import write_csv, write_json
from anaphora.base.locale.translation import N_, _
from anaphora.commands.shared import (
    asks_alike,
    check_place_of_other_data,
    file_column_names,
    head_of_settings,
    held_output,
    print_shared_items,
    value_cell,
)
from anaphora.data.example import Example
from anaphora.data.store import load as load_corpus
from anaphora.data.text import evenly_sampled
from anaphora.report.terminal import in_language_of_messages, print_phrase, print_undecided
from anaphora.report.wording import label, split_names
from anaphora.runs.directory import Run, load
from anaphora.runs.items import corpus_of, encode, evaluation_splits
from anaphora.settings.commands.analysis import Evaluation
from anaphora.settings.data import LabelledText, TextCorpus
from anaphora.settings.model.prediction import Label, NoPrediction

_OF_A_HEAD = ("candidate_accuracy", "antecedent_mass")
"""Columns of the table of templates that are about a head, and missing where none is named or chosen."""


def evaluate(settings: Evaluation) -> None:
    """Answer every item of a split: task accuracy by language, kind of cue and type, the worst template named.

    Raises:
        UserError: the items are of other data than the run's own, and `output` would put their answers among its own.
    """
    run = load(settings.run, settings.trainer)
    is_written = not isinstance(run.config.task.prediction, NoPrediction)  # else texts have a perplexity, printed alone
    if is_written and asks_alike(run, settings):
        check_place_of_other_data(run, settings)
    with held_output(settings.output, run.directory / "evaluation", run) as folder:
        of_texts = isinstance(settings.data or run.config.data, TextCorpus)
        (evaluate_texts if of_texts else evaluate_examples)(run, settings, folder)


def evaluate_examples(run: Run, settings: Evaluation, folder: Path) -> None:
    """Answer every pronoun of a split, and report the accuracy by language, kind of cue and type."""
    head = head_of_settings(settings, run) or (stored_head(run) if chosen_head(run) else None)
    material = evaluation_splits(run, settings.split, settings.data, settings.items)
    data, batching, prediction = encode(run, material.measured), run.config.batching, run.config.task.prediction
    rows: list[dict[str, Any]] = []
    if run.model.encoder.has_maps:
        scores, answers = score_split(run.model, data, batching, prediction)
        correct = correctness(answers, len(data))
        rows = [asdict(row) for row in template_rows(scores, head or Head(0, 0), correct[scores.kept])]
        if head is None:
            rows = [{name: value for name, value in row.items() if name not in _OF_A_HEAD} for row in rows]
    else:
        answers = predict_answers(run.model, data, batching, prediction)
        correct = correctness(answers, len(data))
    answer_rows = [
        {
            "item": number,
            "text": example.text,
            "answer": None if answers is None else int(answers.candidates[number]),
            "antecedents": list(example.antecedents),
            "correct": None if answers is None or answers.undecided[number] else bool(answers.correct[number]),
        }
        for number, example in enumerate(material.measured)
    ]
    write_json(folder / f"{material.split}_answers.json", answer_rows)
    if rows:
        write_csv(folder / f"{material.split}_templates.csv", rows)
    print_accuracy(run.name, material.split, accuracy_rows(material.measured, correct))
    print_undecided(answers)
    if material.split != "train" and settings.data in (None, run.config.data):
        print_shared_items(material.measured, material.split, material.training, "train")
    print_phrase(N_("answers and templates: {path}") if rows else N_("answers: {path}"), path=folder)


@in_language_of_messages
def print_accuracy(run: str, split: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print what `accuracy_rows` gives."""
    title = _("{run}: task accuracy, {split} split").format(run=run, split=label(split_names(), split))
    table = Table(title=title, title_justify="left")
    for name in rows[0]:
        table.add_column(label(file_column_names(), name), justify="right" if name in ("items", "accuracy") else "left")
    for row in rows:
        table.add_row(*(value_cell(name, value) for name, value in row.items()))
    console.print(table)


def evaluate_texts(run: Run, settings: Evaluation, folder: Path) -> None:
    """Label every text of a split beside a bag of words, or report the perplexity of masked tokens."""
    source = settings.data or run.config.data
    corpus = load_corpus(settings.data) if settings.data else corpus_of(run)
    limit = settings.items or run.config.trainer.limit_items
    training, development = (corpus.texts(name) for name in ("train", "dev"))
    texts = evenly_sampled(corpus.texts(settings.split), limit)
    if not texts:
        raise UserError(f"split ({settings.split}) holds no texts")
    if isinstance(run.config.task.prediction, NoPrediction):
        perplexity, masked = classification.perplexity(run, texts)
        print_perplexity(run.name, settings.split, perplexity, masked)
        return
    if not isinstance(source, LabelledText) or not isinstance(run.config.task.prediction, Label):
        option = f"task.prediction={run.config.task.prediction.kind}"
        raise UserError(f"{run.directory}: the run's {option} has no answer to data={source.kind}")
    names = classification.label_names(run)
    labels = [names[number] for number in classification.predict_labels(run, texts)]
    with working(_("fitting the bag of words on the training split")):
        bag = classification.bag_of_words(training, development, texts)
    rows = [table_row(row) for row in classification.accuracy_by_label(texts, labels, bag)]
    answer_rows = [
        {"item": number, "text": text.text, "label": text.label, "answer": answer, "bag_of_words": other}
        for number, (text, answer, other) in enumerate(zip(texts, labels, bag, strict=True))
    ]
    write_json(folder / f"{settings.split}_answers.json", answer_rows)
    write_csv(folder / f"{settings.split}_labels.csv", rows)
    print_label_accuracy(run.name, settings.split, rows)
    print_phrase(N_("answers and accuracies: {path}"), path=folder)


@in_language_of_messages
def print_perplexity(run: str, split: str, perplexity: float, tokens: int) -> None:
    """Print the perplexity of so many masked tokens."""
    print_phrase(
        N_("{run}: perplexity of {tokens} masked tokens, {split} split: {perplexity}"),
        run=run,
        split=label(split_names(), split),
        tokens=tokens,
        perplexity=f"{perplexity:.2f}",
    )


@in_language_of_messages
def print_label_accuracy(run: str, split: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print what `accuracy_by_label` gives; its first row is of all texts."""
    title = _("{run}: accuracy, {split} split, 95 % intervals over texts").format(
        run=run, split=label(split_names(), split)
    )
    table = Table(title=title, title_justify="left")
    for name in ("label", "texts", "this_run", "bag_of_words", "run_minus_bag"):
        table.add_column(label(file_column_names(), name), justify="left" if name == "label" else "right")
    for number, row in enumerate(rows):
        cells = [_with_interval(row, name) for name in ("accuracy", "bag", "more")]
        table.add_row(row["label"] if number else _("all"), str(row["texts"]), *cells)
    console.print(table)


def _with_interval(row: Mapping[str, Any], name: str) -> str:
    ends = (row[f"{name}_low"], row[f"{name}_high"])
    return f"{row[name]:.3f}" + ("" if None in ends else f" [{ends[0]:.3f}, {ends[1]:.3f}]")


def accuracy_rows(examples: Sequence[Example], correct: Any) -> list[dict[str, Any]]:
    """Task accuracy of every cell of language, kind, type and stratum; None for a model that gives no answers."""
    cells: dict[tuple[str, ...], list[int]] = {}
    for number, example in enumerate(examples):
        key = (example.language, *(example.factors.get(name, "") for name in ("kind", "type", "stratum")))
        cells.setdefault(key, []).append(number)
    rows = []
    for (language, kind, cue, stratum), items in sorted(cells.items()):
        by_template: dict[str, list[float]] = {}
        for item in items:
            by_template.setdefault(examples[item].factors.get("template", ""), []).append(float(correct[item]))
        worst, hits = min(by_template.items(), key=lambda entry: sum(entry[1]) / len(entry[1]))
        accuracy = float(sum(correct[item] for item in items) / len(items))
        is_answered = not math.isnan(accuracy)
        worst_template = f"{worst} {sum(hits) / len(hits):.2f}" if worst and is_answered else ""
        rows.append(
            {
                "language": language,
                "kind": kind,
                "type": cue,
                "stratum": stratum,
                "items": len(items),
                "accuracy": accuracy if is_answered else None,
                "worst_template": worst_template,
            }
        )
    return rows

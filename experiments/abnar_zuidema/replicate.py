"""Replication of a published measurement: training runs, correlations, and a directory with table and figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from tqdm import tqdm

from anaphora.base.console import say, working
from anaphora.base.device import torch_device
from anaphora.base.files import locked_directory, write_csv, write_json
from anaphora.report.figures.files import save_figure
from anaphora.runs.directory import Run, claimed
from anaphora.training.reuse import load_or_train
from experiments.abnar_zuidema.blank_out import blank_out_importance, correct_probability, rank_correlations
from experiments.abnar_zuidema.number_agreement import NumberItem, generate_items
from experiments.abnar_zuidema.number_model import encode_items, run_settings, write_sentences
from experiments.abnar_zuidema.settings import Replication
from experiments.abnar_zuidema.table import SeedResult, build_metrics, correlation_figure, table_rows, terminal_report

_TEST_SEED, _TRAINING_SEED = 1, 0
_METRICS = "metrics.json"


def replicate(settings: Replication) -> dict[str, Any]:
    """Train missing models, measure all models, print the table, and write metrics, table and figure.

    Returns:
        The contents of `metrics.json`.

    Raises:
        UserError: the directory has runs or results with other settings or a damaged file, or the device is not
            available.
    """
    torch_device(settings.trainer.device)
    directory = Path(settings.output)
    stored = {name: value for name, value in asdict(settings).items() if name != "overwrite"}
    about = {name: value for name, value in stored.items() if name not in ("output", "trainer")}
    with locked_directory(directory), claimed(directory, {_METRICS: about}, settings):
        with working("writing sentences"):
            # The training sentences come first: they must not depend on how many items stored runs are measured on.
            training = generate_items(settings.sentences, _TRAINING_SEED)
            test = generate_items(settings.items, _TEST_SEED, {item.text for item in training})
            sentences = directory / f"sentences_{settings.sentences}.jsonl"
            write_sentences(sentences, training)
        results = [
            _measure(load_or_train(run_settings(settings, sentences, seed), "choose another output="), test)
            for seed in settings.seeds
        ]
        metrics = build_metrics(results, [item.template for item in test], stored)
        write_json(directory / _METRICS, metrics)
        write_csv(directory / "table.csv", table_rows(metrics))
        save_figure(correlation_figure(metrics), directory / "figures" / "correlation_by_layer")
        print_correlations(metrics)
        say(f"written to {directory}")
    return metrics


def print_correlations(metrics: Mapping[str, Any]) -> None:
    """Print the results in `metrics.json` as a table, and the conclusion."""
    console = Console(width=max(120, Console().width), markup=False)
    for line in terminal_report(metrics):
        console.print(line, soft_wrap=isinstance(line, str))


def _measure(run: Run, test: Sequence[NumberItem]) -> SeedResult:
    data = encode_items(test, run.tokenizer)
    correct = correct_probability(run.model, data) > 0.5
    with_attractors = np.array([item.attractors > 0 for item in test])
    importance = blank_out_importance(run.model, data)
    subject_first = [
        data.words.take(np.array([number]))[0][1 + of_tokens[1:].argmax()] == item.subject
        for number, (of_tokens, item) in enumerate(zip(importance, test, strict=True))
    ]
    with tqdm(total=len(test), desc=f"maps of {run.name}", unit=" items", mininterval=1) as bar:
        correlations = rank_correlations(run.model, data, importance, bar.update)
    return SeedResult(
        seed=run.config.seed,
        accuracy=float(correct.mean()),
        accuracy_with_attractors=float(correct[with_attractors].mean()) if with_attractors.any() else None,
        subject_first=float(np.mean(subject_first)),
        correlations=correlations,
    )

"""The replication as a whole: sentences, one model a seed, correlations, and a directory that holds what was found."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from tqdm import tqdm

from anaphora.data.vocabulary import of_words
from anaphora.errors import UserError
from anaphora.files import held, whole, write_json
from anaphora.place import device_of
from anaphora.replication.blank_out import correlations, importance, right_probability
from anaphora.replication.classifier import Coded, NumberClassifier, fresh, train
from anaphora.replication.number_agreement import VOCABULARY, NumberItem, number_items
from anaphora.replication.settings import Replication
from anaphora.replication.table import SeedResult, drawn, metrics_of, rows_of_table, shown
from anaphora.report.write import save, write_table

_FREE = ("output", "seeds", "items", "trainer")  # may change between two calls that share their models
_TEST_SEED, _TRAINING_SEED = 1, 0


def replicate(chosen: Replication) -> dict[str, Any]:
    """Train what is not trained yet, measure, print the table, and write config, metrics, table and figure.

    Returns:
        What `metrics.json` holds.

    Raises:
        UserError: the directory holds models of other settings, or a broken file, or the device is not there.
    """
    device_of(chosen.trainer.device)
    directory = Path(chosen.output)
    with held(directory):
        _same_models(directory / "config.json", chosen)
        console = Console(width=max(120, Console().width))
        with console.status("writing sentences"):
            # The training sentences come first: they must not depend on how many items stored models are measured on.
            training = number_items(chosen.sentences, _TRAINING_SEED)
            test = number_items(chosen.items, _TEST_SEED, {item.text for item in training})
            tokenizer = of_words((), VOCABULARY)
            sentences, items = Coded.of(training, tokenizer), Coded.of(test, tokenizer)
        results = []
        for seed in chosen.seeds:
            model = _model(directory / f"seed_{seed}" / "model.safetensors", chosen, sentences, tokenizer.size, seed)
            results.append(_measure(model, seed, test, items))
        metrics = metrics_of(results, [item.frame for item in test], asdict(chosen))
        write_json(directory / "metrics.json", metrics)
        write_table(directory / "table.csv", rows_of_table(metrics))
        save(drawn(metrics), directory / "figures" / "correlation_by_layer")
        for line in shown(metrics):
            console.print(line, soft_wrap=isinstance(line, str))
        console.print(f"written   {directory}", soft_wrap=True)
    return metrics


def _same_models(path: Path, chosen: Replication) -> None:
    """Keep the settings beside the models, and refuse models of others."""
    settings = asdict(chosen)
    if path.exists():
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise UserError(f"{path}: not readable as JSON ({error})") from None
        if not isinstance(stored, dict):
            raise UserError(f"{path}: must hold settings by name")
        for name in settings:
            if name not in _FREE and stored.get(name) != settings[name]:
                raise UserError(
                    f"{path.parent} holds models of {name}={stored.get(name)}, not {settings[name]}; "
                    "choose another output="
                )
    write_json(path, settings)


def _model(path: Path, chosen: Replication, sentences: Coded, vocabulary: int, seed: int) -> NumberClassifier:
    """The model of a seed: the one that is stored, or a new one, which then is stored."""
    if path.exists():
        model = fresh(chosen, vocabulary, seed)
        try:
            model.load_state_dict(load_file(path))
        except (SafetensorError, OSError, RuntimeError) as error:
            raise UserError(f"{path}: broken or cut off ({error}); delete it to train the seed again") from None
        return model
    with tqdm(total=chosen.steps, desc=f"seed {seed}: training", unit="step", mininterval=1) as bar:

        def after_step(loss: float) -> None:
            bar.set_postfix(loss=f"{loss:.3f}", refresh=False)
            bar.update()

        model = train(chosen, sentences, vocabulary, seed, after_step)
    with whole(path) as draft:
        save_file({name: value.cpu() for name, value in model.state_dict().items()}, draft)
    return model


def _measure(model: NumberClassifier, seed: int, test: list[NumberItem], items: Coded) -> SeedResult:
    right = right_probability(model, items.ids, items.plural) > 0.5
    hard = np.array([item.attractors > 0 for item in test])
    blanked = importance(model, items)
    on_subject = [one[1:].argmax() == item.subject for one, item in zip(blanked, test, strict=True)]
    with tqdm(total=len(test), desc=f"seed {seed}: maps", unit="item", mininterval=1) as bar:
        found = correlations(model, items, blanked, bar.update)
    return SeedResult(
        seed=seed,
        accuracy=float(right.mean()),
        accuracy_with_attractors=float(right[hard].mean()) if hard.any() else None,
        subject_first=float(np.mean(on_subject)),
        correlations=found,
    )

"""A corpus answered fold by fold, each item by models that have not seen its group, beside shortcuts of these folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table

from anaphora.analysis.baselines import Floats, per_item
from anaphora.analysis.capture import look
from anaphora.analysis.scores import twin_accuracy
from anaphora.analysis.settings import CrossValidation
from anaphora.analysis.statistics import cluster_interval
from anaphora.analysis.study import Progress, silent
from anaphora.checkpoint import Run, load
from anaphora.config import Config
from anaphora.data.batch import Encoded
from anaphora.data.example import Example
from anaphora.data.settings import Divided
from anaphora.data.store import load as load_corpus
from anaphora.errors import UserError
from anaphora.model.settings import NoReadout
from anaphora.report.write import write_table

console = Console(width=max(120, Console().width))

MODEL = "model"
"""The row of the runs themselves."""


@dataclass(frozen=True)
class Folds:
    """All folds of a corpus, one after the other.

    Attributes:
        examples: N items, each from the fold that its models did not see.
        right: by policy how right it is on each item, (N,) in [0, 1]; a model's mean over its seeds. NaN where a
            shortcut does not apply.
        seeds: how many runs each fold has.
    """

    examples: list[Example]
    right: dict[str, Floats]
    seeds: int


def cross_validate(asked: CrossValidation) -> list[dict[str, Any]]:
    """Answer, print the table, and keep it as CSV where a file is named.

    Raises:
        UserError: the runs are not the folds of one corpus, or one of them has seen what it would be asked.
    """
    runs = [load(directory) for directory in asked.runs]
    _check(runs)
    with console.status("reading the data") as status:
        found = answered(runs, status.update)
    for factor in asked.by:
        known = sorted({name for example in found.examples for name in example.factors})
        if factor not in known:
            raise UserError(f"by ({factor!r}) must be taken from the factors of these data: {', '.join(known)}")
    rows = table(found, asked.by)
    source = runs[0].config.data
    console.print(_shown(rows, f"{source.kind}, {_folds(runs[0])} folds by group, {found.seeds} runs a fold"))
    if asked.output:
        write_table(Path(asked.output), rows)
        console.print(f"table {asked.output}", soft_wrap=True)
    return rows


def answered(runs: Sequence[Run], progress: Progress = silent) -> Folds:
    """Every fold's dev split, answered by its runs and by shortcuts fitted on its training split."""
    by_fold: dict[int, list[Run]] = {}
    for run in runs:
        by_fold.setdefault(_fold(run), []).append(run)
    examples: list[Example] = []
    parts: list[Mapping[str, Floats]] = []
    for fold, here in sorted(by_fold.items()):
        progress(f"fold {fold + 1} of {len(by_fold)}")
        corpus = load_corpus(here[0].config.data)
        training, asked = corpus.examples("train"), corpus.examples("dev")
        examples += asked
        parts.append({MODEL: np.mean([_correct(run, asked) for run in here], axis=0), **per_item(training, asked)})
    names = list(dict.fromkeys(name for part in parts for name in part))
    right = {
        name: np.concatenate([part.get(name, np.full(len(part[MODEL]), np.nan)) for part in parts]) for name in names
    }
    return Folds(examples, right, len(runs) // len(by_fold))


def table(found: Folds, by: Sequence[str] = ()) -> list[dict[str, Any]]:
    """A row for each policy of all items, and of the items of each value of the factors `by`.

    Returns:
        "factor", "value", "policy", "items", "accuracy" with "low" and "high", "twin_accuracy" (None where no item has
        a twin), and "model_minus" with "model_minus_low" and "model_minus_high": how much righter the model is on the
        same items. Intervals of 95 % draw whole groups. A shortcut is left out where it does not apply to all items.
    """
    cells = {("", ""): np.arange(len(found.examples))}
    for factor in by:
        values = np.array([example.factors.get(factor, "") for example in found.examples])
        cells |= {(factor, value): np.flatnonzero(values == value) for value in sorted(set(values.tolist()))}
    rows = []
    for (factor, value), places in cells.items():
        examples = [found.examples[place] for place in places]
        labels = [example.group or f"alone {place}" for place, example in zip(places, examples, strict=True)]
        model = found.right[MODEL][places]
        for name, right in found.right.items():
            here = right[places]
            if np.isnan(here).any():
                continue
            low, high = cluster_interval(here, labels) or (None, None)
            less, more = cluster_interval(model - here, labels) or (None, None)
            twins = float(twin_accuracy(here, examples))
            rows.append(
                {
                    "factor": factor,
                    "value": value,
                    "policy": name,
                    "items": len(places),
                    "accuracy": float(here.mean()),
                    "low": low,
                    "high": high,
                    "twin_accuracy": None if np.isnan(twins) else twins,
                    "model_minus": float((model - here).mean()),
                    "model_minus_low": less,
                    "model_minus_high": more,
                }
            )
    return rows


def _correct(run: Run, examples: Sequence[Example]) -> Floats:
    seen = look(run.resolver, Encoded(examples, run.tokenizer), run.config.batching, run.config.task.readout)
    right: NDArray[np.float64] = seen.correct.astype(np.float64)
    return right


def _check(runs: Sequence[Run]) -> None:
    if not runs:
        raise UserError("runs ([]) must name the runs of all folds")
    for run in runs:
        data, directory = run.config.data, run.directory
        if not isinstance(data, Divided) or not data.folds:
            raise UserError(f"runs ({directory}) was not trained on folds; train with data.folds=5 data.fold=0, 1, ...")
        if isinstance(run.config.task.readout, NoReadout):
            raise UserError(f"runs ({directory}) answers nothing (task.readout=no_readout)")
        if run.config.validation.keep != "last":
            raise UserError(
                f"runs ({directory}) chose its weights on the fold that it would be asked; train with "
                "validation.keep=last"
            )
        if _alike(run.config) != _alike(runs[0].config):
            raise UserError(
                f"runs: {directory} has other settings than {runs[0].directory}; only fold and seed may vary"
            )
    counts = [sum(_fold(run) == fold for run in runs) for fold in range(_folds(runs[0]))]
    if min(counts) < 1 or len(set(counts)) > 1:
        told = ", ".join(f"fold {fold}: {count}" for fold, count in enumerate(counts))
        raise UserError(f"runs: every fold needs as many runs, at least one; here are {told}")
    pairs = [(_fold(run), run.config.seed) for run in runs]
    if len(set(pairs)) < len(pairs):
        raise UserError("runs: two are of the same fold and seed")


def _alike(config: Config) -> Config:
    assert isinstance(config.data, Divided)
    return replace(config, name=None, output="", seed=0, resume=None, data=replace(config.data, fold=0))


def _folds(run: Run) -> int:
    return int(getattr(run.config.data, "folds", 0) or 0)


def _fold(run: Run) -> int:
    return int(getattr(run.config.data, "fold", 0))


def _shown(rows: Sequence[Mapping[str, Any]], title: str) -> Table:
    shown = Table(title=f"{title}; shares in %, 95 % over groups", title_justify="left", box=box.SIMPLE_HEAD)
    for name in ("", "policy"):
        shown.add_column(name)
    for name in ("items", "accuracy", "both twins", "model minus it, points"):
        shown.add_column(name, justify="right")
    for row in rows:
        twins = row["twin_accuracy"]
        above = _share(row["model_minus"], row["model_minus_low"], row["model_minus_high"])
        shown.add_row(
            f"{row['factor']} {row['value']}".strip() or "all",
            row["policy"].replace("_", " "),
            str(row["items"]),
            _share(row["accuracy"], row["low"], row["high"]),
            "–" if twins is None else f"{100 * twins:.1f}",
            "" if row["policy"] == MODEL else above,
        )
    return shown


def _share(value: float, low: float | None, high: float | None) -> str:
    return f"{100 * value:.1f}" + ("" if low is None or high is None else rf" \[{100 * low:.1f}, {100 * high:.1f}]")

"""A corpus answered fold by fold, each item by models that have not seen its group, beside shortcuts of these folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from anaphora import config as configuration
from anaphora.analysis.answered import MODEL, NONE_OF_THEM, Answered, answers_of, check_factors, refuse_silent, table
from anaphora.analysis.baselines import Floats, per_item
from anaphora.analysis.settings import CrossValidation
from anaphora.analysis.study import Progress, silent
from anaphora.checkpoint import Layout, Run, load, run_directories
from anaphora.config import Config
from anaphora.data.example import Example
from anaphora.data.settings import Divided
from anaphora.data.store import load as load_corpus
from anaphora.errors import UserError
from anaphora.report.write import write_table

console = Console(width=max(200, Console().width))


def cross_validate(asked: CrossValidation) -> list[dict[str, Any]]:
    """Answer, print the table, and keep it as CSV where a file is named.

    Raises:
        UserError: the runs are not the folds of one corpus, or one of them has seen what it would be asked.
    """
    runs = [load(directory, asked.trainer) for directory in run_directories(asked.runs)]
    check_folds(runs)
    with console.status("reading the data") as status:
        found = answered(runs, status.update)
    check_factors(found, asked.by)
    rows = table(found, asked.by)
    source = runs[0].config.data
    console.print(shown(rows, f"{source.kind}, {_folds(runs[0])} folds by group, {len(found.said)} runs a fold"))
    if asked.output:
        write_table(Path(asked.output), rows)
        console.print(f"table {asked.output}", soft_wrap=True)
    return rows


def answered(runs: Sequence[Run], progress: Progress = silent) -> Answered:
    """Every fold's dev split, answered by its runs and by shortcuts fitted on its training split."""
    by_fold: dict[int, list[Run]] = {}
    for run in sorted(runs, key=lambda one: one.config.seed):
        by_fold.setdefault(fold_of(run), []).append(run)
    examples: list[Example] = []
    said = []
    parts: list[Mapping[str, Floats]] = []
    for fold, here in sorted(by_fold.items()):
        progress(f"fold {fold + 1} of {len(by_fold)}")
        corpus = load_corpus(here[0].config.data)
        training, asked = corpus.examples("train"), corpus.examples("dev")
        examples += asked
        said.append(np.stack([answers_of(run, asked) for run in here]))
        parts.append(per_item(training, asked))
    return Answered(examples, np.concatenate(said, axis=1), joined(parts, [one.shape[1] for one in said]))


def joined(parts: Sequence[Mapping[str, Floats]], sizes: Sequence[int]) -> dict[str, Floats]:
    """What `per_item` gives of several parts as one; NaN where a shortcut is missing in a part."""
    names = list(dict.fromkeys(name for part in parts for name in part))
    return {
        name: np.concatenate([part.get(name, np.full(size, np.nan)) for part, size in zip(parts, sizes, strict=True)])
        for name in names
    }


def check_folds(runs: Sequence[Run]) -> None:
    """Refuse runs that are not all folds of one corpus, each as often as the others.

    Raises:
        UserError: naming the run and what is wrong with it.
    """
    if not runs:
        raise UserError("runs ([]) must name the runs of all folds")
    for run in runs:
        data, directory = run.config.data, run.directory
        if not isinstance(data, Divided) or not data.folds:
            raise UserError(f"runs ({directory}) was not trained on folds; train with data.folds=5 data.fold=0, 1, ...")
        refuse_silent(run)
        if run.config.validation.keep != "last":
            raise UserError(
                f"runs ({directory}) chose its weights on the fold that it would be asked; train with "
                "validation.keep=last"
            )
    refuse_unlike(runs)
    counts = [sum(fold_of(run) == fold for run in runs) for fold in range(_folds(runs[0]))]
    if min(counts) < 1 or len(set(counts)) > 1:
        told = ", ".join(f"fold {fold}: {count}" for fold, count in enumerate(counts))
        raise UserError(f"runs: every fold needs as many runs, at least one; here are {told}")
    pairs = [(fold_of(run), run.config.seed) for run in runs]
    if len(set(pairs)) < len(pairs):
        raise UserError("runs: two are of the same fold and seed")


def refuse_unlike(runs: Sequence[Run]) -> None:
    """Refuse runs that differ in more than fold and seed, their own and those of the runs that they started from.

    Raises:
        UserError: naming the first that does.
    """
    for run in runs:
        if _alike(run.config) != _alike(runs[0].config):
            raise UserError(
                f"runs: {run.directory} has other settings than {runs[0].directory}; only fold and seed may vary"
            )


def _alike(config: Config) -> Config:
    data = replace(config.data, fold=0) if isinstance(config.data, Divided) else config.data
    return replace(config, name=None, output="", seed=0, resume=None, start=_origin(config.start), data=data)


def _origin(start: str | None) -> str | None:
    """What a run started from, the same for two seeds of one recipe."""
    if start is None or not (written := Layout(Path(start).expanduser()).config).exists():
        return start
    return repr(_alike(configuration.read(written)))


def _folds(run: Run) -> int:
    return int(getattr(run.config.data, "folds", 0) or 0)


def fold_of(run: Run) -> int:
    """The fold that a run has not seen."""
    return int(getattr(run.config.data, "fold", 0))


def shown(rows: Sequence[Mapping[str, Any]], title: str) -> Table:
    """The rows of `table` for the terminal, without the columns that tell nothing of these items."""
    several = any(row["lowest"] is not None for row in rows)
    undecided = any(row["policy"] == NONE_OF_THEM for row in rows)
    compared = "contrast" in rows[0]
    shown = Table(title=f"{title}; shares in %, 95 % over groups", title_justify="left", box=box.SIMPLE_HEAD)
    for name in ("", "policy"):
        shown.add_column(name, no_wrap=True)
    columns = {"items": True, "accuracy": True, "runs": several, "both twins": True, "decisions": undecided}
    columns |= {"silent": any(row["silent"] for row in rows), "model minus it": True, "contrast": compared}
    for name in [name for name, there in columns.items() if there]:
        shown.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        twins, lowest = row["twin_accuracy"], row["lowest"]
        cells = {
            "items": str(row["items"]),
            "accuracy": _share(row["accuracy"], row["low"], row["high"]),
            "runs": "" if lowest is None else f"{100 * lowest:.1f} to {100 * row['highest']:.1f}",
            "both twins": "–" if twins is None else f"{100 * twins:.1f}",
            "decisions": _interval(row, "decision_accuracy"),
            "silent": f"{100 * row['silent']:.1f}",
            "model minus it": "" if row["policy"] == MODEL else _interval(row, "model_minus"),
            "contrast": _interval(row, "contrast") if compared and row["contrast"] is not None else "",
        }
        shown.add_row(
            row["value"] or row["factor"] or "all",
            row["policy"].replace("_", " "),
            *(cells[name] for name, there in columns.items() if there),
        )
    return shown


def _interval(row: Mapping[str, Any], name: str) -> str:
    return _share(row[name], row[f"{name}_low"], row[f"{name}_high"])


def _share(value: float, low: float | None, high: float | None) -> str:
    return f"{100 * value:.1f}" + ("" if low is None or high is None else rf" \[{100 * low:.1f}, {100 * high:.1f}]")

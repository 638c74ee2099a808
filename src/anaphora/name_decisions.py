"""The table of name decisions (GAP): shortcuts, single heads and a probe without fine-tuning, and fine-tuned runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table

from anaphora.analysis.answered import refuse_silent
from anaphora.analysis.baselines import Floats, first, nearest
from anaphora.analysis.capture import look
from anaphora.analysis.flow import candidates_to_pronoun
from anaphora.analysis.gap_scores import Decisions, NameScore, best_thresholds, gold_names, name_score, named, parallel
from anaphora.analysis.probe import head_features, out_of_fold
from anaphora.analysis.settings import NameDecisions
from anaphora.analysis.words import mention_mass
from anaphora.checkpoint import Run, load
from anaphora.cross_validation import check_folds, fold_of
from anaphora.data.batch import Encoded
from anaphora.data.corpora.division import fold_numbers
from anaphora.data.example import Example
from anaphora.data.settings import Data, Divided
from anaphora.data.store import load as load_corpus
from anaphora.errors import UserError
from anaphora.model.settings import NoReadout, check_length
from anaphora.report.write import write_table

console = Console(width=max(120, Console().width))


def decide(asked: NameDecisions) -> list[dict[str, Any]]:
    """Measure, print the table, and keep it as CSV where a file is named.

    Raises:
        UserError: the data are not of two names each with a gender, or a run answers nothing.
    """
    runs = [load(run, asked.trainer) for run in asked.runs]
    for run in runs:
        _refuse_silent(run)
    if asked.weights is not None:
        untaught = load(asked.weights, asked.trainer)
        corpus = load_corpus(asked.data)
        examples = _two_names([*corpus.examples("train"), *corpus.examples("dev")])
        found = without_training(untaught, examples, asked.folds, asked.data.seed)
        title = f"{len(examples)} development items, {asked.folds} folds by text"
    elif asked.split == "folds":
        found = by_folds(runs, asked.data)
        title = "each run's own fold"
    else:
        examples = _two_names(load_corpus(asked.data).examples(asked.split))
        if asked.split == "dev":
            for run in runs:
                _refuse_seen(run, examples)
        found = fine_tuned(runs, examples)
        title = f"{len(examples)} items of the {asked.split} split"
    rows = [{"policy": name, **_cells(score)} for name, score in found.items()]
    console.print(_table(f"Name decisions: {title}", rows))
    if asked.output:
        write_table(Path(asked.output), rows)
        console.print(f"table {asked.output}", soft_wrap=True)
    return rows


def fine_tuned(runs: Sequence[Run], examples: Sequence[Example]) -> dict[str, NameScore]:
    """The score of each run's own answers, and of all together."""
    said = [_decisions(run, examples) for run in runs]
    found = {run.name: name_score(one[None], examples) for run, one in zip(runs, said, strict=True)}
    return {**found, f"mean of {len(runs)}": name_score(np.stack(said), examples)} if len(runs) > 1 else found


def by_folds(runs: Sequence[Run], data: Data) -> dict[str, NameScore]:
    """The score of each run on the fold that it has not seen, and of all folds together.

    Raises:
        UserError: the runs are not all folds of these data.
    """
    check_folds(runs)
    parts: dict[int, list[Example]] = {}
    said: dict[int, list[Decisions]] = {}
    found = {}
    for run in sorted(runs, key=lambda one: (fold_of(one), one.config.seed)):
        fold = fold_of(run)
        asked = load_corpus(replace(data, fold=fold)).examples("dev") if isinstance(data, Divided) else []
        if _texts(asked) != _texts(load_corpus(run.config.data).examples("dev")):
            raise _other_data(run)
        parts[fold] = _two_names(asked)
        said.setdefault(fold, []).append(_decisions(run, parts[fold]))
        found[run.name] = name_score(said[fold][-1][None], parts[fold])
    examples = [example for part in parts.values() for example in part]
    together = np.concatenate([np.stack(each) for each in said.values()], axis=1)
    return {**found, f"all {len(parts)} folds": name_score(together, examples)}


def _refuse_silent(run: Run) -> None:
    """Refuse a run that answers no pronoun question.

    Raises:
        UserError: it has no read-out for one.
    """
    if isinstance(run.config.task.readout, NoReadout):
        raise UserError(f"runs ({run.directory}) answers nothing (task.readout=no_readout); weights=... reads heads")
    refuse_silent(run)


def _refuse_seen(run: Run, examples: Sequence[Example]) -> None:
    """Refuse to ask a run about items that it was trained on.

    Raises:
        UserError: there is one.
    """
    if _texts(examples) & _texts(load_corpus(run.config.data).examples("train")):
        raise _other_data(run)


def _texts(examples: Sequence[Example]) -> set[str]:
    return {example.text for example in examples}


def _other_data(run: Run) -> UserError:
    data = run.config.data
    folds = f" data.folds={data.folds} data.fold={data.fold}" if isinstance(data, Divided) and data.folds else ""
    return UserError(
        f"data: {run.directory} was trained on other settings of its data, so that it may have seen what would be "
        f"asked; give data={data.kind}{folds} and whatever else of data it was given"
    )


def _decisions(run: Run, examples: Sequence[Example]) -> Decisions:
    """What a run answers: (N, 2)."""
    data = Encoded(examples, run.tokenizer)
    check_length(run.config.model, data.longest())
    return named(look(run.resolver, data, run.config.batching, run.config.task.readout).answers, 2)


def without_training(run: Run, examples: Sequence[Example], folds: int, seed: int) -> dict[str, NameScore]:
    """Shortcuts, the best head and a probe over all heads; what is chosen or fitted is so on the other folds."""
    numbers = np.array(fold_numbers(examples, folds, seed))
    gold = gold_names(examples, 2)
    policies: dict[str, Callable[[Example], Floats]] = {"nearest": nearest, "first": first, "parallel roles": parallel}
    found = {"random": name_score(_random(len(examples), seed), examples)}
    for name, policy in policies.items():
        answers = np.array([policy(example).argmax() for example in examples])
        found[name] = name_score(named(answers, 2)[None], examples)
    data = Encoded(examples, run.tokenizer)
    check_length(run.config.model, data.longest())
    batching, readout = run.config.batching, run.config.task.readout
    records = look(run.resolver, data, batching, readout).records
    forth = np.stack([mention_mass(record) for record in records])  # (N, L, H, M)
    back = candidates_to_pronoun(run.resolver, data, batching, readout)
    for name, masses in (("best head", forth), ("best head, either direction", np.concatenate([forth, back], axis=1))):
        flat = masses.reshape(len(examples), -1, 2).transpose(0, 2, 1)  # (N, M, heads)
        found[name] = name_score(_best_of(flat, gold, numbers)[None], examples)
        cut = _best_of(flat, gold, numbers, threshold=True)
        found[f"{name}, with threshold"] = name_score(cut[None], examples)
    likely = out_of_fold(head_features(forth, back), gold, numbers.tolist(), seed)
    found["probe over heads"] = name_score(_best_of(likely[:, :, None], gold, numbers, threshold=True)[None], examples)
    return found


def _best_of(
    scores: NDArray[np.floating], gold: Decisions, folds: NDArray[np.int64], threshold: bool = False
) -> Decisions:
    """The decisions of the policy that is best on the other folds: (N, M, K) scores of K policies -> (N, M)."""
    answers = scores.argmax(axis=1)  # (N, K)
    top = np.take_along_axis(scores, answers[:, None], axis=1)[:, 0].astype(np.float64)
    right = np.take_along_axis(gold, answers, axis=1)
    said = np.zeros_like(gold)
    for fold in np.unique(folds):
        training, asked = folds != fold, np.flatnonzero(folds == fold)
        if threshold:
            cuts, f1 = best_thresholds(top[training], right[training], int(gold[training].sum()))
        else:
            cuts, f1 = np.full(top.shape[1], -np.inf), right[training].mean(axis=0)
        best = int(f1.argmax())
        said[asked, answers[asked, best]] = top[asked, best] >= cuts[best]
    return said


def _random(items: int, seed: int, draws: int = 100) -> Decisions:
    """The decisions of many blind choices between two names: (S, N, 2)."""
    drawn = np.random.default_rng(seed).integers(2, size=(draws, items))
    said: Decisions = drawn[:, :, None] == np.arange(2)
    return said


def _two_names(examples: Sequence[Example]) -> list[Example]:
    for number, example in enumerate(examples):
        if len(example.candidates) != 2 or example.factors.get("gender") not in ("male", "female"):
            raise UserError(
                f"data: item {number} has {len(example.candidates)} candidates and the gender "
                f"{example.factors.get('gender')!r}; two names and male or female are needed, as data=gap has them"
            )
    if not examples:
        raise UserError("data: there is no item")
    return list(examples)


def _cells(score: NameScore) -> dict[str, Any]:
    return {
        "f1": score.f1,
        "low": score.interval[0],
        "high": score.interval[1],
        "precision": score.precision,
        "recall": score.recall,
        "masculine": score.masculine,
        "feminine": score.feminine,
        "bias": score.bias,
        "bias_low": score.bias_interval[0],
        "bias_high": score.bias_interval[1],
    }


def _table(title: str, rows: Sequence[dict[str, Any]]) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 0), pad_edge=False)
    for name in rows[0]:
        table.add_column(name, justify="left" if name == "policy" else "right")
    for row in rows:
        table.add_row(*(value if isinstance(value, str) else f"{value:.3f}" for value in row.values()))
    return table

"""The table of name decisions (GAP): shortcuts, single heads and a probe without fine-tuning, and fine-tuned runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table

from anaphora.analysis.answered import refuse_silent
from anaphora.analysis.baselines import Floats, first, nearest
from anaphora.analysis.capture import log_shares, look
from anaphora.analysis.flow import candidates_to_pronoun
from anaphora.analysis.gap_scores import (
    Decisions,
    NameScore,
    best_thresholds,
    gold_names,
    name_difference,
    name_score,
    named,
    parallel,
)
from anaphora.analysis.probe import head_features, out_of_fold
from anaphora.analysis.settings import NameDecisions
from anaphora.analysis.words import mention_mass
from anaphora.checkpoint import Run, load, run_directories
from anaphora.cross_validation import check_folds, fold_of
from anaphora.data.batch import Encoded
from anaphora.data.corpora.division import fold_numbers
from anaphora.data.example import Example
from anaphora.data.names import with_exchanged_names
from anaphora.data.settings import Data, Divided
from anaphora.data.store import load as load_corpus
from anaphora.errors import UserError
from anaphora.model.settings import NoReadout, check_length
from anaphora.report.write import write_table

console = Console(width=max(170, Console().width))

BOTH_WAYS = ", both ways"
"""Behind the name of a row whose answers are the mean over the text as it is and with its names exchanged."""


@dataclass(frozen=True, eq=False)
class Told:
    """What the answers of S runs are worth.

    Attributes:
        scores: of each run and of all together, by row of the table.
        said: (S, W, N, M) the decisions; W is 1, or 2 where the names were exchanged too: asked once, asked both ways.
        examples: the N items.
    """

    scores: dict[str, NameScore]
    said: Decisions
    examples: list[Example]


def decide(asked: NameDecisions) -> list[dict[str, Any]]:
    """Measure, print the table, and keep it as CSV where a file is named.

    Raises:
        UserError: the data are not of two names each with a gender, or a run answers nothing.
    """
    runs = [load(directory, asked.trainer) for directory in run_directories(asked.runs)]
    for run in runs:
        _refuse_silent(run)
    told: Told | None = None
    if asked.weights is not None:
        untaught = load(asked.weights, asked.trainer)
        corpus = load_corpus(asked.data)
        examples = _two_names([*corpus.examples("train"), *corpus.examples("dev")])
        found = without_training(untaught, examples, asked.folds, asked.data.seed)
        title = f"{len(examples)} development items, {asked.folds} folds by text"
    else:
        if asked.split == "folds":
            told = by_folds(runs, asked.data, asked.exchanged)
            title = "each run's own fold"
        else:
            examples = _two_names(load_corpus(asked.data).examples(asked.split))
            if asked.split == "dev":
                for run in runs:
                    _refuse_seen(run, examples)
            told = fine_tuned(runs, examples, asked.exchanged)
            title = f"{len(examples)} items of the {asked.split} split"
        found = told.scores
    rows = [{"policy": name, **_cells(score)} for name, score in found.items()]
    console.print(_table(f"Name decisions: {title}", rows))
    if told is not None and asked.exchanged:
        console.print(_gain(told))
    if asked.output:
        write_table(Path(asked.output), rows)
        console.print(f"table {asked.output}", soft_wrap=True)
    return rows


def fine_tuned(runs: Sequence[Run], examples: list[Example], exchanged: bool = False) -> Told:
    """The score of each run's own answers, and of all together."""
    said = np.stack([_decisions(run, examples, exchanged) for run in runs])
    found: dict[str, NameScore] = {}
    for run, one in zip(runs, said, strict=True):
        found |= _scores(run.name, one[None], examples)
    if len(runs) > 1:
        found |= _scores(f"mean of {len(runs)}", said, examples)
    return Told(found, said, examples)


def by_folds(runs: Sequence[Run], data: Data, exchanged: bool = False) -> Told:
    """The score of each run on the fold that it has not seen, and of all folds together.

    Raises:
        UserError: the runs are not all folds of these data.
    """
    check_folds(runs)
    parts: dict[int, list[Example]] = {}
    said: dict[int, list[Decisions]] = {}
    found: dict[str, NameScore] = {}
    for run in sorted(runs, key=lambda one: (fold_of(one), one.config.seed)):
        fold = fold_of(run)
        asked = load_corpus(replace(data, fold=fold)).examples("dev") if isinstance(data, Divided) else []
        if _texts(asked) != _texts(load_corpus(run.config.data).examples("dev")):
            raise _other_data(run)
        parts[fold] = _two_names(asked)
        said.setdefault(fold, []).append(_decisions(run, parts[fold], exchanged))
        found |= _scores(run.name, said[fold][-1][None], parts[fold])
    examples = [example for part in parts.values() for example in part]
    together = np.concatenate([np.stack(each) for each in said.values()], axis=2)
    return Told(found | _scores(f"all {len(parts)} folds", together, examples), together, examples)


def _scores(name: str, said: Decisions, examples: Sequence[Example]) -> dict[str, NameScore]:
    """The rows of some runs' decisions, (S, W, N, M)."""
    return {
        f"{name}{way}": name_score(said[:, place], examples)
        for place, way in enumerate(("", BOTH_WAYS)[: said.shape[1]])
    }


def _gain(told: Told) -> str:
    """What asking both ways changes, in a line."""
    once, both = told.said[:, 0], told.said[:, 1]
    above, (low, high) = name_difference(both, once, told.examples)
    moved = 100 * float((once != both).any(axis=2).mean())
    between = f"{above:+.3f} [{low:+.3f}, {high:+.3f}]"
    return f"asked both ways, less asked once: F1 {between}, paired over texts; {moved:.1f} % of answers change"


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


def _decisions(run: Run, examples: Sequence[Example], exchanged: bool) -> Decisions:
    """What a run answers: (W, N, 2), asked once and, where names are exchanged too, both ways.

    Who bears which name says nothing about who is meant, so the mean over both is the answer that does not hang on it.
    """
    shares = [_log_shares(run, examples)]
    if exchanged:
        shares.append((shares[0] + _log_shares(run, [with_exchanged_names(example) for example in examples])) / 2)
    return np.stack([named(each.argmax(axis=1), 2) for each in shares])


def _log_shares(run: Run, examples: Sequence[Example]) -> NDArray[np.float64]:
    """The log of the share of first name, second name and neither: (N, 3)."""
    data = Encoded(examples, run.tokenizer)
    check_length(run.config.model, data.longest())
    return log_shares(run.resolver, data, run.config.batching, run.config.task.readout)


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
        "weighted_bias": score.weighted_bias,
        "weighted_bias_low": score.weighted_bias_interval[0],
        "weighted_bias_high": score.weighted_bias_interval[1],
    }


def _table(title: str, rows: Sequence[dict[str, Any]]) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 0), pad_edge=False)
    for name in rows[0]:
        table.add_column(name, justify="left" if name == "policy" else "right")
    for row in rows:
        table.add_row(*(value if isinstance(value, str) else f"{value:.3f}" for value in row.values()))
    return table

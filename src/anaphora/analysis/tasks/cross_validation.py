"""Cross-validation: each run predicts the antecedents in the fold that was held out from its training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from anaphora.analysis.evidence.headline import no_progress
from anaphora.analysis.maps.answers import Answers, Floats
from anaphora.analysis.scores.baselines.shortcuts import shortcut_correctness
from anaphora.analysis.tasks.task_accuracy import ItemAnswers, check_factors, predict_for_run, require_pronoun_head
from anaphora.base.console import Progress
from anaphora.base.errors import UserError
from anaphora.base.translation import _
from anaphora.data.example import Example
from anaphora.runs.directory import Run, RunFiles
from anaphora.runs.items import check_training_items, corpus_of
from anaphora.settings.data import ExternalCorpus
from anaphora.settings.run import Config, read_config


def answer_folds(runs: Sequence[Run], progress: Progress = no_progress, by: Sequence[str] = ()) -> ItemAnswers:
    """Return the answers of runs, and the correctness of shortcut baselines, on the held-out fold of each run.

    The held-out fold is the split `dev` of a run's data; the shortcuts are fitted on the split `train`. With S runs per
    fold, the result has S sets of answers to the items of all folds: one by the folds' runs with the lowest seeds, one
    by those with the second lowest, and so on. `by` names factors (properties of items) that must occur in the items.

    Raises:
        UserError: a factor of `by` occurs in no item, a run does not predict antecedents, a run's corpus is missing or
            no longer has the training items of the run, or a text is too long for a model.
    """
    by_fold: dict[int, list[Run]] = {}
    for run in sorted(runs, key=lambda one: one.config.seed):
        by_fold.setdefault(fold_of(run), []).append(run)
    corpora = {fold: corpus_of(fold_runs[0]) for fold, fold_runs in by_fold.items()}
    check_factors([example for corpus in corpora.values() for example in corpus.examples("dev")], by)
    examples: list[Example] = []
    answers = []
    parts: list[Mapping[str, Floats]] = []
    for fold, fold_runs in sorted(by_fold.items()):
        progress(_("fold {fold} of {folds}").format(fold=fold + 1, folds=len(by_fold)))
        corpus = corpora[fold]
        for run in fold_runs[1:]:
            check_training_items(run.files.directory, run.config.data, corpus)
        training, items = corpus.examples("train"), corpus.examples("dev")
        examples += items
        answers.append([predict_for_run(run, items) for run in fold_runs])
        parts.append(shortcut_correctness(training, items))
    shortcuts = {
        # A shortcut may not apply to every fold.
        name: np.concatenate([part.get(name, np.full(len(part["chance"]), np.nan)) for part in parts])
        for name in dict.fromkeys(name for part in parts for name in part)
    }
    return ItemAnswers(examples, [Answers.joined(of_folds) for of_folds in zip(*answers, strict=True)], shortcuts)


def check_folds(runs: Sequence[Run]) -> None:
    """Check that runs cover all folds of one corpus, with the same settings and the same number of runs per fold.

    Raises:
        UserError: there are no runs; a run was not trained on folds, does not predict antecedents, or selected its
            checkpoint on its held-out fold; the runs differ in other settings; a fold has no runs; folds have different
            numbers of runs; or two runs have the same fold and seed.
    """
    if not runs:
        raise UserError("runs ([]) must name the runs of all folds")
    for run in runs:
        data, directory = run.config.data, run.directory
        if not isinstance(data, ExternalCorpus) or not data.folds:
            raise UserError(f"runs ({directory}) was not trained on folds; train with data.folds=5 data.fold=0, 1, ...")
        require_pronoun_head(run)
        if run.config.chooses_on_its_fold:
            raise UserError(
                f"runs ({directory}) chose its weights on the fold that it would answer; train with "
                "validation.keep=last"
            )
    require_same_recipe(runs)
    counts = [sum(fold_of(run) == fold for run in runs) for fold in range(fold_count(runs[0]))]
    if min(counts) < 1 or len(set(counts)) > 1:
        written = ", ".join(f"fold {fold}: {count}" for fold, count in enumerate(counts))
        raise UserError(f"runs: every fold must have the same number of runs, at least one; they have {written}")
    pairs = [(fold_of(run), run.config.seed) for run in runs]
    if len(set(pairs)) < len(pairs):
        raise UserError("runs: two are of the same fold and seed")


def require_same_recipe(runs: Sequence[Run]) -> None:
    """Check that runs, and the runs from which they started, differ only in name, output folder, fold and seed.

    Raises:
        UserError: the settings of a run differ from those of the first run.
    """
    for run in runs:
        if _without_fold_and_seed(run.config) != _without_fold_and_seed(runs[0].config):
            raise UserError(
                f"runs: {run.directory} has other settings than {runs[0].directory}; only fold and seed may vary"
            )


def _without_fold_and_seed(config: Config) -> Config:
    data = replace(config.data, fold=0) if isinstance(config.data, ExternalCorpus) else config.data
    return replace(config, name=None, output="", seed=0, resume=None, start=_starting_recipe(config.start), data=data)


def _starting_recipe(start: str | None) -> str | None:
    """Return the settings of the run at the path `start`, without fold and seed, as a string for comparisons.

    If no run is stored there, return `start` itself.
    """
    if start is None or not (written := RunFiles(Path(start)).config).exists():
        return start
    return repr(_without_fold_and_seed(read_config(written)))


def fold_count(run: Run) -> int:
    """Return the number of folds of a run's data; 0 without cross-validation."""
    return int(getattr(run.config.data, "folds", 0) or 0)


def fold_of(run: Run) -> int:
    """Return the index of a run's held-out fold, from 0; 0 without cross-validation."""
    return int(getattr(run.config.data, "fold", 0))

"""Transfer: answers of runs to a corpus other than their training corpus, with shortcuts fitted on either corpus."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anaphora.analysis.evidence.headline import Progress, no_progress
from anaphora.analysis.scores.baselines.learned import LEARNED_FROM_FEW_CANDIDATES
from anaphora.analysis.scores.baselines.policies import Floats
from anaphora.analysis.scores.baselines.stored import shortcut_correctness
from anaphora.analysis.tasks.answered import ItemAnswers, predict_for_run
from anaphora.base.locale.translation import _
from anaphora.data.corpora.division import fold_numbers
from anaphora.data.example import Example
from anaphora.runs.directory import Run

OWN_FOLDS_SUFFIX = "_on_own_folds"
"""Suffix of a shortcut fitted on other folds of the evaluated items."""


def answer_transfer(
    runs: Sequence[Run],
    training: Sequence[Sequence[Example]],
    examples: list[Example],
    folds: int,
    seed: int,
    progress: Progress = no_progress,
) -> ItemAnswers:
    """Return the answers of all runs, and the correctness of shortcuts fitted on their training items and by folds.

    Shortcuts fitted on other folds of `examples` have the suffix `OWN_FOLDS_SUFFIX`. A shortcut that was not
    fitted on every training split is left out.

    Args:
        runs: the trained runs.
        training: the distinct training splits of the runs, on each of which shortcuts are fitted.
        examples: the items to answer.
        folds: number of folds of `examples` by group, for shortcuts fitted on the other folds.
        seed: seed of the folds.
        progress: callback for progress messages.

    Raises:
        UserError: a run answers no pronoun questions, or a text is too long for its model.
    """
    answers = []
    for number, run in enumerate(runs, 1):
        progress(_("run {number} of {runs}").format(number=number, runs=len(runs)))
        answers.append(predict_for_run(run, examples))
    progress(_("fitting the shortcuts"))
    fits = [shortcut_correctness(split, examples) for split in training]
    everywhere = [name for name in fits[0] if all(name in fit for fit in fits)]
    shortcuts: dict[str, Floats] = {name: _stack_fits([fit[name] for fit in fits]) for name in everywhere}
    numbers = np.array(fold_numbers(examples, folds, seed))
    own_folds: dict[str, Floats] = {}
    for fold in np.unique(numbers):
        fold_items = np.flatnonzero(numbers == fold)
        others = [examples[item] for item in np.flatnonzero(numbers != fold)]
        for name, right in shortcut_correctness(others, [examples[item] for item in fold_items]).items():
            if name in LEARNED_FROM_FEW_CANDIDATES:
                own_folds.setdefault(name, np.full(len(examples), np.nan))[fold_items] = right
    shortcuts |= {f"{name}{OWN_FOLDS_SUFFIX}": correct for name, correct in own_folds.items()}
    return ItemAnswers(examples, answers, shortcuts)


def _stack_fits(fits: Sequence[Floats]) -> Floats:
    """Stack the correctness of all fits, (K, N); return (N,) if all are equal, as for shortcuts that are not fitted."""
    return fits[0] if all(np.array_equal(fit, fits[0], equal_nan=True) for fit in fits) else np.stack(fits)

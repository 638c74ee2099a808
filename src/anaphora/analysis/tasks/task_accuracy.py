"""Task accuracy of runs and of shortcut baselines on the same items, with paired bootstrap intervals.

Axes are N (items) and S (runs).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.evidence.headline import no_progress
from anaphora.analysis.maps.answers import Answers, Floats
from anaphora.analysis.maps.capture import answers_pronouns, predict_answers
from anaphora.analysis.results.typed_json import Ends
from anaphora.analysis.scores.baselines.learned import LEARNED_FROM_FEW_CANDIDATES
from anaphora.analysis.scores.baselines.shortcuts import shortcut_correctness
from anaphora.analysis.scores.cells import clusters, factor_values
from anaphora.analysis.scores.quads import minimal_pair_accuracy
from anaphora.analysis.scores.statistics import BOOTSTRAPPED_FROM, DIFFERENCES, SHARES, cluster_interval
from anaphora.base.console import Progress
from anaphora.base.errors import UserError
from anaphora.base.translation import _
from anaphora.data.corpora.division import fold_numbers
from anaphora.data.example import Example
from anaphora.runs.directory import Run
from anaphora.runs.items import encode

MODEL = "model"
"""Name that stands for the runs, besides the names of baselines, in tables of accuracies."""

NONE_OF_THEM = "none_of_them"
"""Name of the baseline that answers "none of them" to every item."""


@dataclass(frozen=True)
class ItemAnswers:
    """Items, with the antecedents predicted by each run and the correctness of each shortcut baseline."""

    examples: list[Example]
    answers: Sequence[Answers]  # answers of each run to all items
    shortcuts: Mapping[str, Floats]  # correctness by name, (N,), or (K, N) if fitted K times; NaN if inapplicable

    def correctness(self) -> Floats:
        """Return the correctness of each run on each item: (S, N)."""
        return np.stack([answers.correct for answers in self.answers])

    def silent(self) -> Floats:
        """Return 1 where a run answers "none of them", else 0, or a fraction in a tie (`Answers.silent`): (S, N)."""
        return np.stack([answers.silent for answers in self.answers])

    def policies(self) -> Iterator[tuple[str, Floats, Floats]]:
        """Yield name, correctness, and number of correct decisions on each item, for the runs and for each baseline.

        The name "model" stands for all runs. The arrays have one row per run, (S, N), or per fit of a baseline,
        (fits, N). An item with M candidates has M decisions: whether each candidate is an antecedent. Shortcuts that do
        not apply to all items are left out, and so is `NONE_OF_THEM` if every item has an antecedent.
        """
        sizes = np.array([len(example.candidates) for example in self.examples])
        antecedents = np.array([len(example.antecedents) for example in self.examples])
        correct = self.correctness()
        named = 1 - self.silent()
        # A wrong candidate makes the decisions on it and on the antecedents wrong; "none of them" only the latter.
        hits = correct * (antecedents > 0)
        yield MODEL, correct, sizes - antecedents - named + 2 * hits
        for name, shortcut in self.shortcuts.items():
            if not np.isnan(shortcut).any():
                fits = np.atleast_2d(shortcut)
                yield name, fits, sizes - antecedents - 1 + 2 * fits
        if not antecedents.all():
            decisions = (sizes - antecedents).astype(np.float64)
            yield NONE_OF_THEM, (antecedents == 0).astype(np.float64)[None], decisions[None]


def predict_for_run(run: Run, examples: Sequence[Example]) -> Answers:
    """Return the antecedents that a run predicts for the pronouns of the given examples.

    Raises:
        UserError: the run does not predict antecedents, or a text is too long for its model.
    """
    require_pronoun_head(run)
    answers = predict_answers(run.model, encode(run, examples), run.config.batching)
    assert answers is not None
    return answers


def require_pronoun_head(run: Run) -> None:
    """Raise UserError if a run does not predict antecedents."""
    prediction = run.config.task.prediction
    if not answers_pronouns(prediction):
        raise UserError(f"runs ({run.directory}) answers no pronoun question (task.prediction={prediction.kind})")


def check_factors(examples: Sequence[Example], by: Sequence[str], contrast: str | None = None) -> None:
    """Check that the given factors (properties of items, `Example.factors`) occur in the examples.

    Args:
        by: names of factors; "a+b" stands for the combination of the factors a and b.
        contrast: name of a factor that must have exactly two values; None for no such factor.

    Raises:
        UserError: a factor is unknown, or `contrast` does not have two values.
    """
    known = sorted({name for example in examples for name in example.factors})
    single = [("by", name) for crossed in by for name in crossed.split("+")]
    for setting, factor in [*single, ("contrast", contrast)]:
        if factor is not None:
            check_is_factor(setting, factor, known)
    if contrast is not None:
        values = sorted({example.factors.get(contrast, "") for example in examples})
        if len(values) != 2:
            listed = ", ".join(value or "none (rows without it)" for value in values)
            raise UserError(f"contrast ({contrast!r}) must be a factor of two values; it has {listed}")


def check_is_factor(setting: str, name: str, known: Sequence[str]) -> None:
    """Raise UserError unless `name`, the value of `setting`, is one of the known factors of the data."""
    if name not in known:
        listed = ", ".join(known) or "they have none"
        raise UserError(f"{setting} ({name!r}) must be one of the factors of these data: {listed}")


@dataclass(frozen=True, kw_only=True)
class PolicyAccuracy:
    """Accuracy of the runs or of a baseline, named `policy`, on a set of items.

    Intervals of 95 % are bootstrapped over templates or groups of items (`clusters`), not over the runs.
    """

    factor: str  # factor whose value defines the set of items; "" for all items
    value: str
    policy: str
    items: int
    accuracy: float  # mean over runs or fits
    interval: Ends
    lowest: float | None  # lowest accuracy over runs or fits; None for a single one
    highest: float | None  # highest accuracy over runs or fits; None for a single one
    minimal_pair_accuracy: float | None  # share of minimal pairs with every item right; None without any
    decision_accuracy: float  # share of correct decisions, one per candidate
    decision_accuracy_interval: Ends
    silent: float  # share of answers "none of them"; 0 for shortcuts, 1 for `NONE_OF_THEM`
    model_minus: float  # the runs' accuracy minus this accuracy on the same items
    model_minus_interval: Ends


@dataclass(frozen=True, kw_only=True)
class ContrastedAccuracy(PolicyAccuracy):
    """Accuracy as in `PolicyAccuracy`, and the difference in accuracy between the two values of a factor.

    `contrast` is the accuracy on the alphabetically first value minus that on the second. It is None if the items have
    only one value; its interval is None if a value occurs in fewer than `BOOTSTRAPPED_FROM` clusters.
    """

    contrast: float | None
    contrast_interval: Ends


def accuracy_table(items: ItemAnswers, by: Sequence[str] = (), contrast: str | None = None) -> list[PolicyAccuracy]:
    """Return the accuracy of the runs and of each baseline on all items, and for each value of the factors in `by`.

    Args:
        by: names of factors (properties of items); "a+b" stands for the combination of the factors a and b.
        contrast: name of a factor with two values; if given, each result also has the difference between the accuracies
            on the two values (`ContrastedAccuracy`).
    """
    cells = {("", ""): np.arange(len(items.examples))}
    for factor in by:
        names = factor.split("+")
        # In a cross of factors, a dash stands for a missing value.
        missing = "" if len(names) == 1 else "–"
        values = np.array([", ".join(each.factors.get(name) or missing for name in names) for each in items.examples])
        cells |= {(factor, value): np.flatnonzero(values == value) for value in sorted(set(values.tolist()))}
    policies, no_answer = list(items.policies()), items.silent()
    model = policies[0][1].mean(axis=0)
    rows: list[PolicyAccuracy] = []
    for (factor, value), numbers in cells.items():
        examples = [items.examples[number] for number in numbers]
        labels = clusters(examples)
        for name, correct, decided in policies:
            runs = correct[:, numbers]
            mean = runs.mean(axis=0)
            of_runs = runs.mean(axis=1)
            pairs = float(np.mean([minimal_pair_accuracy(run, examples) for run in runs]))
            sizes = np.array([len(example.candidates) for example in examples])
            decisions = np.repeat(decided[:, numbers].mean(axis=0) / sizes, sizes)
            row = PolicyAccuracy(
                factor=factor,
                value=value,
                policy=name,
                items=len(numbers),
                accuracy=float(mean.mean()),
                interval=cluster_interval(mean, labels, bounds=SHARES),
                lowest=float(of_runs.min()) if len(runs) > 1 else None,
                highest=float(of_runs.max()) if len(runs) > 1 else None,
                minimal_pair_accuracy=None if np.isnan(pairs) else pairs,
                decision_accuracy=float(decisions.mean()),
                decision_accuracy_interval=cluster_interval(decisions, np.repeat(labels, sizes), bounds=SHARES),
                silent=float(no_answer[:, numbers].mean() if name == MODEL else name == NONE_OF_THEM),
                model_minus=float((model[numbers] - mean).mean()),
                model_minus_interval=cluster_interval(model[numbers] - mean, labels, bounds=DIFFERENCES),
            )
            if contrast is not None:
                above, ends = _factor_contrast(mean, examples, labels, contrast)
                row = ContrastedAccuracy(**vars(row), contrast=above, contrast_interval=ends)
            rows.append(row)
    return rows


def _factor_contrast(
    correct: Floats, examples: Sequence[Example], labels: NDArray[np.int64], factor: str
) -> tuple[float | None, Ends]:
    values = factor_values(examples, factor)
    kinds = sorted(set(values))
    if len(kinds) < 2:
        return None, None
    # The interval is bootstrapped by linearisation, since each accuracy is a ratio of two sums: the influence values
    # have the contrast as their mean, and to first order, the contrast and their mean vary alike over samples.
    means = [float(correct[values == kind].mean()) for kind in kinds]
    contrast = means[0] - means[1]
    if any(len(np.unique(labels[values == kind])) < BOOTSTRAPPED_FROM for kind in kinds):
        return contrast, None  # resampling all clusters is unreliable for a value that occurs in few of them
    influence = np.full(len(values), contrast)
    for sign, kind, mean in zip((1, -1), kinds, means, strict=True):
        influence += sign * (values == kind) * (correct - mean) * len(values) / (values == kind).sum()
    return float(influence.mean()), cluster_interval(influence, labels, bounds=DIFFERENCES)


OWN_FOLDS_SUFFIX = "_on_own_folds"
"""Suffix of the name of a shortcut that is fitted on the other folds of the evaluated items."""


def answer_transfer(
    runs: Sequence[Run],
    training: Sequence[Sequence[Example]],
    examples: list[Example],
    folds: int,
    seed: int,
    progress: Progress = no_progress,
) -> ItemAnswers:
    """Return the answers of runs to the items of another corpus, with the correctness of shortcut baselines.

    Shortcuts are fitted on the runs' training items; those that do not apply to every training split are left out. The
    shortcuts in `LEARNED_FROM_FEW_CANDIDATES` are also fitted on `examples`: for the items of each fold, on the items
    of all other folds. In the result, the names of these fits end in `OWN_FOLDS_SUFFIX`.

    Args:
        training: different training splits of the runs; the shortcuts are fitted on each of them separately.
        examples: items of the other corpus.
        folds: number of folds into which `examples` are divided; a group of items is in one fold.

    Raises:
        UserError: a run does not predict antecedents, or a text is too long for its model.
    """
    answers = []
    for number, run in enumerate(runs, 1):
        progress(_("run {number} of {runs}").format(number=number, runs=len(runs)))
        answers.append(predict_for_run(run, examples))
    progress(_("fitting the shortcuts"))
    fits = [shortcut_correctness(split, examples) for split in training]
    everywhere = [name for name in fits[0] if all(name in fit for fit in fits)]
    shortcuts = {name: _stack_fits([fit[name] for fit in fits]) for name in everywhere}
    numbers = np.array(fold_numbers(examples, folds, seed))
    own_folds: dict[str, Floats] = {}
    for fold in np.unique(numbers):
        inside = numbers == fold
        others, held_out = ([examples[item] for item in np.flatnonzero(mask)] for mask in (~inside, inside))
        for name, right in shortcut_correctness(others, held_out).items():
            if name in LEARNED_FROM_FEW_CANDIDATES:
                own_folds.setdefault(name, np.full(len(examples), np.nan))[inside] = right
    shortcuts |= {f"{name}{OWN_FOLDS_SUFFIX}": correct for name, correct in own_folds.items()}
    return ItemAnswers(examples, answers, shortcuts)


def _stack_fits(fits: Sequence[Floats]) -> Floats:
    """Stack the correctness of one shortcut after each of K fits, (K, N); if all are equal, return only one, (N,)."""
    return fits[0] if all(np.array_equal(fit, fits[0], equal_nan=True) for fit in fits) else np.stack(fits)

"""Score fine-tuned runs on GAP, or shortcut baselines, single heads and a probe over all heads of a model.

A prediction consists of a yes/no decision for each name: whether the pronoun refers to this name. The baselines, heads
and probe are evaluated without fine-tuning.

Example: anaphora gap 'runs=[outputs/gap]' data.path=gap-coreference
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from anaphora.base.checks import at_least, one_of
from anaphora.base.device import Device
from anaphora.base.errors import UserError
from anaphora.base.translation import N_, _
from anaphora.commands.parts.settings import Overwriting
from anaphora.settings.data import SPLITS, Data, ExternalCorpus, Gap
from anaphora.settings.model.prediction import NoPrediction

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from anaphora.analysis.tasks.gap import Decisions, GapScore
    from anaphora.data.example import Example
    from anaphora.runs.directory import Run


@dataclass(kw_only=True)
class NameDecisions(Overwriting):
    """Settings of `anaphora gap`, which scores decisions on whether a pronoun refers to each of two names."""

    runs: list[str] = field(default_factory=list)  # fine-tuned runs, one for each seed, such as `outputs/gap_*`
    weights: str | None = None  # pretrained weights, or a run, to evaluate without fine-tuning
    data: Data = field(default_factory=Gap)
    # Split that the runs answer: test (the default), dev, train, or folds, where each run answers its held-out fold.
    # With `weights`, all development rows (train and dev) are used.
    split: str | None = None
    # With `weights`, number of folds of the development rows for choosing heads and fitting the probe; by default 10.
    folds: int | None = None
    exchanged: bool = False  # also evaluate the mean of each run's answers with original and exchanged names
    output: str | None = None  # CSV file for the table
    trainer: Device = field(default_factory=Device)  # device to compute on

    def __post_init__(self) -> None:
        if self.split is not None:
            one_of("split", self.split, (*SPLITS, "folds"))
        at_least("folds", self.folds, 2)
        if bool(self.runs) == (self.weights is not None):
            raise ValueError("give either runs=[...] (fine-tuned) or weights=... (heads without fine-tuning)")
        if self.exchanged and not self.runs:
            raise ValueError("exchanged=true needs answers, which weights=... does not have; give runs=[...]")
        if self.split is not None and not self.runs:
            raise ValueError(
                f"split ({self.split!r}) is what runs=[...] answer: weights=... is measured on all development rows"
            )
        if self.folds is not None and self.runs:
            raise ValueError(f"folds ({self.folds}) is for weights=...; the folds of runs=[...] are data.folds")


@dataclass(frozen=True, eq=False)
class GapEvaluation:
    """Decisions of S runs on whether the pronoun refers to each of M names in N items, and the scores."""

    scores: dict[str, GapScore]  # scores of each run and of all runs together, by name of the table row
    # (S, W, N, M); for folds, S is the number of runs per fold. W is 1, or 2 with exchanged names: decisions from
    # the original names, then from the mean over original and exchanged names.
    decisions: Decisions
    examples: list[Example]  # the N items


def gap(settings: NameDecisions) -> list[dict[str, Any]]:
    """Score decisions on whether a pronoun refers to a name, print the table of scores, and return its rows.

    If `output` is set, the table is also written as CSV.

    Raises:
        UserError: an item does not have two names and a gender, two runs have the same name, a run does not predict
            antecedents, a text is too long for a model, or a run was trained on items of `dev`. Also the errors of
            `evaluate_folds` and `evaluate_without_fine_tuning`.
    """
    from anaphora.analysis.tasks.gap import require_two_names, score_columns
    from anaphora.analysis.tasks.task_accuracy import require_pronoun_head
    from anaphora.commands.parts.shared import check_names_differ, check_table, load_runs, write_table
    from anaphora.commands.parts.tables import print_decisions, print_trained_items
    from anaphora.data.store import load as load_corpus
    from anaphora.report.wording import label, split_names
    from anaphora.runs.directory import load
    from anaphora.runs.items import corpus_of, questions_of

    check_table(settings)
    runs = load_runs(settings.runs, settings.trainer)
    check_names_differ(runs)
    for run in runs:
        if isinstance(run.config.task.prediction, NoPrediction):
            raise UserError(
                f"runs ({run.directory}) gives no answers (task.prediction=none); score its heads with weights=..."
            )
        require_pronoun_head(run)
    evaluation: GapEvaluation | None = None
    if settings.weights is not None:
        pretrained = load(settings.weights, settings.trainer)
        corpus = load_corpus(settings.data)
        examples = require_two_names([*corpus.examples("train"), *corpus.examples("dev")])
        folds = settings.folds or 10
        if folds > len(texts := _texts(examples)):
            raise UserError(f"folds ({folds}) must be at most {len(texts)}, the number of development texts")
        scores = evaluate_without_fine_tuning(pretrained, examples, folds, settings.data.seed)
        title = _("Name decisions: {items:development item|development items}, {folds} folds by text").format(
            items=len(examples), folds=folds
        )
    else:
        if settings.split == "folds":
            evaluation = evaluate_folds(runs, settings.data, settings.exchanged)
            title = _("Name decisions: each run’s own fold")
        else:
            split = settings.split or "test"
            examples = require_two_names(load_corpus(settings.data).examples(split))
            for run in runs:
                if split == "dev" and _texts(examples) & _texts(corpus_of(run).examples("train")):
                    raise _other_data_error(run)
            evaluation = evaluate_runs(runs, examples, settings.exchanged)
            named = label(split_names(), split)
            title = _("Name decisions: {items:item|items} of the {split} split")
            title = title.format(items=len(examples), split=named)
        scores = evaluation.scores
    rows = [{"policy": name, **score_columns(score)} for name, score in scores.items()]
    print_decisions(title, rows, [run.name for run in runs])
    if evaluation is not None and settings.exchanged:
        _print_exchange_gain(evaluation)
    if evaluation is not None and settings.split != "folds":
        for run in runs:
            print_trained_items(run, settings.data, questions_of(evaluation.examples), settings.split or "test")
    write_table(settings, rows)
    return rows


def evaluate_runs(runs: Sequence[Run], examples: list[Example], exchanged: bool = False) -> GapEvaluation:
    """Score each run's decisions on which names the pronouns refer to; average the scores if there are several runs.

    If `exchanged`, a second set of decisions is scored as well: those based on the mean of the predictions for an item
    and for its copy with exchanged names.

    Raises:
        UserError: a text is too long for a model.
    """
    import numpy as np

    decisions = np.stack([_decisions(run, examples, exchanged) for run in runs])
    scores: dict[str, GapScore] = {}
    for run, one in zip(runs, decisions, strict=True):
        scores |= _scores(run.name, one[None], examples)
    if len(runs) > 1:
        scores |= _scores(N_("mean of {0}").format(len(runs)), decisions, examples)
    return GapEvaluation(scores, decisions, examples)


def evaluate_folds(runs: Sequence[Run], data: Data, exchanged: bool = False) -> GapEvaluation:
    """Evaluate each run as in `evaluate_runs`, but on its held-out fold, and all runs together on all folds.

    Raises:
        UserError: a run has other data settings than `data`, or a text is too long for a model; also the errors of
            `check_folds`.
    """
    import numpy as np

    from anaphora.analysis.tasks.cross_validation import check_folds, fold_of
    from anaphora.analysis.tasks.gap import require_two_names
    from anaphora.data.store import load as load_corpus
    from anaphora.runs.items import corpus_of

    check_folds(runs)
    examples_of: dict[int, list[Example]] = {}
    decisions: dict[int, list[Decisions]] = {}
    scores: dict[str, GapScore] = {}
    for run in sorted(runs, key=lambda one: (fold_of(one), one.config.seed)):
        fold = fold_of(run)
        held_out = load_corpus(replace(data, fold=fold)).examples("dev") if isinstance(data, ExternalCorpus) else []
        if _texts(held_out) != _texts(corpus_of(run).examples("dev")):
            raise _other_data_error(run)
        examples_of[fold] = require_two_names(held_out)
        decisions.setdefault(fold, []).append(_decisions(run, examples_of[fold], exchanged))
        scores |= _scores(run.name, decisions[fold][-1][None], examples_of[fold])
    examples = [example for part in examples_of.values() for example in part]
    together = np.concatenate([np.stack(each) for each in decisions.values()], axis=2)
    return GapEvaluation(
        scores | _scores(N_("all {0} folds").format(len(examples_of)), together, examples), together, examples
    )


def _scores(name: str, decisions: Decisions, examples: Sequence[Example]) -> dict[str, GapScore]:
    """Return the GAP scores of S runs, averaged over the runs, keyed by the name of the table row.

    Args:
        decisions: (S, W, N, M), as in `GapEvaluation`. Each of the W (1 or 2) sets of decisions gives one row. The
            first set is based on the original names, the second on the mean for original and exchanged names.
    """
    from anaphora.analysis.tasks.gap import BOTH_WAYS_SUFFIX, gap_score

    return {
        f"{name}{way}": gap_score(decisions[:, number], examples)
        for number, way in enumerate(("", BOTH_WAYS_SUFFIX)[: decisions.shape[1]])
    }


def _print_exchange_gain(evaluation: GapEvaluation) -> None:
    """Print how F1 and the decisions change if a run averages its predictions for original and exchanged names."""
    from anaphora.analysis.tasks.gap import f1_difference
    from anaphora.base.console import say
    from anaphora.report.numbers import format_signed, shown_interval

    once, both = evaluation.decisions[:, 0], evaluation.decisions[:, 1]
    above, (low, high) = f1_difference(both, once, evaluation.examples)
    moved = 100 * float((once != both).any(axis=2).mean())
    is_shown = shown_interval((low, high)) is not None
    ends = (
        _(" [{low}, {high}], paired over texts").format(low=format_signed(low, 3), high=format_signed(high, 3))
        if is_shown
        else ""
    )
    say(
        "both ways, minus once: F1 {above}{interval}; {moved} % of answers change",
        above=format_signed(above, 3),
        interval=ends,
        moved=f"{moved:.1f}",
    )


def _texts(examples: Sequence[Example]) -> set[str]:
    return {example.text for example in examples}


def _other_data_error(run: Run) -> UserError:
    data = run.config.data
    folds = f" data.folds={data.folds} data.fold={data.fold}" if isinstance(data, ExternalCorpus) and data.folds else ""
    return UserError(
        f"data: {run.directory} was trained with other data settings, so it may have seen these items; "
        f"give data={data.kind}{folds} and its other data settings"
    )


def _decisions(run: Run, examples: Sequence[Example], exchanged: bool) -> Decisions:
    """Return a run's decisions on whether the pronoun of each item refers to each of the two names.

    The shape is (1, N, 2), or (2, N, 2) if `exchanged`: the first decisions are from the original items, the second
    from the mean of the log-probabilities for the original items and for copies with exchanged names. This mean removes
    a preference for one of the names.
    """
    import numpy as np

    from anaphora.analysis.maps.answers import shares_chosen
    from anaphora.analysis.maps.capture import log_probabilities
    from anaphora.data.names import with_exchanged_names
    from anaphora.runs.items import encode

    # log-probabilities of the first name, the second name and neither, (N, 3)
    shares = [log_probabilities(run.model, encode(run, examples), run.config.batching)]
    if exchanged:
        others = encode(run, [with_exchanged_names(example) for example in examples])
        shares.append((shares[0] + log_probabilities(run.model, others, run.config.batching)) / 2)
    return np.stack([shares_chosen(each)[:, :2] for each in shares])


def evaluate_without_fine_tuning(run: Run, examples: Sequence[Example], folds: int, seed: int) -> dict[str, GapScore]:
    """Score decisions on whether a pronoun refers to a name, made without fine-tuning.

    The decisions are made by baselines, by the best head, and by a probe on the attention weights of all heads. For
    each fold, the head is chosen, and the thresholds and the probe are fitted, on the other folds (cross-validation).

    Args:
        folds: number of folds, into which the items are divided by text.
        seed: seed of the folds, of random decisions and of the probe.

    Returns:
        The scores of each baseline, of the best head and of the probe, keyed by the name of the table row. There are
        four rows for the best head: with weights from the pronoun to the names only, or with weights in the better of
        the two directions; each with and without a threshold.

    Raises:
        UserError: a text is too long for the model, or the model has no attention maps.
    """
    import numpy as np

    from anaphora.analysis.maps.capture import capture
    from anaphora.analysis.maps.kinds import candidates_to_pronoun
    from anaphora.analysis.maps.words import mention_mass
    from anaphora.analysis.tasks.gap import (
        gap_score,
        gold_decisions,
        head_features,
        out_of_fold_probabilities,
        rule_scores,
    )
    from anaphora.data.corpora.division import fold_numbers
    from anaphora.runs.items import encode

    numbers = np.array(fold_numbers(examples, folds, seed))
    gold = gold_decisions(examples, 2)
    scores = rule_scores(examples, seed)
    data = encode(run, examples)
    batching = run.config.batching
    records = capture(run.model, data, batching).records
    forth = np.stack([mention_mass(record) for record in records])  # (N, L, H, M)
    back = candidates_to_pronoun(run.model, data, batching)
    for name, masses in (("best head", forth), ("best head, either direction", np.concatenate([forth, back], axis=1))):
        flat = masses.reshape(len(examples), -1, 2).transpose(0, 2, 1)  # (N, M, heads)
        scores[name] = gap_score(_best_on_other_folds(flat, gold, numbers)[None], examples)
        cut = _best_on_other_folds(flat, gold, numbers, threshold=True)
        scores[f"{name}, with threshold"] = gap_score(cut[None], examples)
    likely = out_of_fold_probabilities(head_features(forth, back), gold, numbers.tolist(), seed)
    scores["probe over heads"] = gap_score(
        _best_on_other_folds(likely[:, :, None], gold, numbers, threshold=True)[None], examples
    )
    return scores


def _best_on_other_folds(
    scores: NDArray[np.floating], gold: NDArray[np.bool_], folds: NDArray[np.int64], threshold: bool = False
) -> Decisions:
    """Decide for each of M names in N items whether the pronoun refers to it, by the best scorer on other folds.

    A scorer is, for instance, an attention head. The best one has the highest accuracy or, with a threshold, F1.

    Args:
        scores: (N, M, K) score of each name by each of K scorers, such as heads.
        gold: (N, M) mask of the antecedents.
        folds: (N,) fold index of each item.
        threshold: whether the best name is accepted only if its score reaches a threshold fitted on the other folds.
    """
    import numpy as np

    from anaphora.analysis.tasks.gap import best_thresholds, strongest_names

    top, names, right = strongest_names(scores, gold)
    decisions = np.zeros(gold.shape)
    for fold in np.unique(folds):
        training, held_out = folds != fold, np.flatnonzero(folds == fold)
        if threshold:
            cuts, f1 = best_thresholds(top[training], right[training], int(gold[training].sum()))
        else:
            cuts, f1 = np.full(top.shape[1], -np.inf), right[training].mean(axis=0)
        best = int(f1.argmax())
        decisions[held_out] = names[held_out, :, best] * (top[held_out, best] >= cuts[best])[:, None]
    return decisions

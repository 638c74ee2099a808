"""A corpus answered by runs that were trained on another one, beside shortcuts fitted on the runs' data or its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anaphora.analysis.evidence.headline import Progress, no_progress
from anaphora.analysis.results.rows import table_row
from anaphora.analysis.scores.baselines.learned import LEARNED_FROM_FEW_CANDIDATES
from anaphora.analysis.scores.baselines.policies import Floats
from anaphora.analysis.scores.baselines.stored import shortcut_correctness
from anaphora.analysis.tasks.answered import (
    ItemAnswers,
    accuracy_table,
    check_factors,
    predict_for_run,
    require_pronoun_head,
)
from anaphora.analysis.tasks.folds import require_same_recipe
from anaphora.base.console import working
from anaphora.base.errors import UserError
from anaphora.base.locale.translation import N_, _
from anaphora.commands.cross_validate import print_answers
from anaphora.commands.shared import OWN_FOLDS_SUFFIX, TableFile, load_runs
from anaphora.data.corpora.division import fold_numbers
from anaphora.data.example import Example
from anaphora.data.store import load as load_corpus
from anaphora.report.terminal import print_phrase
from anaphora.runs.directory import Run
from anaphora.runs.items import corpus_of
from anaphora.settings.commands.analysis import Transfer
from anaphora.settings.data import TextCorpus


def transfer(settings: Transfer) -> list[dict[str, Any]]:
    """Answer, print the table, and keep it as CSV where a file is named.

    Raises:
        UserError: the runs differ in more than fold and seed, they answer no pronoun question, or they have seen
            all items.
    """
    table = TableFile.checked(settings.output)
    runs = load_runs(settings.runs, settings.trainer)
    for run in runs:
        require_pronoun_head(run)
    require_same_recipe(runs)
    if isinstance(settings.data, TextCorpus):
        raise UserError(
            f"data={settings.data.kind} has no pronoun questions; name other data, for instance data=knowref"
        )
    with working(_("reading the data")) as progress:
        examples = load_corpus(settings.data).examples(settings.split)
        corpora = {_training_split_key(run): corpus_of(run) for run in runs}
        training = [corpus.examples("train") for corpus in corpora.values()]
        # A run's own test split is as unseen as any: nothing was learned or chosen on it.
        splits = [corpus.examples(part) for corpus in corpora.values() for part in ("train", "dev")]
        seen = {example.text for split in splits for example in split}
        unseen = [example for example in examples if example.text not in seen]
        if not unseen:
            raise UserError(
                f"split ({settings.split}) of data={settings.data.kind} holds no item that the runs have not seen"
            )
        check_factors(unseen, settings.by, settings.contrast)
        items = answer_transfer(runs, training, unseen, settings.folds, settings.data.seed, progress)
    rows = [table_row(row) for row in accuracy_table(items, settings.by, settings.contrast)]
    source = runs[0].config.data.kind
    title = _("{data}, answered by {runs} runs on {source}; shares in %, 95 % over groups").format(
        data=settings.data.kind, runs=len(runs), source=source
    )
    print_answers(rows, title)
    if len(unseen) < len(examples):
        print_phrase(
            N_("left out: {items} items whose text is in data={data}"), items=len(examples) - len(unseen), data=source
        )
    table.write(rows)
    return rows


def answer_transfer(
    runs: Sequence[Run],
    training: Sequence[Sequence[Example]],
    examples: list[Example],
    folds: int,
    seed: int,
    progress: Progress = no_progress,
) -> ItemAnswers:
    """Every run's answers, and the correctness of shortcuts.

    Args:
        runs: each answers all items.
        training: the different training splits of the runs; shortcuts are fitted on each.
        examples: the items.
        folds: of `examples`, by group: a learned shortcut is also fitted on the others and evaluated on each.
        seed: of the folds.
        progress: is called with the name of each stage.
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
    """One row a fit; a single row where all fits are the same, as for a shortcut that needs no fit."""
    return fits[0] if all(np.array_equal(fit, fits[0], equal_nan=True) for fit in fits) else np.stack(fits)


def _training_split_key(run: Run) -> tuple[str, int]:
    """What the training splits of runs of one recipe differ in."""
    return run.config.data.kind, int(getattr(run.config.data, "fold", 0))

"""A corpus answered by runs that were trained on another one, beside shortcuts fitted on the runs' data or its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from anaphora.analysis.answered import Answered, answers_of, check_factors, refuse_silent, table
from anaphora.analysis.baselines import LEARNED_FROM_FEW_CANDIDATES, Floats, per_item
from anaphora.analysis.settings import Transfer
from anaphora.analysis.study import Progress, silent
from anaphora.checkpoint import Run, load, run_directories
from anaphora.cross_validation import console, refuse_unlike, shown
from anaphora.data.corpora.division import fold_numbers
from anaphora.data.example import Example
from anaphora.data.settings import Texts
from anaphora.data.store import load as load_corpus
from anaphora.errors import UserError
from anaphora.report.write import write_table

OWN_FOLDS = "_on_own_folds"
"""How the name of a shortcut ends that is fitted on other folds of the asked items."""


def transfer(asked: Transfer) -> list[dict[str, Any]]:
    """Answer, print the table, and keep it as CSV where a file is named.

    Raises:
        UserError: the runs differ in more than fold and seed, they answer no pronoun question, or there is no item
            that they have not seen.
    """
    runs = [load(directory, asked.trainer) for directory in run_directories(asked.runs)]
    for run in runs:
        refuse_silent(run)
    refuse_unlike(runs)
    if isinstance(asked.data, Texts):
        raise UserError(f"data={asked.data.kind} asks about no pronoun; name another, for instance data=knowref")
    with console.status("reading the data") as status:
        examples = load_corpus(asked.data).examples(asked.split)
        splits = {_division(run): load_corpus(run.config.data) for run in runs}
        training = [one.examples("train") for one in splits.values()]
        # A run's own test split is as unseen as any: nothing was learned or chosen on it.
        seen = {example.text for one in splits.values() for part in ("train", "dev") for example in one.examples(part)}
        unseen = [example for example in examples if example.text not in seen]
        if not unseen:
            raise UserError(
                f"split ({asked.split}) of data={asked.data.kind} holds no item that the runs have not seen"
            )
        found = answered(runs, training, unseen, asked.folds, asked.data.seed, status.update)
    check_factors(found, asked.by, asked.contrast)
    rows = table(found, asked.by, asked.contrast)
    source = runs[0].config.data.kind
    console.print(shown(rows, f"{asked.data.kind}, asked of {len(runs)} runs on {source}"))
    if len(unseen) < len(examples):
        console.print(f"left out: {len(examples) - len(unseen)} items whose text is in data={source}")
    if asked.output:
        write_table(Path(asked.output), rows)
        console.print(f"table {asked.output}", soft_wrap=True)
    return rows


def answered(
    runs: Sequence[Run],
    training: Sequence[Sequence[Example]],
    examples: list[Example],
    folds: int,
    seed: int,
    progress: Progress = silent,
) -> Answered:
    """Every run's answers, and how right shortcuts are.

    Args:
        runs: each is asked about all items.
        training: the different training splits of the runs; shortcuts are fitted on each.
        examples: what is asked.
        folds: of `examples`, by group: a learned shortcut is also fitted on the others and asked about each.
        seed: of the folds.
        progress: is told what is being done.
    """
    said = []
    for number, run in enumerate(runs, 1):
        progress(f"run {number} of {len(runs)}")
        said.append(answers_of(run, examples))
    progress("fitting the shortcuts")
    theirs = [per_item(one, examples) for one in training]
    everywhere = [name for name in theirs[0] if all(name in one for one in theirs)]
    shortcuts: dict[str, Floats] = {name: _apart([one[name] for one in theirs]) for name in everywhere}
    numbers = np.array(fold_numbers(examples, folds, seed))
    own: dict[str, Floats] = {}
    for fold in np.unique(numbers):
        places = np.flatnonzero(numbers == fold)
        others = [examples[place] for place in np.flatnonzero(numbers != fold)]
        for name, right in per_item(others, [examples[place] for place in places]).items():
            if name in LEARNED_FROM_FEW_CANDIDATES:
                own.setdefault(name, np.full(len(examples), np.nan))[places] = right
    return Answered(examples, np.stack(said), {**shortcuts, **{f"{name}{OWN_FOLDS}": own[name] for name in own}})


def _apart(fits: Sequence[Floats]) -> Floats:
    """One row a fit; one alone where all do the same, as what needs no fit does."""
    return fits[0] if all(np.array_equal(one, fits[0], equal_nan=True) for one in fits) else np.stack(fits)


def _division(run: Run) -> tuple[str, int]:
    """What tells the training splits of runs of one recipe apart."""
    return run.config.data.kind, int(getattr(run.config.data, "fold", 0))

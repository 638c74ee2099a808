"""The headline: a head chosen on the development split, measured once on another, beside what luck would give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis import baselines
from anaphora.analysis.capture import Look, look, seen_by
from anaphora.analysis.scores import Head, HeadScores, choose_head, score
from anaphora.analysis.summary import summarise
from anaphora.checkpoint import Run, training_record
from anaphora.data.batch import Encoded
from anaphora.data.example import Example, whole_blocks
from anaphora.model.settings import reads_candidates

UNTRAINED_SEED = 1_000_000
"""Untrained models begin here, so that none of them is the start of a run of a usual seed."""
UNTRAINED_DEVELOPMENT, UNTRAINED_MEASURED = 1_000, 3_000
"""Items, as whole blocks evenly spread, on which an untrained model chooses its head, and on which that is measured."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Measurement:
    """What a model's heads and answers are worth on one split, whatever the model.

    Attributes:
        split: the name of the split that is reported.
        head: chosen on the development split.
        development: every head's scores there.
        measured: every head's scores on the split that is reported.
        seen: the rows and answers behind `measured`.
        baselines: (N,) correctness of each policy that looks at no attention.
        untrained: (R, N) correctness of the head that each of R untrained models chose on the development split, NaN
            where it was not asked.
    """

    split: str
    head: Head
    development: HeadScores
    measured: HeadScores
    seen: Look
    baselines: dict[str, NDArray[np.float64]]
    untrained: NDArray[np.float32]

    @property
    def task_correct(self) -> NDArray[np.float64]:
        """(N,) whether the model's own answer is right, for the items that are measured."""
        return self.seen.correct[self.measured.kept]

    def metrics(self) -> dict[str, Any]:
        """What `metrics.json` holds."""
        found = summarise(self.measured, self.head, self.task_correct, self.baselines, self.untrained)
        return {
            "split": self.split,
            "head": {"layer": self.head.layer, "head": self.head.head, "chosen_on": "dev"},
            **found,
            "dropped": self.measured.dropped,
            "untrained_models": len(self.untrained),
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class Study(Measurement):
    """What a run's heads and answers are worth on one split."""

    run: Run

    def metrics(self) -> dict[str, Any]:
        """What `metrics.json` holds."""
        config, seconds = self.run.config, training_record(self.run.directory).get("train_seconds")
        compared = reads_candidates(config.task.readout)
        return {"seed": config.seed, **super().metrics(), "train_seconds": seconds, "reads_candidates": compared}


Progress = Callable[[str], None]


def silent(stage: str) -> None:
    """Tell nobody how far the study is."""


def study(
    run: Run,
    training: Sequence[Example] | None,
    development: Sequence[Example],
    measured: Sequence[Example],
    split: str,
    untrained: int,
    chosen: Head | None = None,
    progress: Progress = silent,
) -> Study:
    """Choose a head on the development items and measure it on others.

    Args:
        run: a trained run.
        training: what baselines may learn from; None for no baselines.
        development: where heads are chosen.
        measured: the items to report.
        split: the name of the split that `measured` is.
        untrained: how many models at their random start are the control.
        chosen: a head fixed beforehand instead.
        progress: is told what is going on.
    """
    progress("development split")
    dev_scores = score(seen_by(run, development).records)
    head = chosen or choose_head(dev_scores)
    progress(f"{split} split")
    seen = seen_by(run, measured)
    scores = score(seen.records)
    policies: dict[str, NDArray[np.float64]] = {}
    if training is not None:
        progress("baselines")
        policies = baselines.per_item(training, scores.examples)
    control = np.full((untrained, len(scores.examples)), np.nan, dtype=np.float32)
    asked = whole_blocks(scores.examples, UNTRAINED_MEASURED)
    places = {id(example): place for place, example in enumerate(scores.examples)}
    columns = [places[id(example)] for example in asked]
    # Every untrained model reads the same tokens: they are cut once.
    split_items = (whole_blocks(development, UNTRAINED_DEVELOPMENT), asked) if untrained else ()
    encoded = [Encoded(examples, run.tokenizer) for examples in split_items]
    for number in range(untrained):
        progress(f"untrained model {number + 1} of {untrained}")
        control[number, columns] = _untrained(run, UNTRAINED_SEED + number, *encoded)
    return Study(
        run=run,
        split=split,
        head=head,
        development=dev_scores,
        measured=scores,
        seen=seen,
        baselines=policies,
        untrained=control,
    )


def _untrained(run: Run, seed: int, development: Encoded, measured: Encoded) -> NDArray[np.float32]:
    resolver = run.untrained(seed)
    batching, readout = run.config.batching, run.config.task.readout
    head = choose_head(score(look(resolver, development, batching, readout).records))
    scores = score(look(resolver, measured, batching, readout).records)
    return scores.candidate_accuracy[:, head.layer, head.head]

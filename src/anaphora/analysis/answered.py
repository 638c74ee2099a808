"""The table of answers: runs and shortcuts on the same items, with paired intervals.

N items, S runs that answer all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.baselines import Floats
from anaphora.analysis.capture import answers, is_right
from anaphora.analysis.scores import twin_accuracy
from anaphora.analysis.statistics import cluster_interval
from anaphora.checkpoint import Run
from anaphora.data.batch import Encoded
from anaphora.data.example import Example
from anaphora.errors import UserError
from anaphora.model.settings import NoReadout, check_length

Answers = NDArray[np.int64]

MODEL = "model"
"""The row of the runs themselves."""

NONE_OF_THEM = "none_of_them"
"""The policy that never names a candidate."""


@dataclass(frozen=True)
class Answered:
    """Items with the answers of some runs and how right shortcuts are on them.

    Attributes:
        examples: N items.
        said: (S, N) the candidate that each run names, -1 for none of them.
        shortcuts: by name how right each is on each item, in [0, 1]; (N,), or (K, N) where it was fitted K times. NaN
            where it does not apply.
    """

    examples: list[Example]
    said: Answers
    shortcuts: Mapping[str, Floats]

    def right(self) -> Floats:
        """Whether each run is right on each item: (S, N)."""
        each = [[is_right(answer, one) for answer, one in zip(row, self.examples, strict=True)] for row in self.said]
        return np.array(each, dtype=np.float64).reshape(self.said.shape)

    def policies(self) -> Iterator[tuple[str, Floats, Floats]]:
        """Name, how right on each item, and how many of its decisions are right, of every policy: one row a run or fit.

        An item with M candidates asks for M decisions: is it this one? A shortcut that is left out does not apply to
        all items.
        """
        sizes = np.array([len(one.candidates) for one in self.examples])
        right = np.array([len(one.antecedents) for one in self.examples])
        correct = self.right()
        named = self.said >= 0
        # Naming a wrong candidate errs about it and about the antecedents; silence errs about the antecedents alone.
        hits = (named & (correct > 0)).astype(np.float64)
        yield MODEL, correct, sizes - right - named + 2 * hits
        for name, found in self.shortcuts.items():
            if not np.isnan(found).any():
                each = np.atleast_2d(found)
                yield name, each, sizes - right - 1 + 2 * each
        if not right.all():
            yield NONE_OF_THEM, (right == 0).astype(np.float64)[None], (sizes - right).astype(np.float64)[None]


def answers_of(run: Run, examples: Sequence[Example]) -> Answers:
    """The candidate that a run names for each example, (N,), -1 for none of them.

    Raises:
        UserError: a text is too long for the run's model.
    """
    data = Encoded(examples, run.tokenizer)
    check_length(run.config.model, data.longest())
    return answers(run.resolver, data, run.config.batching, run.config.task.readout)


def refuse_silent(run: Run) -> None:
    """Refuse a run that answers no pronoun question.

    Raises:
        UserError: it has no read-out for one.
    """
    readout = run.config.task.readout
    if isinstance(readout, NoReadout) or readout.kind == "label":
        raise UserError(f"runs ({run.directory}) answers no pronoun question (task.readout={readout.kind})")


def check_factors(found: Answered, by: Sequence[str], contrast: str | None = None) -> None:
    """Refuse factors that the items do not have.

    Raises:
        UserError: naming the factor and what is allowed.
    """
    known = sorted({name for example in found.examples for name in example.factors})
    for setting, factor in [("by", name) for each in by for name in each.split("+")] + [("contrast", contrast)]:
        if factor is not None and factor not in known:
            raise UserError(f"{setting} ({factor!r}) must be taken from the factors of these data: {', '.join(known)}")
    if contrast is not None:
        values = sorted({example.factors.get(contrast, "") for example in found.examples})
        if len(values) != 2:
            raise UserError(f"contrast ({contrast!r}) must be a factor of two values; here are {', '.join(values)}")


def table(found: Answered, by: Sequence[str] = (), contrast: str | None = None) -> list[dict[str, Any]]:
    """A row for each policy of all items, and of the items of each value of the factors `by`; "a+b" crosses two.

    Returns:
        "factor", "value", "policy", "items", "accuracy" with "low" and "high", over several runs or fits "lowest" and
        "highest" of them, "twin_accuracy" (None where no item has a twin), "decision_accuracy" with its ends: of all
        candidates, is it this one?, "silent": how often the answer is "none of them", and "model_minus" with its ends:
        how much righter the model is on the same items. With a `contrast` of two values, "contrast" with its ends: how
        much righter the policy is on the first of them (by the alphabet) than on the second; None where only one is
        there.
        Intervals of 95 % draw whole groups; the runs stay as they are. A shortcut is left out where it does not apply
        to all items.
    """
    cells = {("", ""): np.arange(len(found.examples))}
    for factor in by:
        values = np.array([_value(example, factor) for example in found.examples])
        cells |= {(factor, value): np.flatnonzero(values == value) for value in sorted(set(values.tolist()))}
    policies = list(found.policies())
    model = policies[0][1].mean(axis=0)
    rows = []
    for (factor, value), places in cells.items():
        examples = [found.examples[place] for place in places]
        labels = [example.group or f"alone {place}" for place, example in zip(places, examples, strict=True)]
        for name, right, decided in policies:
            each, mean = right[:, places], right[:, places].mean(axis=0)
            twins = float(np.mean([twin_accuracy(one, examples) for one in each]))
            row: dict[str, Any] = {"factor": factor, "value": value, "policy": name, "items": len(places)}
            row |= _ends("accuracy", mean, labels, ("low", "high"))
            several = len(each) > 1
            row["lowest"] = float(each.mean(axis=1).min()) if several else None
            row["highest"] = float(each.mean(axis=1).max()) if several else None
            row["twin_accuracy"] = None if np.isnan(twins) else twins
            row |= _decisions(decided[:, places].mean(axis=0), examples, labels)
            row["silent"] = float((found.said[:, places] < 0).mean() if name == MODEL else name == NONE_OF_THEM)
            row |= _ends("model_minus", model[places] - mean, labels)
            if contrast is not None:
                row |= _contrast(mean, examples, labels, contrast)
            rows.append(row)
    return rows


def _value(example: Example, factor: str) -> str:
    return ", ".join(example.factors.get(name, "") for name in factor.split("+"))


def _ends(name: str, values: Floats, labels: Sequence[str], ends: tuple[str, str] | None = None) -> dict[str, Any]:
    low, high = cluster_interval(values, labels) or (None, None)
    below, above = ends or (f"{name}_low", f"{name}_high")
    return {name: float(values.mean()), below: low, above: high}


def _decisions(decided: Floats, examples: Sequence[Example], labels: Sequence[str]) -> dict[str, Any]:
    sizes = np.array([len(example.candidates) for example in examples])
    return _ends("decision_accuracy", np.repeat(decided / sizes, sizes), np.repeat(labels, sizes).tolist())


def _contrast(right: Floats, examples: Sequence[Example], labels: Sequence[str], factor: str) -> dict[str, Any]:
    values = np.array([example.factors.get(factor, "") for example in examples])
    kinds = sorted(set(values.tolist()))
    if len(kinds) < 2:
        return {"contrast": None, "contrast_low": None, "contrast_high": None}
    # The mean of these is the first value's mean less the second's; a group mostly holds as many of each.
    weights = sum(
        sign * (values == kind) * len(values) / (values == kind).sum()
        for sign, kind in zip((1, -1), kinds, strict=True)
    )
    return _ends("contrast", right * weights, labels)

"""Accuracy of shortcut baselines by item, kind of cue and factor; N items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from anaphora.analysis.scores.baselines.learned import learned_answers
from anaphora.analysis.scores.baselines.policies import POLICIES, Floats, focal_correctness, random_choice
from anaphora.analysis.scores.cells import clusters
from anaphora.analysis.scores.statistics import cluster_interval
from anaphora.data.example import Example

MAX_FACTOR_VALUES = 20


@dataclass(frozen=True, kw_only=True)
class ShortcutAccuracy:
    """Accuracy of one shortcut on the test items of one language and kind of cue."""

    name: str
    language: str
    kind: str  # "set" or "role"; "" for examples without a kind
    items: int
    accuracy: float
    low: float | None  # end of the 95 % interval over templates; None if they do not determine one
    high: float | None


def shortcut_correctness(train: Sequence[Example], test: Sequence[Example]) -> dict[str, Floats]:
    """Return the correctness of each shortcut on each test item, among the focal candidates: name -> (N,).

    Learned shortcuts are fitted on the training items of the same language and kind that have an antecedent. Test items
    without an antecedent count as wrong. NaN if a shortcut does not apply: learned shortcuts need training items,
    `bag_by_place` needs items without a kind of cue, and `words` and `words_and_pairs` need training items with at most
    10 candidates, too.
    """
    results = unfitted_correctness(test)
    for cell, items in _cells(test).items():
        known = [example for example in train if _cell(example) == cell and example.antecedents]
        for name, fit in learned_answers(cell[1], known).items():
            right = results.setdefault(name, np.full(len(test), np.nan))
            if known:
                right[items] = focal_correctness(fit(known), [test[item] for item in items])
    return results


def unfitted_correctness(test: Sequence[Example]) -> dict[str, Floats]:
    """Return the correctness of the shortcuts that are not fitted, among the focal candidates: name -> (N,)."""
    return {name: focal_correctness(policy, test) for name, policy in {"chance": random_choice, **POLICIES}.items()}


def accuracy_by_kind(results: Mapping[str, Floats], test: Sequence[Example]) -> list[ShortcutAccuracy]:
    """Return the accuracy of each shortcut by language and kind; cells to which it does not apply are left out.

    Intervals resample templates, or groups or items without templates.
    """
    labels = clusters(test)
    cells = _cells(test)
    rows = []
    for name, right in results.items():
        for (language, kind), items in cells.items():
            if np.isnan(right[items]).any():
                continue
            ends = cluster_interval(right[items], [labels[item] for item in items], bounds=(0, 1))
            low, high = ends or (None, None)
            rows.append(
                ShortcutAccuracy(
                    name=name,
                    language=language,
                    kind=kind,
                    items=len(items),
                    accuracy=float(right[items].mean()),
                    low=low,
                    high=high,
                )
            )
    return sorted(rows, key=lambda row: (row.language, row.kind))


def accuracy_by_factor(
    results: Mapping[str, Floats], test: Sequence[Example]
) -> list[dict[str, str | int | float | None]]:
    """Return a row for every value of each factor of natural text, with the accuracy of each shortcut.

    The columns are "factor", "value", "items" and the names of the shortcuts; None if a shortcut does not apply.
    Factors with one value, or with more than `MAX_FACTOR_VALUES`, which identify single items, are left out. So are
    items with a kind of cue, for which `accuracy_by_kind` exists.
    """
    items: dict[str, dict[str, list[int]]] = {}
    for item, example in enumerate(test):
        for factor, value in () if "kind" in example.factors else example.factors.items():
            items.setdefault(factor, {}).setdefault(value, []).append(item)
    return [
        {
            "factor": factor,
            "value": value,
            "items": len(chosen),
            **{name: _mean(right[chosen]) for name, right in results.items()},
        }
        for factor, values in items.items()
        if 1 < len(values) <= MAX_FACTOR_VALUES
        for value, chosen in sorted(values.items())
    ]


def _mean(right: Floats) -> float | None:
    return None if np.isnan(right).any() else float(right.mean())


def _cell(example: Example) -> tuple[str, str]:
    return example.language, example.factors.get("kind", "")


def _cells(examples: Sequence[Example]) -> dict[tuple[str, str], list[int]]:
    """Return the indices of the examples by language and kind."""
    cells: dict[tuple[str, str], list[int]] = {}
    for item, example in enumerate(examples):
        cells.setdefault(_cell(example), []).append(item)
    return cells

"""Accuracy of one head by factors: properties of the items, such as cue type, gender or distance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.results.scores import AccuracyCell, Head
from anaphora.analysis.scores.cells import bootstrap_interval, clusters, rounded
from anaphora.analysis.scores.heads import HeadScores, is_main
from anaphora.data.corpora.division import group_key
from anaphora.data.example import Example
from anaphora.data.grouping import codes_of, indices_by

FACTORS = ("type", "gender", "number", "distance", "candidates", "distractor", "template")
DISTANCE_BINS = (0, 3, 6, 9, 12)
"""Lower ends of the distance bins, in words between antecedent and pronoun; the last bin has no upper end."""


@dataclass(frozen=True, kw_only=True)
class FactorValue(AccuracyCell):
    """Accuracies of a head and of the model on the items with one value of a factor (property of items)."""

    value: str
    items: int
    antecedent_mass: float | None


def factors(
    scores: HeadScores, head: Head, task_correct: NDArray[np.floating]
) -> dict[str, dict[str, tuple[FactorValue, ...]]]:
    """Return the accuracy of a head and of the model for each value of each factor (property of items) in `FACTORS`.

    Args:
        scores: N scored items, of which only those of the main results (`Example.is_main`) count.
        task_correct: correctness of the model's answer to each item, (N,); NaN if the model gives no answers.

    Returns:
        {factor: {language: results}} with one result per value, sorted by value; items without the factor are left out.
        Intervals are bootstrapped over templates (`clusters`); for the factor "template", over groups (`group_key`).

    Raises:
        ValueError: `task_correct` has another shape.
    """
    if task_correct.shape != (len(scores.examples),):
        raise ValueError(f"task_correct: the shape is {task_correct.shape}; expected ({len(scores.examples)},)")
    main = np.flatnonzero(is_main(scores.examples))
    main_scores, task = scores.select(main), task_correct[main].astype(np.float64)
    examples = main_scores.examples
    hits, mass = main_scores.at(head, "candidate_accuracy"), main_scores.at(head, "antecedent_mass")
    templates = clusters(examples)
    groups = np.array(codes_of(map(group_key, examples)), dtype=np.int64)

    def row(value: str, items: list[int], labels: NDArray[np.int64]) -> FactorValue:
        return FactorValue(
            value=value,
            items=len(items),
            task_accuracy=rounded(task[items].mean()),
            candidate_accuracy=rounded(hits[items].mean()),
            interval=bootstrap_interval(hits[items], labels[items], (0, 1)),
            antecedent_mass=rounded(mass[items].mean()),
            chance=rounded(main_scores.chance[items].mean()),
        )

    rows: dict[str, dict[str, tuple[FactorValue, ...]]] = {}
    for name in FACTORS:
        labels = groups if name == "template" else templates
        values = [_value(example, name) for example in examples]
        items = indices_by(
            None if value is None else (example.language, value)
            for example, value in zip(examples, values, strict=True)
        )
        languages: dict[str, list[FactorValue]] = {}
        for language, value in sorted(items, key=lambda cell: (cell[0], value_order(cell[1]))):
            languages.setdefault(language, []).append(row(value, items[language, value], labels))
        rows[name] = {language: tuple(listed) for language, listed in languages.items()}
    return rows


def value_order(value: str) -> tuple[float, bool, list[str]]:
    """Return a sorting key for a value of a factor.

    Numbers and bins such as "3-5" come first, by size, then words. Numbers in names are sorted by size, too:
    "en/gender/9" precedes "en/gender/10".
    """
    head, _, more = value.split("-")[0].partition(" ")
    number = float(head) if head.isdecimal() else float("inf")
    return number, bool(more), [f"{int(part):09}" if part.isdecimal() else part for part in value.split("/")]


def _value(example: Example, factor: str) -> str | None:
    """Return an example's value of a factor; None if the example has no value of this factor."""
    match factor:
        case "candidates":
            return str(len(example.candidates))
        case "distance" if example.distance is not None:
            number = int(np.searchsorted(DISTANCE_BINS, example.distance, side="right")) - 1
            begin, *further = DISTANCE_BINS[number : number + 2]
            return f"{begin}-{further[0] - 1}" if further else f"{begin} or more"
        case "distance":
            return None
    return example.factors.get(factor) or None

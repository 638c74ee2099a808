"""Comparison of runs: the spread of each measure, and the similarity of their rows on the same items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.evidence.evidence import Evidence
from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.maps.words import word_weights
from anaphora.analysis.results.rows import Entry
from anaphora.analysis.results.scores import ALL, KINDS, Cell, Head, Spread
from anaphora.analysis.results.typed_json import Interval
from anaphora.analysis.scores.cells import bootstrap_interval, clusters, rounded
from anaphora.analysis.scores.heads import is_main
from anaphora.analysis.scores.statistics import median_and_spread
from anaphora.base.errors import UserError

if TYPE_CHECKING:
    from anaphora.analysis.evidence.headline import Measurement


MEASURES = ("task_accuracy", "candidate_accuracy", "quad_accuracy", "antecedent_mass", "random_init", "chance")
"""What is compared over runs; "random_init" is the mean of untrained models."""


@dataclass(frozen=True, kw_only=True)
class GroupSpread:
    """The spread of each of `MEASURES` over runs, for a language and kind of cue; None unless all have the measure.

    Attributes:
        language, kind: of the items.
        runs: how many have such items.
        items: how many the runs have, fewest and most.
        same_items: whether all runs were scored on the same items of the language; None if the scores do not say so.
        measures: the spreads by name.
    """

    language: str
    kind: str
    runs: int
    items: tuple[int, int]
    same_items: bool | None
    measures: dict[str, Spread | None]

    def to_row(self) -> dict[str, Entry]:
        """Return a row of a CSV file: each measure's median, and its lowest and highest."""
        row: dict[str, Entry] = {"language": self.language, "kind": self.kind, "runs": self.runs}
        row |= {"fewest_items": self.items[0], "most_items": self.items[1], "same_items": self.same_items}
        for name, spread in self.measures.items():
            row[name] = spread.median if spread else None
            row[f"{name}_lowest"] = spread.lowest if spread else None
            row[f"{name}_highest"] = spread.highest if spread else None
        return row


@dataclass(frozen=True, kw_only=True)
class RowDivergence:
    """How far the pronoun's rows of two runs' chosen heads are apart in one language: 0 the same, 1 no word in common.

    Attributes:
        run, other: the names of the two.
        language: of the items.
        items: how many.
        divergence: the mean in bits; None if a chosen head is ablated.
        interval: over templates.
    """

    run: str
    other: str
    language: str
    items: int
    divergence: float | None
    interval: Interval | None


def compare_runs(runs: Sequence[Evidence]) -> list[GroupSpread]:
    """Return the spread of every measure over the runs, for each language and kind of cue of the first of them."""
    spreads = []
    for language in runs[0].languages:
        for kind in (ALL, *KINDS):
            cells = [cell for run in runs if (cell := run.scores.get(language, {}).get(kind)) is not None]
            if cells:
                measures = {name: _spread([_measure(cell, name) for cell in cells]) for name in MEASURES}
                items = (min(cell.items for cell in cells), max(cell.items for cell in cells))
                spreads.append(
                    GroupSpread(
                        language=language,
                        kind=kind,
                        runs=len(cells),
                        items=items,
                        same_items=_same_items(runs, language, items),
                        measures=measures,
                    )
                )
    return spreads


def _same_items(runs: Sequence[Evidence], language: str, items: tuple[int, int]) -> bool | None:
    """Check whether all runs with a language were scored on the same items of it; None if a file does not record it."""
    if items[0] < items[1]:
        return False
    digests = {run.languages[language].items_digest for run in runs if language in run.languages}
    return None if None in digests else len(digests) == 1


def _measure(cell: Cell, name: str) -> float | None:
    value: float | None = cell.baselines.get(name) if name == "random_init" else getattr(cell, name)
    return value


def _spread(values: Sequence[float | None]) -> Spread | None:
    """Return the spread over all runs; None unless every run has the measure."""
    known = [float(value) for value in values if value is not None]
    return median_and_spread(known) if len(known) == len(values) else None


def divergences(runs: Mapping[str, Measurement]) -> list[RowDivergence]:
    """Compute the divergence between the pronoun rows of every two runs' chosen heads, by language, on main items.

    Args:
        runs: by name, two or more that were measured on the same items.

    Raises:
        UserError: the runs differ in items, or cut a sentence into different words.
    """
    names, measurements = list(runs), list(runs.values())
    counts = [len(each.capture.records) for each in measurements]
    if len(set(counts)) > 1:
        raise UserError(f"runs: they have {', '.join(map(str, counts))} items; expected the same")
    scored = set.intersection(*({int(number) for number in each.measured.kept} for each in measurements))
    examples = [record.example for record in measurements[0].capture.records]
    main = [number for number in sorted(scored) if is_main([examples[number]])[0]]
    records = [[each.capture.records[number] for number in main] for each in measurements]
    by_pair = row_divergence(records, [each.head for each in measurements])
    labels = clusters([examples[number] for number in main])
    rows = []
    for pair, (run, other) in enumerate(combinations(names, 2)):
        for language in sorted({examples[number].language for number in main}):
            items = [item for item, number in enumerate(main) if examples[number].language == language]
            values = by_pair[pair, items]
            ends = bootstrap_interval(values, [labels[item] for item in items])
            rows.append(
                RowDivergence(
                    run=run,
                    other=other,
                    language=language,
                    items=len(items),
                    divergence=rounded(values.mean()),
                    interval=Interval(*ends) if ends else None,
                )
            )
    return rows


def row_divergence(runs: Sequence[Sequence[AttentionRecord]], heads: Sequence[Head]) -> NDArray[np.float64]:
    """Return the Jensen-Shannon divergence between the word rows of every two runs' chosen heads, in bits (Lin 1991).

    Heads are not aligned across seeds: each run enters with the head that its own development split chose.

    Args:
        runs: R >= 2 runs' records of the same N items in the same order.
        heads: the R chosen heads.

    Returns:
        (P, N) for the P = R (R - 1) / 2 pairs in the order of `itertools.combinations`; 0 where two rows are the same,
        1 where they share no word; NaN where a head is ablated.

    Raises:
        UserError: the runs are fewer than two, differ in items, or cut a sentence into different words.
    """
    from scipy.spatial.distance import jensenshannon

    if len(runs) < 2 or len(heads) != len(runs):
        raise UserError(f"runs: there are {len(runs)} with {len(heads)} heads; expected two or more, a head for each")
    if len({len(records) for records in runs}) != 1:
        raise UserError(f"runs: they have {', '.join(str(len(records)) for records in runs)} items; expected the same")
    pairs = list(combinations(range(len(runs)), 2))
    divergence = np.empty((len(pairs), len(runs[0])))
    for item, records in enumerate(zip(*runs, strict=True)):
        rows = [word_weights(record) for record in records]
        if any(
            (record.example.text, row.spans) != (records[0].example.text, rows[0].spans)
            for record, row in zip(records, rows, strict=True)
        ):
            raise UserError(f"item {item}: the runs differ in its text or its words; expected runs on the same data")
        weights = [row.weights[head.layer, head.head] for row, head in zip(rows, heads, strict=True)]
        for pair, (run, other) in enumerate(pairs):
            # scipy gives the distance, the root of the divergence.
            divergence[pair, item] = jensenshannon(weights[run], weights[other], base=2) ** 2
    return divergence

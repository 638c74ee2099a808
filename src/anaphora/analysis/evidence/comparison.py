"""Comparison of runs: the spread of each measure, and the divergence of the runs' attention rows on the same items."""

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
from anaphora.analysis.results.scores import ALL, KINDS, Head, Spread
from anaphora.analysis.results.typed_json import Entry, Interval
from anaphora.analysis.scores.cells import bootstrap_interval, clusters, rounded
from anaphora.analysis.scores.statistics import median_and_spread
from anaphora.base.errors import UserError

if TYPE_CHECKING:
    from anaphora.analysis.evidence.headline import Measurement


MEASURES = ("task_accuracy", "candidate_accuracy", "quad_accuracy", "antecedent_mass", "random_init", "chance")
"""Measures that are compared over runs; "random_init" is the mean candidate accuracy of untrained models."""


@dataclass(frozen=True, kw_only=True)
class GroupSpread:
    """Spread of each of `MEASURES` over runs, for the items of one language and cue category (`kind`, or "all")."""

    language: str
    kind: str
    runs: int  # number of runs with such items
    items: tuple[int, int]  # smallest and largest number of items in a run
    same_items: bool | None  # whether all runs were scored on the same items; None if one has no `items_digest`
    measures: dict[str, Spread | None]  # spread by name of the measure; None if a run lacks the measure

    def to_row(self) -> dict[str, Entry]:
        """Return the fields as a row of a table, with the median, lowest and highest value of each measure."""
        row: dict[str, Entry] = {"language": self.language, "kind": self.kind, "runs": self.runs}
        row |= {"fewest_items": self.items[0], "most_items": self.items[1], "same_items": self.same_items}
        for name, spread in self.measures.items():
            row[name] = spread.median if spread else None
            row[f"{name}_lowest"] = spread.lowest if spread else None
            row[f"{name}_highest"] = spread.highest if spread else None
        return row


@dataclass(frozen=True, kw_only=True)
class RowDivergence:
    """Divergence between the pronoun's attention rows in the chosen heads of two runs, for one language."""

    run: str
    other: str
    language: str
    items: int
    divergence: float | None  # mean Jensen-Shannon divergence in bits; None if a chosen head is ablated
    interval: Interval | None  # bootstrap interval over templates


def compare_runs(runs: Sequence[Evidence]) -> list[GroupSpread]:
    """Return the spread of every measure over the runs, by language and cue category (`kind`, or "all")."""
    spreads = []
    for language in dict.fromkeys(language for run in runs for language in run.languages):
        for kind in (ALL, *KINDS):
            cells = [cell for run in runs if (cell := run.scores.get(language, {}).get(kind)) is not None]
            if cells:
                # `random_init` is a baseline, all other measures are fields of a cell.
                values = [vars(cell) | {"random_init": cell.baselines.get("random_init")} for cell in cells]
                measures = {name: _spread([of_run[name] for of_run in values]) for name in MEASURES}
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
    """Return whether the runs were scored on the same items of a language; None if a run has no hash of the items."""
    if items[0] < items[1]:
        return False
    digests = {run.languages[language].items_digest for run in runs if language in run.languages}
    return None if None in digests else len(digests) == 1


def _spread(values: Sequence[float | None]) -> Spread | None:
    known = [float(value) for value in values if value is not None]
    return median_and_spread(known) if len(known) == len(values) else None


def divergences(runs: Mapping[str, Measurement]) -> list[RowDivergence]:
    """Return the divergence of the pronoun's attention rows in the chosen heads, for each pair of runs and language.

    Only items of the main results (`Example.is_main`) that all runs scored count.

    Raises:
        UserError: the runs differ in items or in a sentence's words.
    """
    names, measurements = list(runs), list(runs.values())
    counts = [len(each.capture.records) for each in measurements]
    if len(set(counts)) > 1:
        raise UserError(f"runs: they have {', '.join(map(str, counts))} items; expected the same")
    scored = set.intersection(*({int(number) for number in each.measured.kept} for each in measurements))
    examples = [record.example for record in measurements[0].capture.records]
    main = [number for number in sorted(scored) if examples[number].is_main]
    records = [[each.capture.records[number] for number in main] for each in measurements]
    by_pair = row_divergence(records, [each.head for each in measurements])
    labels = clusters([examples[number] for number in main])
    rows = []
    for pair, (run, other) in enumerate(combinations(names, 2)):
        for language in sorted({examples[number].language for number in main}):
            items = [item for item, number in enumerate(main) if examples[number].language == language]
            values = by_pair[pair, items]
            rows.append(
                RowDivergence(
                    run=run,
                    other=other,
                    language=language,
                    items=len(items),
                    divergence=rounded(values.mean()),
                    interval=bootstrap_interval(values, labels[items], (0, 1)),
                )
            )
    return rows


def row_divergence(runs: Sequence[Sequence[AttentionRecord]], heads: Sequence[Head]) -> NDArray[np.float64]:
    """Return the Jensen-Shannon divergence (Lin 1991) of the pronoun's attention rows over words, by pair of runs.

    Each run's own chosen head is compared, since the same index stands for unrelated heads in runs with other seeds.

    Args:
        runs: records of R >= 2 runs, each for the same N items in the same order.
        heads: the chosen head of each run.

    Returns:
        (P, N) for the P = R (R - 1) / 2 pairs in the order of `itertools.combinations`, in bits: 0 for equal rows, 1 if
        no word has weight in both rows, NaN if a head is ablated.

    Raises:
        UserError: there are fewer than two runs, or they differ in items or in a sentence's words.
    """
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
            divergence[pair, item] = _jensen_shannon(weights[run], weights[other])
    return divergence


def _jensen_shannon(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """Return the Jensen-Shannon divergence of two attention rows in bits; NaN if all weights of a row are 0.

    `scipy.spatial.distance.jensenshannon` is not used: it returns NaN for half of all pairs of rows that differ only by
    rounding, because it takes the root of a sum that is then slightly below 0.
    """
    from scipy.special import rel_entr

    with np.errstate(invalid="ignore"):
        shares = [row.astype(np.float64) / row.sum(dtype=np.float64) for row in (one, other)]
    middle = (shares[0] + shares[1]) / 2
    return float(np.maximum(sum(rel_entr(share, middle).sum() for share in shares) / (2 * np.log(2)), 0))

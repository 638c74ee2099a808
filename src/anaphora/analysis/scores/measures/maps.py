"""Candidate accuracy of each kind of map, at the head or layer chosen for it on development items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from anaphora.analysis.results.scores import Groups, Head, HeadPosition
from anaphora.analysis.results.typed_json import OTHER_KEYS, Interval
from anaphora.analysis.scores.cells import bootstrap_interval, by_language_and_kind, cells, clusters, rounded
from anaphora.analysis.scores.heads import choose_head, score_records

if TYPE_CHECKING:
    from anaphora.analysis.maps.kinds import MapRows


@dataclass(frozen=True, kw_only=True)
class MapCell:
    """Scores of one kind of map at its chosen head or layer, with the 95 % interval of the candidate accuracy."""

    candidate_accuracy: float | None
    antecedent_mass: float | None
    interval: Interval | None


@dataclass(frozen=True, kw_only=True)
class MapScores:
    """Scores of one kind of map.

    Attributes:
        granularity: "head", "layer" or "model": the unit that has a row.
        head: the chosen head or layer; None for a map of the model.
        items: number of scored items.
        skipped: number of items left out (`MapRows.skipped`).
    """

    granularity: str
    head: HeadPosition | None
    items: int
    skipped: int
    languages: Groups[MapCell] = field(default_factory=dict, metadata=OTHER_KEYS)


def map_scores(development: Mapping[str, MapRows], measured: Mapping[str, MapRows], head: Head) -> dict[str, MapScores]:
    """Return the scores of each map, at the head or layer chosen for it on development items.

    A map without records on the development items or on the items to report is left out.

    Args:
        development: rows of each map on development items.
        measured: rows of each map on the items to report.
        head: head for the raw weights, chosen on the whole development split.

    Raises:
        UserError: no main development item of a map can be scored.
    """
    by_map: dict[str, MapScores] = {}
    for name, rows in measured.items():
        if not rows.records or not development[name].records:
            continue
        unit = head if name == "raw" else choose_head(score_records(development[name].records))
        scores = score_records(rows.records)
        where = {
            "head": HeadPosition(layer=unit.layer, head=unit.head),
            "layer": HeadPosition(layer=unit.layer),
            "model": None,
        }
        right, mass = (
            values[:, unit.layer, unit.head].astype(np.float64)
            for values in (scores.candidate_accuracy, scores.antecedent_mass)
        )
        labels = clusters(scores.examples)
        by_map[name] = MapScores(
            granularity=rows.granularity,
            head=where[rows.granularity],
            items=len(scores.examples),
            skipped=rows.skipped,
            languages=by_language_and_kind(
                (
                    language,
                    kind,
                    MapCell(
                        candidate_accuracy=rounded(right[items].mean()),
                        antecedent_mass=rounded(mass[items].mean()),
                        interval=bootstrap_interval(right[items], labels[items], (0, 1)),
                    ),
                )
                for language, kind, items in cells(scores.examples)
            ),
        )
    return by_map

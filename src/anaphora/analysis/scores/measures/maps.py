"""Candidate accuracy of each kind of attention map in the head or layer that is chosen for it on development items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.results.scores import Groups, Head, HeadPosition
from anaphora.analysis.results.typed_json import OTHER_KEYS, Interval
from anaphora.analysis.scores.cells import bootstrap_interval, clusters, each_cell, rounded
from anaphora.analysis.scores.heads import HeadScores, choose_head, score_records

if TYPE_CHECKING:
    from anaphora.analysis.maps.kinds import MapRows


@dataclass(frozen=True, kw_only=True)
class MapCell:
    """Scores of one kind of attention map in the chosen head or layer, with the 95 % interval of the accuracy."""

    candidate_accuracy: float | None
    antecedent_mass: float | None
    interval: Interval | None


@dataclass(frozen=True, kw_only=True)
class MapScores:
    """Scores of one kind of attention map, such as raw weights or rollout.

    Attributes:
        granularity: "head", "layer" or "model": whether there is one map per head, per layer or per model.
        head: the chosen head or layer; None if there is one map per model.
        skipped: number of items for which this kind of map was not computed (`MapRows.skipped`).
    """

    granularity: str
    head: HeadPosition | None
    items: int
    skipped: int
    languages: Groups[MapCell] = field(default_factory=dict, metadata=OTHER_KEYS)


def map_scores(development: Mapping[str, MapRows], measured: Mapping[str, MapRows], head: Head) -> dict[str, MapScores]:
    """Return the scores of each kind of attention map, by name, in the head or layer that is best for this kind.

    The head or layer is chosen on the development items (`choose_head`), except for raw weights, which are scored in
    `head`. A kind of map without records for `development` or for `measured` is left out.

    Raises:
        UserError: for some kind of map, no development item of the main results (`Example.is_main`) can be scored.
    """
    by_map: dict[str, MapScores] = {}
    for name, rows in measured.items():
        if not rows.records or not development[name].records:
            continue
        unit = head if name == "raw" else choose_head(score_records(development[name].records))
        scores = score_records(rows.records)
        position = HeadPosition(layer=unit.layer, head=unit.head if rows.granularity == "head" else None)
        by_map[name] = MapScores(
            granularity=rows.granularity,
            head=None if rows.granularity == "model" else position,
            items=len(scores.examples),
            skipped=rows.skipped,
            languages=each_cell(scores.examples, partial(_map_cell, scores, unit, clusters(scores.examples))),
        )
    return by_map


def _map_cell(scores: HeadScores, unit: Head, labels: NDArray[np.int64], items: NDArray[np.bool_]) -> MapCell:
    right, mass = scores.at(unit, "candidate_accuracy")[items], scores.at(unit, "antecedent_mass")[items]
    return MapCell(
        candidate_accuracy=rounded(right.mean()),
        antecedent_mass=rounded(mass.mean()),
        interval=bootstrap_interval(right, labels[items], (0, 1)),
    )

"""Results of the replication as JSON values, table, figure and conclusion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.table import Table

from anaphora.analysis.scores.statistics import cluster_interval
from anaphora.report.numbers import format_number, format_signed
from experiments.abnar_zuidema.blank_out import MAPS, TOKEN_SETS, Floats
from experiments.abnar_zuidema.figure import CorrelationPoint, layer_correlation_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER_CORRELATIONS = {
    "raw": ((0.69, 0.27), (0.10, 0.43), (-0.11, 0.49), (-0.09, 0.52), (0.20, 0.45), (0.29, 0.39)),
    "rollout": ((0.32, 0.26), (0.38, 0.27), (0.51, 0.26), (0.62, 0.26), (0.70, 0.25), (0.71, 0.24)),
    "flow": ((0.32, 0.26), (0.44, 0.29), (0.70, 0.25), (0.70, 0.22), (0.71, 0.22), (0.70, 0.22)),
}
"""Abnar and Zuidema 2020, table 1: mean and standard deviation over 2,000 test sentences, layers 1 to 6."""


@dataclass(frozen=True)
class SeedResult:
    """Measurements of one model.

    Attributes:
        seed: seed of the run.
        accuracy: share of test sentences with a correctly predicted number.
        accuracy_with_attractors: the same for sentences with attractors; None if there are none.
        subject_first: share of sentences in which the subject noun has the largest blank-out importance of all words.
        correlations: result of `rank_correlations`.
    """

    seed: int
    accuracy: float
    accuracy_with_attractors: float | None
    subject_first: float
    correlations: Mapping[tuple[str, str], Floats]


def build_metrics(
    results: Sequence[SeedResult], templates: Sequence[str], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return all results as JSON values, rounded to six decimals.

    Means and standard deviations are over items and seeds. For the intervals, the bootstrap resamples templates, with
    each item's mean over the seeds; the variation between seeds is in `seeds` only.
    """
    stacked = {key: np.stack([result.correlations[key] for result in results]) for key in results[0].correlations}
    tables = {
        which: {
            name: [
                _cell_statistics(stacked[which, name][:, :, layer], templates, (-1, 1))
                for layer in range(stacked[which, name].shape[2])
            ]
            for name in MAPS
        }
        for which in TOKEN_SETS
    }
    over_raw = {
        name: _cell_statistics(stacked["all", name][:, :, -1] - stacked["all", "raw"][:, :, -1], templates, (-2, 2))
        for name in MAPS
        if name != "raw"
    }
    return {
        "source": "Abnar and Zuidema 2020, table 1",
        "settings": dict(settings),
        "items": len(templates),
        "models": [
            {
                "seed": result.seed,
                "accuracy": _rounded(result.accuracy),
                "accuracy_with_attractors": _rounded(result.accuracy_with_attractors),
                "subject_first": _rounded(result.subject_first),
            }
            for result in results
        ],
        "spearman": tables,
        "last_layer_over_raw": over_raw,
        "sentence": _conclusion({name: tables["all"][name][-1] for name in MAPS}, over_raw),
    }


def _cell_statistics(values: Floats, templates: Sequence[str], bounds: tuple[float, float]) -> dict[str, Any]:
    """Return mean, standard deviation, interval and mean of each seed for (seeds, items) values within `bounds`."""
    interval = cluster_interval(values.mean(axis=0), templates, bounds=bounds)
    return {
        "mean": _rounded(values.mean()),
        "deviation": _rounded(values.std()),
        "interval": None if interval is None else [_rounded(end) for end in interval],
        "seeds": [_rounded(mean) for mean in values.mean(axis=1)],
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), 6)


def _conclusion(last: Mapping[str, Any], over_raw: Mapping[str, Any]) -> str:
    """State which of rollout and flow beats raw attention at the last layer: the interval and all seeds are above 0."""
    better_than_raw = [
        name
        for name, cell in over_raw.items()
        if cell["interval"] is not None and cell["interval"][0] > 0 and min(cell["seeds"]) > 0
    ]
    numbers = _map_numbers({name: last[name]["mean"] for name in MAPS})
    differences = []
    for name, cell in over_raw.items():
        interval = (
            "" if cell["interval"] is None else " [{}, {}]".format(*(format_signed(end, 2) for end in cell["interval"]))
        )
        above = sum(mean > 0 for mean in cell["seeds"])
        difference = f"{name} minus raw {format_signed(cell['mean'], 2)}{interval}"
        differences.append(f"{difference}, above 0 in {above} of {len(cell['seeds'])} seeds")
    outcome = (
        "Neither rollout nor flow beats raw attention at the last layer, unlike in the paper",
        f"Only {''.join(better_than_raw)} beats raw attention at the last layer; in the paper rollout and flow both do",
        "Rollout and flow both beat raw attention at the last layer, as in the paper",
    )[len(better_than_raw)]
    return f"{outcome}: {numbers} ({'; '.join(differences)})."


def _map_numbers(means: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {format_number(mean, 2)}" for name, mean in means.items())


def table_rows(metrics: Mapping[str, Any]) -> list[dict[str, object]]:
    """Return one table row for each token set, map and layer, with the paper's value if available."""
    rows: list[dict[str, object]] = []
    for tokens, by_map in metrics["spearman"].items():
        for name, cells in by_map.items():
            for layer, cell in enumerate(cells):
                low, high = cell["interval"] or (None, None)
                paper = _paper_value(name, layer, len(cells)) if tokens == "all" else None
                rows.append(
                    {
                        "tokens": tokens,
                        "map": name,
                        "layer": layer + 1,
                        "mean": cell["mean"],
                        "deviation": cell["deviation"],
                        "low": low,
                        "high": high,
                        "lowest_seed": min(cell["seeds"]),
                        "highest_seed": max(cell["seeds"]),
                        "paper_mean": paper[0] if paper else None,
                        "paper_deviation": paper[1] if paper else None,
                    }
                )
    return rows


def _paper_value(name: str, layer: int, layers: int) -> tuple[float, float] | None:
    return PAPER_CORRELATIONS[name][layer] if layers == len(PAPER_CORRELATIONS[name]) else None


def terminal_report(metrics: Mapping[str, Any]) -> Iterator[Table | str]:
    """Yield the table in the paper's format, with the paper's values, the models' accuracy, and the conclusion."""
    cells = metrics["spearman"]["all"]
    table = Table(
        title="Spearman correlation of the maps of [CLS] with blank-out importance",
        caption="mean ± standard deviation over items and seeds; under it the interval of the mean",
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE,
    )
    table.add_column("", no_wrap=True)
    layers = len(cells["raw"])
    for layer in range(layers):
        table.add_column(f"layer {layer + 1}", justify="right")
    for name, row in cells.items():
        table.add_row(name, *(f"{format_number(cell['mean'], 2)} ± {cell['deviation']:.2f}" for cell in row))
        if all(cell["interval"] for cell in row):
            table.add_row("", *(_interval_text(*cell["interval"]) for cell in row), style="dim")
    if layers == len(PAPER_CORRELATIONS["raw"]):
        table.add_section()
        for name, printed in PAPER_CORRELATIONS.items():
            table.add_row(
                f"{name}, paper", *(f"{format_number(mean, 2)} ± {deviation:.2f}" for mean, deviation in printed)
            )
    yield table
    for model in metrics["models"]:
        hard = model["accuracy_with_attractors"]
        past = "" if hard is None else f", {hard:.1%} past an attractor"
        yield (
            f"seed {model['seed']}: {model['accuracy']:.1%} of the verbs right{past}; the subject matters most to "
            f"blank-out in {model['subject_first']:.1%}"
        )
    words = metrics["spearman"]["words"]
    numbers = _map_numbers({name: row[-1]["mean"] for name, row in words.items()})
    yield f"words alone, without [CLS], last layer: {numbers}"
    yield _conclusion({name: cells[name][-1] for name in MAPS}, metrics["last_layer_over_raw"])


def _interval_text(low: float, high: float) -> str:
    return f"{format_number(low, 2)} to {format_number(high, 2)}"


def correlation_figure(metrics: Mapping[str, Any]) -> Figure:
    """Draw the correlations by layer with intervals, next to the paper's."""
    panels = {
        "this encoder": {
            name: [CorrelationPoint(cell["mean"], *(cell["interval"] or (None, None))) for cell in row]
            for name, row in metrics["spearman"]["all"].items()
        }
    }
    if len(panels["this encoder"]["raw"]) == len(PAPER_CORRELATIONS["raw"]):
        panels[metrics["source"]] = {
            name: [CorrelationPoint(mean) for mean, _ in row] for name, row in PAPER_CORRELATIONS.items()
        }
    return layer_correlation_figure(panels)

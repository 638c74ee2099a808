"""Several runs side by side: the median and the spread of each measure over them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anaphora.analysis.statistics import median_and_spread
from anaphora.errors import UserError
from anaphora.report.tables import LANGUAGES

if TYPE_CHECKING:
    from rich.table import Table

MEASURES = ("task_accuracy", "candidate_accuracy", "quad_accuracy", "antecedent_mass", "random_init", "chance")
KINDS = {"": "all", "set": "set cues", "role": "role cues"}


def read_metrics(runs: Sequence[str]) -> list[dict[str, Any]]:
    """The stored metrics of each run.

    Raises:
        UserError: fewer than two runs, or a run that has not been scored.
    """
    if len(runs) < 2:
        raise UserError(f"runs ({list(runs)}) must name at least two run directories")
    found = []
    for run in runs:
        path = Path(run) / "metrics.json"
        if not path.exists():
            raise UserError(f"{path} is missing: score the run first with scripts/score_attention.py run={run}")
        found.append(json.loads(path.read_text(encoding="utf-8")))
    return found


def comparison(metrics: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row for each language and kind of cue: median, lowest and highest of every measure over the runs."""
    rows: list[dict[str, Any]] = []
    for language in metrics[0]["languages"]:
        for kind in KINDS:
            cells = [one["languages"][language] for one in metrics if language in one["languages"]]
            cells = [cell[kind] for cell in cells if kind in cell] if kind else cells
            if not cells:
                continue
            row: dict[str, Any] = {"language": language, "kind": kind or "all", "runs": len(cells)}
            for measure in MEASURES:
                values = [value for value in (_value(cell, measure) for cell in cells) if value is not None]
                spread = median_and_spread(values) if values else None
                row[measure] = spread.median if spread else None
                row[f"{measure}_lowest"] = spread.lowest if spread else None
                row[f"{measure}_highest"] = spread.highest if spread else None
            rows.append(row)
    return rows


def comparison_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """The rows for the terminal: the median and, in brackets, lowest to highest, in %; fits 100 columns."""
    from rich import box
    from rich.table import Table

    title = f"median (lowest to highest) over {rows[0]['runs']} runs, shares in %"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 0), pad_edge=False)
    table.add_column("", no_wrap=True)
    for name in ("task", "candidate", "quad", "mass", "untrained", "chance"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        whole = row["kind"] == "all"
        name = LANGUAGES.get(row["language"], row["language"]) if whole else f" {KINDS[row['kind']]}"
        table.add_row(name, *(_cell(row, measure) for measure in MEASURES))
    return table


def _value(cell: Mapping[str, Any], measure: str) -> float | None:
    value = cell["baselines"].get("random_init") if measure == "random_init" else cell.get(measure)
    return None if value is None else float(value)


def _cell(row: Mapping[str, Any], measure: str) -> str:
    if row[measure] is None:
        return "–"
    low, high = row[f"{measure}_lowest"], row[f"{measure}_highest"]
    if measure in ("random_init", "chance"):
        return f"{100 * row[measure]:.1f}"
    return f"{100 * row[measure]:.1f} ({100 * low:.1f}-{100 * high:.1f})"

"""Tables of the numbers of items and seeds needed to detect a difference, from the spread of measured runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyarrow import ArrowException, parquet
from rich import box
from rich.table import Table

from anaphora.analysis.scores.cells import cells, clusters
from anaphora.base.console import console
from anaphora.base.device import Device
from anaphora.base.errors import UserError
from anaphora.commands.parts.shared import check_table, measured_folder, scored_evidence, write_table
from anaphora.commands.parts.tables import value_cell
from anaphora.data.example import Example
from anaphora.report.numbers import NOT_MEASURED, format_count, format_number, format_percent
from anaphora.runs.directory import load
from anaphora.runs.items import evaluation_splits
from anaphora.runs.presence import run_directories
from anaphora.studies.plan import BASE_CELL
from anaphora.studies.schema import Groups, read_study
from experiments.sample_size.formulas import (
    clustered_mean,
    deviation_interval,
    deviation_of_range,
    items_needed,
    seeds_needed,
)
from experiments.sample_size.settings import SampleSize

Row = dict[str, Any]


def print_sample_sizes(settings: SampleSize) -> list[Row]:
    """Print the numbers of items and seeds needed to detect a difference, and write them as CSV if a file is set.

    Returns:
        The rows of both tables; "needed" is "items" or "seeds".

    Raises:
        UserError: a run has no scores on its own items, the runs have different data, no run gives answers, or the
            study is missing.
    """
    check_table(settings)
    runs = run_directories(settings.runs)
    of_items = list(_item_rows(runs, settings)) if runs else []
    if runs and not of_items:
        raise UserError(
            f"runs ({', '.join(runs)}): no item has {settings.measure}; "
            "name runs that answer, or choose measure=candidate_accuracy"
        )
    of_seeds = [*_seed_rows(runs, settings)] if len(runs) > 1 else []
    if settings.study_folder is not None:
        of_seeds += _study_rows(settings)
    if settings.spread:
        of_seeds.append(_spread_row(settings))
    if of_items:
        print_items(of_items, settings)
    if of_seeds:
        print_seeds(of_seeds, settings)
    write_table(settings, of_items + of_seeds)
    return of_items + of_seeds


@dataclass(frozen=True)
class _ItemScores:
    """Scores of a run's chosen head or of its answers, (N,), with NaN for missing scores, and the items."""

    run: str
    examples: list[Example]
    values: NDArray[np.float64]


def _item_rows(runs: Sequence[str], settings: SampleSize) -> Iterator[Row]:
    first: _ItemScores | None = None
    for name in runs:
        scores = _item_scores(name, settings)
        yield from _rows_of(Path(name).name, scores.examples, scores.values, settings, (1, 2))
        if first is None:
            first = scores
            continue
        if [one.text for one in first.examples] != [one.text for one in scores.examples]:
            raise UserError(f"runs: {name} and {first.run} were scored on different items; name runs on the same data")
        yield from _rows_of(
            f"{Path(name).name} - {Path(first.run).name}", scores.examples, scores.values - first.values, settings, (1,)
        )


def _item_scores(name: str, settings: SampleSize) -> _ItemScores:
    evidence = scored_evidence(name, settings.split)
    path = measured_folder(name) / "tables" / f"scores_{settings.split}.parquet"
    again = f"score the run again with anaphora score run={name} split={settings.split} overwrite=true"
    column = "task_correct" if settings.measure == "task_accuracy" else "candidate_accuracy"
    try:
        table = parquet.read_table(
            path,
            columns=["item", "language", column],
            filters=[("layer", "==", evidence.head.layer), ("head", "==", evidence.head.head)],
        )
    except FileNotFoundError:
        raise UserError(f"{path} is missing: {again}") from None
    except (ArrowException, OSError):
        raise UserError(f"{path}: not a table of scores; {again}") from None
    run = load(name, Device(device="cpu"))
    examples = evaluation_splits(run, settings.split).measured
    numbers, languages = table["item"].to_numpy(), table["language"].to_pylist()
    others = UserError(f"{path} does not hold the items of the {settings.split} split of the run's own data; {again}")
    if len(numbers) + sum(evidence.dropped.values()) != len(examples) or numbers.max(initial=-1) >= len(examples):
        raise others
    if [examples[number].language for number in numbers] != languages:
        raise others
    values = np.full(len(examples), np.nan)
    values[numbers] = table[column].to_numpy(zero_copy_only=False)
    return _ItemScores(name, examples, values)


def _rows_of(
    name: str, examples: Sequence[Example], values: NDArray[np.float64], settings: SampleSize, samples: Sequence[int]
) -> Iterator[Row]:
    labels = clusters(examples)
    for language, kind, inside in cells(examples):
        chosen = np.flatnonzero(inside & ~np.isnan(values))
        if not chosen.size:
            continue
        spread = clustered_mean(values[chosen], [labels[item] for item in chosen])
        needed = {
            count: items_needed(spread, settings.points / 100, settings.alpha, settings.power, count)
            for count in samples
        }
        yield {
            "needed": "items",
            "of": name,
            "language": language,
            "kind": kind,
            "items": spread.items,
            "clusters": spread.clusters,
            "mean": spread.mean,
            "design_effect": spread.design_effect,
            "against_a_value": needed[1],
            "each_of_two": needed.get(2),
        }


def _seed_rows(runs: Sequence[str], settings: SampleSize) -> Iterator[Row]:
    evidence = [scored_evidence(name, settings.split) for name in runs]
    for language, kinds in evidence[0].scores.items():
        for kind in kinds:
            stored = [one.scores.get(language, {}).get(kind) for one in evidence]
            values = [getattr(cell, settings.measure) for cell in stored if cell is not None]
            yield from _seed_row(f"{len(runs)} runs", language, kind, values, settings, (1, 2))


def _study_rows(settings: SampleSize) -> list[Row]:
    path = Path(str(settings.study_folder))
    path = path / "study.json" if path.suffix != ".json" else path
    try:
        study = read_study(path, "run that study again to write it")
    except FileNotFoundError:
        raise UserError(f"study_folder ({settings.study_folder}): there is no {path}") from None
    base: Groups = next((cell.groups for cell in study.cells if cell.name == BASE_CELL), {})
    rows: list[Row] = []
    for cell in study.cells:
        for language, groups in cell.groups.items():
            for group in groups:
                values = _values(cell.groups, language, group, settings.measure)
                rows += _seed_row(cell.name, language, group, values, settings, (1, 2))
                if cell.name == BASE_CELL:
                    continue
                pairs = zip(values, _values(base, language, group, settings.measure), strict=False)
                differences = [one - other for one, other in pairs if one is not None and other is not None]
                rows += _seed_row(f"{cell.name} - {BASE_CELL}", language, group, differences, settings, (1,))
    if not rows:
        raise UserError(f"{path}: no cell has {settings.measure} for two or more seeds")
    return rows


def _values(groups: Groups, language: str, group: str, measure: str) -> tuple[float | None, ...]:
    summary = groups.get(language, {}).get(group)
    return summary.measures[measure].values if summary and measure in summary.measures else ()


def _seed_row(
    name: str, language: str, kind: str, values: Sequence[float | None], settings: SampleSize, samples: Sequence[int]
) -> Iterator[Row]:
    """Yield a row if at least two seeds have a value."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return
    deviation, low, high = deviation_interval(known)

    yield {
        "needed": "seeds",
        "of": name,
        "language": language,
        "kind": kind,
        "seeds": len(known),
        "mean": float(np.mean(known)),
        "deviation": deviation,
        "deviation_low": low,
        "deviation_high": high,
        **_seed_counts(deviation, settings, samples),
        **{f"{name}_at_high": count for name, count in _seed_counts(high, settings, samples).items()},
    }


def _spread_row(settings: SampleSize) -> Row:
    lowest, highest, seeds = settings.spread
    deviation = deviation_of_range(lowest / 100, highest / 100, int(seeds))
    row: Row = {"needed": "seeds", "of": f"{lowest:g} to {highest:g}", "seeds": int(seeds), "deviation": deviation}
    return row | _seed_counts(deviation, settings, (1, 2))


def _seed_counts(deviation: float, settings: SampleSize, samples: Sequence[int]) -> dict[str, int | None]:
    counts = {
        count: seeds_needed(deviation, settings.points / 100, settings.alpha, settings.power, count)
        for count in samples
    }
    return {"against_a_value": counts[1], "each_of_two": counts.get(2)}


def print_items(rows: Sequence[Row], settings: SampleSize) -> None:
    """Print the table of the number of items needed."""
    columns = ("items", "templates", "mean", "design effect", "one run", "each of two")
    table = _table("items", "", columns, settings)
    for row in rows:
        table.add_row(
            *_group_cells(row),
            *(format_count(row["items"]), format_count(row["clusters"])),
            format_percent(row["mean"]),
            format_number(row["design_effect"], 1),
            format_count(row["against_a_value"]),
            format_count(row["each_of_two"]),
        )
    console.print(table)


def print_seeds(rows: Sequence[Row], settings: SampleSize) -> None:
    """Print the table of the number of seeds needed."""
    columns = ("seeds", "mean", "deviation [95 %]", "one recipe", "each of two")
    table = _table("seeds", "; in brackets at the upper end of the deviation", columns, settings)
    for row in rows:
        interval = (row["deviation_low"], row["deviation_high"]) if "deviation_low" in row else None
        table.add_row(
            *_group_cells(row),
            *(format_count(row["seeds"]), format_percent(row.get("mean")), format_percent(row["deviation"], interval)),
            *(_with_high(row, name) for name in ("against_a_value", "each_of_two")),
        )
    console.print(table)


def _group_cells(row: Row) -> list[str]:
    """Return the cells with the name, language and kind of cue of a row; a published range has only a name."""
    return [row["of"], *(value_cell(name, row.get(name)) for name in ("language", "kind"))]


def _with_high(row: Row, name: str) -> str:
    if row[name] is None:
        return NOT_MEASURED
    high = f" ({format_count(row[f'{name}_at_high'])})" if f"{name}_at_high" in row else ""
    return format_count(row[name]) + high


def _table(what: str, remark: str, columns: Sequence[str], settings: SampleSize) -> Table:
    goal = f"{settings.points:g} points of {settings.measure.replace('_', ' ')}"
    title = f"{what} for {goal}, alpha {settings.alpha:g}, power {settings.power:g}{remark}"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for name in ("of", "language", "kind"):
        table.add_column(name)
    for name in columns:
        table.add_column(name, justify="right")
    return table

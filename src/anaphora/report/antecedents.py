"""Heads as antecedent selectors for the terminal and as a figure; both read what `antecedents.json` holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from anaphora.report.figures.bars import SharePoint, share_points_figure
from anaphora.report.numbers import NOT_MEASURED, format_percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table


Row = Mapping[str, Any]

CANDIDATE_SETS = {"words": "all words", "preceding": "words before", "mentions": "mentions before"}
"""Among what a head's heaviest word is looked for."""
TABLE_WIDTH = 140
"""Characters across that the table needs."""
MENTION_TYPES = ("all", "pronoun", "proper", "nominal")
RULES = ("nearest", "head match", "sieve")
PAPER_ACCURACIES = {
    "nearest": (27, 29, 29, 19),
    "head match": (52, 47, 67, 40),
    "sieve": (69, 70, 77, 60),
    "one head of BERT-base": (65, 64, 73, 58),
}
"""Clark et al. 2019, table 2, in %: OntoNotes, all / pronoun / proper / nominal. Other texts, mentions and rules."""


def terminal_tables(metrics: Mapping[str, Any]) -> Iterator[Table | str]:
    """The table of the rules and heads, one a subset, the paper's own below the first, and plain sentences."""
    from rich import box
    from rich.table import Table

    rows: list[Row] = metrics["rows"]
    for subset in dict.fromkeys(row["subset"] for row in rows):
        subset_rows = [row for row in rows if row["subset"] == subset]
        columns = [name for name in MENTION_TYPES if any(row["column"] == name for row in subset_rows)]
        measure = "antecedents picked rightly, in % [95 % over documents], layer-head"
        title = f"{metrics['run']}, {metrics['split']} split: {measure}"
        table = Table(
            title=title if subset == "all" else subset, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1)
        )
        table.add_column("", no_wrap=True)
        for name in columns:
            counted = next(row for row in subset_rows if row["column"] == name)
            table.add_column(f"{name}\n{counted['items']} items", justify="right", no_wrap=True)
        for name in RULES:
            table.add_row(name, *(_share_and_head(_find(subset_rows, name, "mentions", column)) for column in columns))
        for field, words in CANDIDATE_SETS.items():
            table.add_section()
            for selector in ("best head", "one head", "untrained"):
                cells = [_find(subset_rows, selector, field, column) for column in columns]
                if any(cells):
                    table.add_row(
                        f"{selector}, {words}",
                        *map(_share_and_head, cells),
                        style="dim" if selector == "untrained" else "",
                    )
        if subset == "all":
            table.add_section()
            for name, printed in PAPER_ACCURACIES.items():
                numbers = dict(zip(MENTION_TYPES, printed, strict=True))
                table.add_row(f"{name}*", *(str(numbers[column]) for column in columns), style="dim")
            table.caption = "* Clark et al. 2019, table 2, on OntoNotes: other texts, mentions and rules"
            table.caption_justify = "left"
        yield table
    for field in CANDIDATE_SETS:
        yield comparison_sentence(metrics, field)


def comparison_sentence(metrics: Mapping[str, Any], field: str) -> str:
    """What a field of choice allows one to say of pronouns: their best head against the nearest mention."""
    subset_rows = [row for row in metrics["rows"] if row["subset"] == "all"]
    column = "pronoun" if _find(subset_rows, "nearest", "mentions", "pronoun") else "all"
    nearest, head = _find(subset_rows, "nearest", "mentions", column), _find(subset_rows, "best head", field, column)
    if nearest is None or head is None:
        return f"{CANDIDATE_SETS[field]}: there is no head to compare, for the development split holds no such mention."
    subject = f"{CANDIDATE_SETS[field]}, {column} mentions: layer {head['layer']} head {head['head']}"
    numbers = f"{_share(head)} against {_share(nearest)}"
    if head["low"] is None or nearest["high"] is None:
        return f"{subject} reaches {numbers}; one document alone gives no interval."
    if head["low"] > nearest["high"]:
        return f"{subject} beats the nearest mention with disjoint intervals: {numbers}."
    if head["high"] < nearest["low"]:
        return f"{subject} is worse than the nearest mention, with disjoint intervals: {numbers}."
    return f"{subject} and the nearest mention have intervals that overlap: {numbers}."


def antecedent_figure(metrics: Mapping[str, Any]) -> Figure:
    """The best head of each column in each field of choice, with intervals; rules and untrained heads as ticks."""
    subset_rows = [row for row in metrics["rows"] if row["subset"] == "all"]
    points = []
    for column in MENTION_TYPES:
        rules = {name: row for name in RULES if (row := _find(subset_rows, name, "mentions", column))}
        for field, words in CANDIDATE_SETS.items():
            head = _find(subset_rows, "best head", field, column)
            if head is None:
                continue
            ticks = {name: float(row["accuracy"]) for name, row in rules.items()}
            chance = _find(subset_rows, "untrained", field, column)
            if chance is not None:
                ticks["best untrained head"] = float(chance["accuracy"])
            points.append(
                SharePoint(
                    label=f"{column} ({head['items']:,})",
                    value=head["accuracy"],
                    low=head["low"],
                    high=head["high"],
                    baselines=ticks,
                    measure=f"best head among {words}",
                )
            )
    return share_points_figure(
        points, f"{metrics['run']}: does the mention's head word attend to an antecedent?", "share picked rightly"
    )


def _find(rows: list[Row], selector: str, field: str, column: str) -> Row | None:
    wanted = (selector, field, column)
    return next((row for row in rows if (row["selector"], row["field"], row["column"]) == wanted), None)


def _share_and_head(row: Row | None) -> str:
    """A share with its interval and, of a head, layer and number."""
    if row is None or row["layer"] is None:
        return _share(row)
    return f"{_share(row)} {row['layer']}-{row['head']}"


def _share(row: Row | None) -> str:
    if row is None:
        return NOT_MEASURED
    return format_percent(row["accuracy"], None if row["low"] is None else (row["low"], row["high"]))

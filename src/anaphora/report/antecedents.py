"""Heads as antecedent selectors for the terminal and as a figure; both read what `antecedents.json` holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from anaphora.report.figures import Dot, strata_bars

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

Row = Mapping[str, Any]

FIELDS = {"words": "all words", "preceding": "words before", "mentions": "mentions before"}
"""Among what a head's heaviest word is looked for."""
WIDTH = 140
"""Characters across that the table needs."""
COLUMNS = ("all", "pronoun", "proper", "nominal")
RULES = ("nearest", "head match", "sieve")
PAPER = {
    "nearest": (27, 29, 29, 19),
    "head match": (52, 47, 67, 40),
    "sieve": (69, 70, 77, 60),
    "one head of BERT-base": (65, 64, 73, 58),
}
"""Clark et al. 2019, table 2, in %: OntoNotes, all / pronoun / proper / nominal. Other texts, mentions and rules."""


def shown(metrics: Mapping[str, Any]) -> Iterator[Table | str]:
    """The table of the rules and heads, one a subset, the paper's own below the first, and plain sentences."""
    from rich import box
    from rich.table import Table

    rows: list[Row] = metrics["rows"]
    for subset in dict.fromkeys(row["subset"] for row in rows):
        here = [row for row in rows if row["subset"] == subset]
        columns = [name for name in COLUMNS if any(row["column"] == name for row in here)]
        measure = "antecedents picked rightly, in % [95 % over documents], layer-head"
        title = f"{metrics['run']}, {metrics['split']} split: {measure}"
        told = Table(
            title=title if subset == "all" else subset, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1)
        )
        told.add_column("", no_wrap=True)
        for name in columns:
            counted = next(row for row in here if row["column"] == name)
            told.add_column(f"{name}\n{counted['items']} items", justify="right", no_wrap=True)
        for name in RULES:
            told.add_row(name, *(_cell(_find(here, name, "mentions", column)) for column in columns))
        for field, words in FIELDS.items():
            told.add_section()
            for selector in ("best head", "one head", "untrained"):
                found = [_find(here, selector, field, column) for column in columns]
                if any(found):
                    told.add_row(
                        f"{selector}, {words}", *map(_cell, found), style="dim" if selector == "untrained" else ""
                    )
        if subset == "all":
            told.add_section()
            for name, printed in PAPER.items():
                numbers = dict(zip(COLUMNS, printed, strict=True))
                told.add_row(f"{name}*", *(str(numbers[column]) for column in columns), style="dim")
            told.caption = "* Clark et al. 2019, table 2, on OntoNotes: other texts, mentions and rules"
            told.caption_justify = "left"
        yield told
    for field in FIELDS:
        yield sentence(metrics, field)


def sentence(metrics: Mapping[str, Any], field: str) -> str:
    """What a field of choice allows one to say of pronouns: their best head against the nearest mention."""
    here = [row for row in metrics["rows"] if row["subset"] == "all"]
    column = "pronoun" if _find(here, "nearest", "mentions", "pronoun") else "all"
    nearest, head = _find(here, "nearest", "mentions", column), _find(here, "best head", field, column)
    if nearest is None or head is None:
        return f"{FIELDS[field]}: there is no head to compare, for the development split holds no such mention."
    subject = f"{FIELDS[field]}, {column} mentions: layer {head['layer']} head {head['head']}"
    numbers = f"{_share(head)} against {_share(nearest)}"
    if head["low"] is None or nearest["high"] is None:
        return f"{subject} reaches {numbers}; one document alone gives no interval."
    if head["low"] > nearest["high"]:
        return f"{subject} beats the nearest mention with disjoint intervals: {numbers}."
    if head["high"] < nearest["low"]:
        return f"{subject} is worse than the nearest mention, with disjoint intervals: {numbers}."
    return f"{subject} and the nearest mention have intervals that overlap: {numbers}."


def drawn(metrics: Mapping[str, Any]) -> Figure:
    """The best head of each column in each field of choice, with intervals; rules and untrained heads as ticks."""
    here = [row for row in metrics["rows"] if row["subset"] == "all"]
    dots = []
    for column in COLUMNS:
        rules = {name: row for name in RULES if (row := _find(here, name, "mentions", column))}
        for field, words in FIELDS.items():
            head = _find(here, "best head", field, column)
            if head is None:
                continue
            ticks = {name: float(row["accuracy"]) for name, row in rules.items()}
            chance = _find(here, "untrained", field, column)
            if chance is not None:
                ticks["best untrained head"] = float(chance["accuracy"])
            dots.append(
                Dot(
                    label=f"{column} ({head['items']:,})",
                    value=head["accuracy"],
                    low=head["low"],
                    high=head["high"],
                    baselines=ticks,
                    measure=f"best head among {words}",
                )
            )
    return strata_bars(
        dots, f"{metrics['run']}: does the mention's head word look at an antecedent?", "share picked rightly"
    )


def _find(rows: list[Row], selector: str, field: str, column: str) -> Row | None:
    wanted = (selector, field, column)
    return next((row for row in rows if (row["selector"], row["field"], row["column"]) == wanted), None)


def _cell(row: Row | None) -> str:
    """A share with its interval and, of a head, layer and number."""
    if row is None or row["layer"] is None:
        return _share(row)
    return f"{_share(row)} {row['layer']}-{row['head']}"


def _share(row: Row | None) -> str:
    if row is None:
        return "–"
    ends = "" if row["low"] is None else f" [{100 * row['low']:.1f}, {100 * row['high']:.1f}]"
    return f"{100 * row['accuracy']:.1f}{ends}"

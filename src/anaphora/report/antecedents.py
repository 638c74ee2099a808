"""Terminal tables and a figure of how often attention heads select an antecedent, made from `antecedents.json`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure
from rich.table import Table

from anaphora.base.console import headed_table
from anaphora.base.translation import _
from anaphora.report.figures.bars import SharePoint, share_points_figure
from anaphora.report.numbers import NOT_MEASURED, format_percent, interval_of, shown_interval
from anaphora.report.wording import (
    factor_names,
    head_name,
    label,
    mention_type_names,
    selector_names,
    split_names,
    value_label,
)

Rows = Sequence[Mapping[str, Any]]
"""Rows of a table in a result file."""

CHOICE_SETS = ("words", "preceding", "mentions")
"""Candidate sets from which a head selects: all words, the words before the mention, or the mentions before it."""
FORM_COLUMNS = ("all", "pronoun", "proper", "nominal", "unknown")
RULES = ("nearest", "head match", "sieve")

_HEADS = {"best head": "{}", "one head": "one_{}", "untrained": "untrained_{}"}
"""Key of each selector in `selector_names`, with a placeholder for its candidate set."""
PAPER_ACCURACIES = {
    "nearest": (27, 29, 29, 19),
    "head match": (52, 47, 67, 40),
    "sieve": (69, 70, 77, 60),
    "paper head": (65, 64, 73, 58),
}
"""Accuracy in % on OntoNotes for all mentions, pronouns, proper and nominal ones, Clark et al. 2019, table 2.

Texts, mentions and rules differ from those evaluated here.
"""


def terminal_tables(metrics: Mapping[str, Any]) -> Iterator[Table | str]:
    """Yield a table for each subset of mentions, then the sentence `comparison_sentence` for each candidate set.

    A table shows how often rules and heads select an antecedent, by form of mention. The table of all mentions also
    has the results of Clark et al. 2019. `metrics` is the content of `antecedents.json`.
    """
    rows: Rows = metrics["rows"]
    for subset in dict.fromkeys(row["subset"] for row in rows):
        subset_rows = [row for row in rows if row["subset"] == subset]
        columns = [name for name in FORM_COLUMNS if any(row["column"] == name for row in subset_rows)]
        title = _("{run}, {split} split: antecedents picked correctly, in % [95 % over documents], layer-head").format(
            run=metrics["run"], split=label(split_names(), metrics["split"])
        )
        counts = {name: next(row["items"] for row in subset_rows if row["column"] == name) for name in columns}
        heading = _("{mentions}\n{items:item|items}")
        headings = [
            heading.format(mentions=label(mention_type_names(), name), items=items) for name, items in counts.items()
        ]
        table = headed_table(
            title if subset == "all" else _subset_title(subset), [""], headings, no_wrap=True, padding=(0, 1)
        )
        for name in RULES:
            by_type = [row_of(subset_rows, selector=name, field="mentions", column=column) for column in columns]
            table.add_row(label(selector_names(), name), *map(share_and_head, by_type))
        for field in CHOICE_SETS:
            table.add_section()
            for selector in ("best head", "one head", "untrained"):
                by_type = [row_of(subset_rows, selector=selector, field=field, column=column) for column in columns]
                if any(by_type):
                    name = label(selector_names(), _HEADS[selector].format(field))
                    style = "dim" if selector == "untrained" else ""
                    table.add_row(name, *map(share_and_head, by_type), style=style)
        if subset == "all":
            table.add_section()
            for name, printed in PAPER_ACCURACIES.items():
                numbers = dict(zip(FORM_COLUMNS, map(str, printed), strict=False))
                cells = [numbers.get(column, NOT_MEASURED) for column in columns]
                table.add_row(f"{label(selector_names(), name)}*", *cells, style="dim")
            table.caption = _("* Clark et al. 2019, table 2, on OntoNotes: other texts, mentions and rules")
            table.caption_justify = "left"
        yield table
    for field in CHOICE_SETS:
        yield comparison_sentence(metrics, field)


def _subset_title(subset: str) -> str:
    """Return a table's title from a string "attribute=value", whose value is empty for items without the attribute."""
    factor, value = subset.split("=", maxsplit=1)
    return label(factor_names(), factor) + _(": ") + (value_label(value) if value else NOT_MEASURED)


def comparison_sentence(metrics: Mapping[str, Any], field: str) -> str:
    """Return a sentence that compares the best head for pronouns with the rule that picks the nearest mention.

    If pronouns were not evaluated separately, the accuracies on all mentions are compared. The sentence says whether
    the 95 % intervals overlap, or what is missing: the head or an interval. The head selects among the candidates in
    the set `field`, one of `CHOICE_SETS`.
    """
    subset_rows = [row for row in metrics["rows"] if row["subset"] == "all"]
    column = "pronoun" if row_of(subset_rows, selector="nearest", field="mentions", column="pronoun") else "all"
    nearest = row_of(subset_rows, selector="nearest", field="mentions", column=column)
    head = row_of(subset_rows, selector="best head", field=field, column=column)
    selector = label(selector_names(), field)
    if nearest is None or head is None:
        return _("{selector}: there is no head to compare, because the development split has no such mention.").format(
            selector=selector
        )
    if shown_interval(interval_of(head)) is None or shown_interval(interval_of(nearest)) is None:
        outcome = _(
            "{selector}, {mentions}: {head} reaches {share}, the nearest mention {nearest}; too few documents, or "
            "documents that are all alike, give no interval."
        )
    elif head["low"] > nearest["high"]:
        outcome = _(
            "{selector}, {mentions}: {head} beats the nearest mention with disjoint intervals: {share} against "
            "{nearest}."
        )
    elif head["high"] < nearest["low"]:
        outcome = _(
            "{selector}, {mentions}: {head} is worse than the nearest mention, with disjoint intervals: {share} "
            "against {nearest}."
        )
    else:
        outcome = _(
            "{selector}, {mentions}: {head} and the nearest mention have intervals that overlap: {share} against "
            "{nearest}."
        )
    return outcome.format(
        selector=selector,
        mentions=label(mention_type_names(), column),
        head=head_name(head["layer"], head["head"]),
        share=format_percent(head["accuracy"], interval_of(head)),
        nearest=format_percent(nearest["accuracy"], interval_of(nearest)),
    )


def antecedent_figure(metrics: Mapping[str, Any]) -> Figure:
    """Draw how often the best head picks an antecedent, by type of mention and by candidate set (`CHOICE_SETS`).

    Ticks mark the accuracies of rules and of the best head of untrained models.

    Raises:
        UserError: there is no best head for any mention type.
    """
    subset_rows = [row for row in metrics["rows"] if row["subset"] == "all"]
    points = []
    for column in FORM_COLUMNS:
        rules = {
            name: row for name in RULES if (row := row_of(subset_rows, selector=name, field="mentions", column=column))
        }
        for field in CHOICE_SETS:
            head = row_of(subset_rows, selector="best head", field=field, column=column)
            if head is None:
                continue
            ticks = {label(selector_names(), name): float(row["accuracy"]) for name, row in rules.items()}
            chance = row_of(subset_rows, selector="untrained", field=field, column=column)
            if chance is not None:
                ticks[_("best untrained head")] = float(chance["accuracy"])
            points.append(
                SharePoint(
                    label=f"{label(mention_type_names(), column)} ({head['items']:,})",
                    value=head["accuracy"],
                    low=head["low"],
                    high=head["high"],
                    baselines=ticks,
                    measure=label(selector_names(), field),
                )
            )
    title = _("{run}: does the mention’s head word attend to an antecedent?").format(run=metrics["run"])
    axis = _("antecedents picked correctly (%), {split} split, 95 % intervals over documents").format(
        split=label(split_names(), metrics["split"])
    )
    return share_points_figure(points, title, axis)


def row_of(rows: Rows, **values: str) -> Mapping[str, Any] | None:
    """Return the first row with the given column values, such as selector="nearest"; None if there is none."""
    return next((row for row in rows if all(row[name] == value for name, value in values.items())), None)


def share_and_head(row: Mapping[str, Any] | None, position: str = "{layer}-{head}") -> str:
    """Return the accuracy in a table row, in %, with its interval; a dash if the row is None.

    In the row of a head, layer and head follow, formatted by the format string `position`.
    """
    if row is None:
        return NOT_MEASURED
    share = format_percent(row["accuracy"], interval_of(row))
    return share if row["layer"] is None else f"{share} {position.format(layer=row['layer'], head=row['head'])}"

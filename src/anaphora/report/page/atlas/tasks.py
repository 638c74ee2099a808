"""Sections of a comparison of models (atlas) on two tasks: selection of antecedents in documents, and GAP.

In GAP, a model decides for each of two names whether the pronoun refers to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from anaphora.base.translation import _, pgettext
from anaphora.report.antecedents import FORM_COLUMNS, RULES, row_of, share_and_head
from anaphora.report.figures import style
from anaphora.report.figures.panels import Mark, Marks, panel_figure, row_below
from anaphora.report.figures.style import figure_style
from anaphora.report.numbers import format_count, format_number, format_percent, interval_of
from anaphora.report.page.atlas.entries import RULE_POLICIES, AtlasEntry
from anaphora.report.page.elements import FigureElement, NoteElement, PageElement, TableElement, table_of
from anaphora.report.wording import label, mention_type_names, name_policy_names, selector_names

_HEAD_POLICIES = ("head", "head with threshold", "untrained", "answers")
_HEAD_SELECTORS = {
    "words": ("best head", "words"),
    "mentions": ("best head", "mentions"),
    "untrained_words": ("untrained", "words"),
    "untrained_mentions": ("untrained", "mentions"),
}
"""Values of "selector" and "field" that identify a model's rows of `selection_table`, by key in `selector_names`."""


def antecedent_elements(entries: Sequence[AtlasEntry]) -> list[PageElement]:
    """Return a figure and a table that show how often rules and the best heads of each model select an antecedent.

    Without results, both are left out. A note lists the models that cannot be scored.
    """
    elements: list[PageElement] = []
    if selected := [entry for entry in entries if entry.antecedents]:
        first = selected[0].antecedents or ()
        types = [name for name in FORM_COLUMNS if row_of(first, subset="all", column=name)]
        rows = [
            [_("rule"), label(selector_names(), name)]
            + [_share(row_of(first, subset="all", selector=name, column=column)) for column in types]
            for name in RULES
        ]
        for entry in selected:
            for name, (selector, field) in _HEAD_SELECTORS.items():
                cells = [
                    row_of(entry.antecedents or (), subset="all", selector=selector, field=field, column=column)
                    for column in types
                ]
                if any(cells):
                    rows.append([entry.model, label(selector_names(), name), *map(_share, cells)])
        columns = [
            f"{label(mention_type_names(), name)} ({format_count(count['items'])})"
            for name in types
            if (count := row_of(first, subset="all", column=name))
        ]
        title = _("Antecedents picked correctly, in % [95 % over documents] (layer.head that picks)")
        figure = _antecedents_figure(selected, types)
        alt = "; ".join(" ".join(row) for row in rows)
        elements = [
            FigureElement(name=f"antecedents-{selected[0].corpus}", figure=figure, alt=alt),
            TableElement(title=title, columns=[_("model"), _("head or rule"), *columns], rows=rows, texts=2),
        ]
    if unselected := [entry.model for entry in entries if entry.unselected]:
        text = _("Not measured here, because they read one pronoun separately from the text: {models}.")
        elements.append(NoteElement(text=text.format(models=pgettext("list", ", ").join(unselected))))
    return elements


def _share(row: Mapping[str, Any] | None) -> str:
    return share_and_head(row, "({layer}.{head})")


@figure_style()
def _antecedents_figure(entries: Sequence[AtlasEntry], types: Sequence[str]) -> Figure:
    marks: Marks = {}
    forms = {"words": (style.ANTECEDENT, "D"), "mentions": (style.PRONOUN, "o")}
    ticks = {
        "nearest": (style.DISTRACTOR, "tick"),
        "sieve": (style.INK, "dotted tick"),
        "untrained": (style.MUTED, "dashed tick"),
    }
    for entry in entries:
        rows = entry.antecedents or ()
        for column in types:
            cell = marks.setdefault((entry.model, label(mention_type_names(), column)), [])
            for selector, (colour, form) in ticks.items():
                if row := row_of(rows, subset="all", selector=selector, field="mentions", column=column):
                    cell.append(Mark(row["accuracy"], None, colour, form))
            for field, (colour, form) in forms.items():
                if row := row_of(rows, subset="all", selector="best head", field=field, column=column):
                    cell.append(Mark(row["accuracy"], interval_of(row), colour, form))
    return panel_figure(
        _("How often the word picked is an antecedent’s"),
        [(entry.model, False) for entry in entries],
        [label(mention_type_names(), column) for column in types],
        marks,
        _("% of the mentions, with 95 % intervals over documents"),
        (0.0, 1.0),
        points=True,
        key=(
            (_("best head, any word"), *forms["words"]),
            (_("best head, a mention before it"), *forms["mentions"]),
            (_("nearest mention"), *ticks["nearest"]),
            (_("sieve of rules"), *ticks["sieve"]),
            (_("untrained, a mention before it"), *ticks["untrained"]),
        ),
    )


def name_elements(entries: Sequence[AtlasEntry]) -> list[PageElement]:
    """Return a figure, a table and a note on how well models and rules decide whether a pronoun refers to a name.

    The results are those of each rule, of each model's chosen head and, if measured, of untrained models and the
    model's own answers. The list is empty if there are no results, as on any corpus other than GAP.
    """
    decided = [entry for entry in entries if entry.names]
    if not decided:
        return []
    lines = [(_("rule"), row) for row in decided[0].names or () if row["policy"] in RULE_POLICIES]
    lines += [(entry.model, row) for entry in decided for row in entry.names or () if row["policy"] in _HEAD_POLICIES]
    rows = [
        {
            _("model"): model,
            _("head or rule"): label(name_policy_names(), row["policy"]),
            _("items"): format_count(row["items"]),
            _("F1 [95 %]"): format_percent(row["f1"], interval_of(row)),
            _("precision"): format_percent(row["precision"]),
            _("recall"): format_percent(row["recall"]),
            _("F1 masculine"): format_percent(row["masculine"]),
            _("F1 feminine"): format_percent(row["feminine"]),
            _("feminine / masculine [95 %]"): format_number(row["bias"], 2, interval_of(row, "bias_")),
            _("the same, reweighted [95 %]"): format_number(
                row["weighted_bias"], 2, interval_of(row, "weighted_bias_")
            ),
        }
        for model, row in lines
    ]
    figure = _names_figure(lines)
    alt = "; ".join(f"{model} {policy}: {share}" for model, policy, _items, share, *_others in map(dict.values, rows))
    title = _("Name decisions in %, [95 % over texts]; the ratio is feminine / masculine F1, 1 is even")
    return [
        FigureElement(name=f"names-{decided[0].corpus}", figure=figure, alt=alt),
        table_of(rows, title, texts=2),
        NoteElement(
            text=_(
                "The last column weights texts so that those with few and with many names count alike for both genders."
            )
        ),
    ]


@figure_style()
def _names_figure(lines: Sequence[tuple[str, Mapping[str, Any]]]) -> Figure:
    marks: Marks = {}
    rows: list[tuple[str, bool]] = []
    for model, row in lines:
        if (model, True) not in rows:
            rows.append((model, True))
        name = row_below(model, label(name_policy_names(), row["policy"]))
        rows.append((name, False))
        marks[name, ""] = [
            Mark(row["masculine"], None, style.DISTRACTOR, "tick"),
            Mark(row["feminine"], None, style.PRONOUN, "dashed tick"),
            Mark(row["f1"], interval_of(row), style.ANTECEDENT, "D"),
        ]
    return panel_figure(
        _("F1 of the decisions on both names"),
        rows,
        [""],
        marks,
        _("F1 in %, with 95 % intervals over texts"),
        (0.0, 1.0),
        points=True,
        key=(
            (_("all items"), style.ANTECEDENT, "D"),
            (_("masculine pronouns"), style.DISTRACTOR, "tick"),
            (_("feminine pronouns"), style.PRONOUN, "dashed tick"),
        ),
    )

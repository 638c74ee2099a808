"""Terminal output of a run's scores, controls and verdicts (`print_verdict`), and of comparisons of runs."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from rich.table import Table

from anaphora.analysis.evidence.comparison import GroupSpread
from anaphora.analysis.evidence.evidence import Control, Evidence, Verdict
from anaphora.analysis.maps.answers import Answers
from anaphora.base.console import console, headed_table, print_table, say, wrapped
from anaphora.base.translation import N_, _, in_language_of_messages, pgettext, stored
from anaphora.report.headline import headline_sentence, headline_table
from anaphora.report.numbers import NOT_MEASURED, format_percent, left_out_note
from anaphora.report.page.elements import TableElement
from anaphora.report.stored import observed_text, stored_sentence
from anaphora.report.tables import causal_table, level_table, one_head_table, specificity_table
from anaphora.report.wording import (
    all_groups,
    group_label,
    kind_groups,
    kind_names,
    label,
    language_name,
    short_measure_names,
    split_names,
)

_HEADING_WIDTH = 16
"""Maximum number of characters per line of a column heading."""
_WITHOUT_RANGE = ("random_init", "chance")
"""Measures for which a comparison of runs shows only the median."""


@in_language_of_messages
def print_undecided(answers: Answers | None) -> None:
    """Print the number of items in which the model gives a right and a wrong candidate the same score.

    If there are no such items or no answers, nothing is printed.
    """
    if answers is not None and answers.undecided.any():
        say(
            "equal scores: in {items} of {all:item|items} the model gives a right and a wrong candidate the same score "
            "(names that are the same tokens to it, such as [UNK]); of k such answers each counts 1/k",
            items=int(answers.undecided.sum()),
            all=len(answers.correct),
        )


@in_language_of_messages
def print_verdict(evidence: Evidence) -> None:
    """Print the verdicts on the chosen head's layer and on the head alone, with the criteria not known to be met."""
    for group in kind_groups(evidence.verdict):
        _print_group_verdict(group.label, group.cell)
    for group in kind_groups(evidence.verdict_at_head):
        _print_group_verdict(_("{group}, one head").format(group=group.label), group.cell)


def _print_group_verdict(group: str, verdict: Verdict) -> None:
    failed, unmeasured = (
        [stored(row.rule) for row in verdict.rows if row.passed is passed] for passed in (False, None)
    )
    comma = pgettext("list", ", ")
    message = {
        (False, False): N_("{group}: {verdict}"),
        (True, False): N_("{group}: {verdict} (fails: {failed})"),
        (False, True): N_("{group}: {verdict} (not measured: {unmeasured})"),
        (True, True): N_("{group}: {verdict} (fails: {failed}; not measured: {unmeasured})"),
    }[bool(failed), bool(unmeasured)]
    say(message, group=group, verdict=_(verdict.verdict), failed=comma.join(failed), unmeasured=comma.join(unmeasured))


@in_language_of_messages
def print_headline(evidence: Evidence) -> None:
    """Print the main scores as tables and in words, the worst template per language, and counts of omitted items."""
    print_table(headline_table(evidence))
    for table in (level_table(evidence), one_head_table(evidence), specificity_table(evidence)):
        print_text_table(table)
    if evidence.languages:
        console.print(wrapped(headline_sentence(evidence), console.width))
        if note := left_out_note(group.cell.intervals.candidate_accuracy for group in all_groups(evidence.scores)):
            console.print(wrapped(note, console.width))
    else:
        strata = dict.fromkeys(name for of_language in evidence.strata.values() for name in of_language)
        say(
            "{split} split: no item is of stratum main, so the table is empty; the metrics file has the scores of "
            "{strata}",
            split=label(split_names(), evidence.split),
            strata=pgettext("list", ", ").join(strata),
        )
    for language, whole in evidence.languages.items():
        worst = whole.worst_template
        if worst is None or worst.task_accuracy is None:
            continue
        # If all templates are equally good, none is the worst.
        if (worst.candidate_accuracy, worst.task_accuracy) != (whole.candidate_accuracy, whole.task_accuracy):
            say(
                "{spoken}: where the head is worst, template {template}: candidate accuracy {candidate} %, task "
                "accuracy {task} %, {items:item|items}",
                spoken=language_name(language),
                template=worst.template,
                candidate=format_percent(worst.candidate_accuracy),
                task=format_percent(worst.task_accuracy),
                items=worst.items,
            )
    for reason, count in evidence.dropped.items():
        say("left out: {items:item|items} ({reason})", items=count, reason=_(reason))


@in_language_of_messages
def print_causal(evidence: Evidence) -> None:
    """Print the table of the causal tests, if there are any."""
    print_text_table(causal_table(evidence))


@in_language_of_messages
def print_controls(run: str, split: str, measured: Mapping[str, Control]) -> None:
    """Print the scores of a run's controls (models trained with one change), with the expected and observed results."""
    console.print(_controls_table(run, split, measured))
    for name, control in measured.items():
        message = {
            True: _("{control}: as expected. Expected: {expected} Observed: {observed}"),
            False: _("{control}: NOT as expected. Expected: {expected} Observed: {observed}"),
            None: _("{control}: nothing to check. Expected: {expected} Observed: {observed}"),
        }[control.as_expected]
        console.print(
            message.format(
                control=label(typed_names(), name),
                expected=stored_sentence(control.expected),
                observed=observed_text(control.observed),
            )
        )


def _controls_table(run: str, split: str, measured: Mapping[str, Control]) -> Table:
    title = _("{run}: trained controls, {split} split, shares in %").format(run=run, split=label(split_names(), split))
    shares = (_("task"), _("candidate [95 %]"), _("chance"))
    table = headed_table(title, (_("control"), _("language"), _("kind")), shares)
    names = typed_names()
    for name, control in measured.items():
        for language, kinds in control.languages.items():
            for kind, cell in kinds.items():
                table.add_row(
                    *(names.get(one, one) for one in (name, language, kind)),
                    format_percent(cell.task_accuracy),
                    format_percent(cell.candidate_accuracy, cell.interval),
                    format_percent(cell.chance),
                )
    return table


@in_language_of_messages
def print_comparison(rows: Sequence[GroupSpread]) -> None:
    """Print the spread of each measure over runs, with notes on languages or cues whose items differ between runs."""
    print_table(_comparison_table(rows))
    whole = max(row.runs for row in rows)
    for row in rows:
        group = group_label(row.language, row.kind)
        if row.runs < whole:
            say(
                "{group}: the row covers {runs} of the {all:run|runs}; the others have no such items",
                group=group,
                runs=row.runs,
                all=whole,
            )
        elif row.items[0] < row.items[1]:
            say(
                "{group}: the runs were scored on different items, {fewest} to {most} of them, so their "
                "spread is partly due to the items",
                group=group,
                fewest=row.items[0],
                most=row.items[1],
            )
        elif row.kind == "all" and row.same_items is False:  # once per language
            say(
                "{group}: the runs were scored on {items:item|items} each, but not on the same ones, so their"
                " spread is partly due to the items",
                group=group,
                items=row.items[0],
            )


def _comparison_table(rows: Sequence[GroupSpread]) -> Table:
    """Return a table of median and range of each measure over runs, in %."""
    title = _("median (lowest to highest) over {runs:run|runs}, shares in %").format(runs=max(row.runs for row in rows))
    headings = map(_heading, short_measure_names().values())
    table = headed_table(title, [""], headings, no_wrap=True, padding=(0, 0), pad_edge=False)
    for row in rows:
        name = language_name(row.language) if row.kind == "all" else f" {kind_names()[row.kind]}"
        table.add_row(name, *(_spread_text(row, measure) for measure in short_measure_names()))
    return table


def _spread_text(row: GroupSpread, measure: str) -> str:
    spread = row.measures[measure]
    if spread is None:
        return NOT_MEASURED
    if measure in _WITHOUT_RANGE:
        return format_percent(spread.median)
    return f"{format_percent(spread.median)} ({format_percent(spread.lowest)}-{format_percent(spread.highest)})"


def _heading(name: str) -> str:
    """Wrap a column's heading, since the library rich does not wrap the headings of `no_wrap` columns."""
    return textwrap.fill(name, _HEADING_WIDTH, break_long_words=False)


def print_text_table(table: TableElement) -> None:
    """Print a table with text left-aligned and numbers right-aligned; print nothing if it has no rows."""
    if not table.rows:
        return
    headings = list(map(_heading, table.columns))
    texts, numbers = headings[: table.texts], headings[table.texts :]
    spacing = {"padding": (0, 1, 0, 0), "pad_edge": False, "show_edge": False}
    printed = headed_table(table.title, texts, numbers, no_wrap=True, title_style="bold", **spacing)
    for row in table.rows:
        printed.add_row(*row)
    print_table(printed)


def typed_names() -> dict[str, str]:
    """Return the labels of controls, languages and cue categories, keyed by their names in commands and files."""
    return {
        "uniform": _("uniform"),
        "frozen_query_key": _("frozen_query_key"),
        "shuffled_labels": _("shuffled_labels"),
        "no_positions": _("no_positions"),
        "masked_tokens": _("masked_tokens"),
        "pairwise": _("pairwise"),
        "nearest": pgettext("control", "nearest"),
        "en": _("en"),
        "zh": _("zh"),
        "all": pgettext("cue", "all"),
        "set": _("set"),
        "role": _("role"),
    }

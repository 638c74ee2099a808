"""Printing of result tables in the terminal, in the language of the interface."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table

from anaphora.analysis.maps.answers import Answers
from anaphora.analysis.maps.capture import no_pronoun_answers
from anaphora.analysis.scores.calibration import LanguageCalibration
from anaphora.analysis.tasks.gap import BOTH_WAYS_SUFFIX
from anaphora.analysis.tasks.task_accuracy import MODEL, NONE_OF_THEM, OWN_FOLDS_SUFFIX
from anaphora.base.console import console, headed_table, print_table, say, wrapped
from anaphora.base.errors import UserError
from anaphora.base.translation import _, in_language_of_messages, pgettext
from anaphora.data.example import Question, shared_questions
from anaphora.data.store import load as load_corpus
from anaphora.report import wording
from anaphora.report.numbers import (
    NOT_MEASURED,
    format_number,
    format_percent,
    format_range,
    interval_of,
    left_out_note,
    with_minus,
    with_shown_intervals,
)
from anaphora.report.stored import stored_sentence
from anaphora.report.terminal import print_undecided, typed_names

if TYPE_CHECKING:
    from anaphora.data.text import Text
    from anaphora.runs.directory import Run
    from anaphora.settings.data import Data


def _split_name(split: str) -> str:
    return wording.label(wording.split_names(), split)


def _heading(column: str) -> str:
    return wording.label(file_column_names(), column)


def _empty_table(
    title: str, names: Collection[str], texts: Collection[str], lines: box.Box = box.SIMPLE_HEAD, **spacing: Any
) -> Table:
    """Return a table with the named columns; those in `texts` are aligned left, the others right."""
    table = Table(title=title, title_justify="left", box=lines, **spacing)
    for name in names:
        table.add_column(_heading(name), justify="left" if name in texts else "right")
    return table


@in_language_of_messages
def print_shared_items(items: Sequence[Question], split: str, others: Sequence[Question], other: str) -> None:
    """Print how many items of a split are in another split too, and how many others have a text of it, unless 0."""
    shared = shared_questions(items, others)
    same_text = shared_questions([(text, 0) for text, _ in items], [(text, 0) for text, _ in others])
    about = {"items": len(items), "split": _split_name(split), "other": _split_name(other)}
    if shared:
        say(
            "in two splits: of {items:item|items} of {split}, {shared:is|are} in {other} too (same text and pronoun)",
            shared=shared,
            **about,
        )
    if same_text > shared:
        say(
            "in two splits: of {items:item|items} of {split}, {shared:asks|ask} about another pronoun of a text in "
            "{other}",
            shared=same_text - shared,
            **about,
        )


@in_language_of_messages
def print_shared_texts(texts: Sequence[Text], split: str, others: Sequence[Text], other: str) -> None:
    """Print the number of texts of a split that are also in another split, unless it is 0."""
    known = {each.text for each in others}
    if shared := sum(each.text in known for each in texts):
        say(
            "in two splits: of {items:text|texts} of {split}, {shared:is|are} in {other} too",
            shared=shared,
            items=len(texts),
            split=_split_name(split),
            other=_split_name(other),
        )


@in_language_of_messages
def print_trained_items(run: Run, data: Data | None, items: Sequence[Question], split: str) -> None:
    """Print the number of items of a split that are among the run's training items, unless it is 0.

    Nothing is printed for the run's own training split, or if the run's data lack pronouns or cannot be read.
    """
    is_own = data in (None, run.config.data)
    try:
        corpus = load_corpus(run.config.data)
    except UserError:  # the data of a run that was trained elsewhere may be missing
        return
    if not corpus.asks_about_pronouns or (is_own and split == "train"):
        return
    trained = corpus.questions("train")
    if is_own:
        print_shared_items(items, split, trained, "train")
    elif shared := shared_questions(items, trained):
        say(
            "seen in training: of {items:item|items} of {split}, {shared:is a training item|are training items} of "
            "{run}",
            shared=shared,
            items=len(items),
            split=_split_name(split),
            run=run.name,
        )


@in_language_of_messages
def print_contradictions(count: int, split: str) -> None:
    """Print the number of contradictory items of a split, unless it is 0.

    Such an item has the same text and the same pronoun as another item of the split, but a different antecedent.
    """
    if count:
        say(
            "contradictions: {count:item|items} of {split} have the text and pronoun of another item, but another "
            "answer",
            count=count,
            split=_split_name(split),
        )


@in_language_of_messages
def print_accuracy(run: str, split: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print the rows of `accuracy_rows` as a table."""
    title = _("{run}: task accuracy, {split} split").format(run=run, split=_split_name(split))
    table = _empty_table(title, rows[0], rows[0].keys() - {"items", "accuracy"}, box.HEAVY_HEAD)
    for row in rows:
        table.add_row(*(value_cell(name, value) for name, value in row.items()))
    console.print(table)


@in_language_of_messages
def print_answer_note(run: Run, answers: Answers | None) -> None:
    """Print a note on the answers of a run, which are the antecedents that it predicts.

    If `answers` is None, the note says why the run predicts no antecedents. Otherwise it says in how many items a right
    and a wrong candidate have the same score; if there is no such item, nothing is printed.
    """
    if answers is None:
        console.print(no_pronoun_answers(run).translated(), soft_wrap=True)
    else:
        print_undecided(answers)


@in_language_of_messages
def print_calibration(run: str, split: str, rows: Sequence[LanguageCalibration]) -> None:
    """Print the expected calibration error for each language, before and after temperature scaling."""
    title = _("{run}: expected calibration error, {split} split").format(run=run, split=_split_name(split))
    numbers = (_("items"), _("temperature"), _("before"), _("after"))
    table = headed_table(title, [_("language")], numbers, box=box.HEAVY_HEAD)
    for row in rows:
        values = f"{row.temperature:.3f}", f"{row.before:.3f}", f"{row.after:.3f}"
        table.add_row(wording.language_name(row.language), str(row.items), *values)
    console.print(table)


@in_language_of_messages
def print_fitted_here(data: str, split: str) -> None:
    """Print that the temperatures were fitted on the measured split, so that the error after calibration is biased."""
    say(
        "the temperatures were fitted on data={data}, {split} split, so the error after calibration is not that of "
        "unseen items",
        data=data,
        split=_split_name(split),
    )


@in_language_of_messages
def print_perplexity(run: str, split: str, perplexity: float, tokens: int) -> None:
    """Print the perplexity and the number of masked tokens."""
    say(
        "{run}: perplexity of {tokens:masked token|masked tokens}, {split} split: {perplexity}",
        run=run,
        split=_split_name(split),
        tokens=tokens,
        perplexity=f"{perplexity:.2f}",
    )


@in_language_of_messages
def print_label_accuracy(run: str, split: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print the rows of `accuracy_by_label`; the first row covers all texts."""
    title = _("{run}: accuracy, {split} split, 95 % intervals over texts").format(run=run, split=_split_name(split))
    columns = ("label", "texts", "this_run", "bag_of_words", "run_minus_bag")
    table = _empty_table(title, columns, ("label",), box.HEAVY_HEAD)
    for number, row in enumerate(rows):
        cells = [_with_interval(row, name) for name in ("accuracy", "bag", "more")]
        table.add_row(row["label"] if number else _("all"), str(row["texts"]), *cells)
    console.print(table)


def _with_interval(row: Mapping[str, Any], name: str) -> str:
    return format_number(row[name], 3, (row[f"{name}_low"], row[f"{name}_high"]))


@in_language_of_messages
def print_labels(rows: Sequence[Mapping[str, Any]], data: str, split: str, runs: int) -> None:
    """Print the classification accuracies on a split: the rows of `accuracy_by_policy`, one per encoder or baseline."""
    title = _("{data}, {split} split, runs: {runs}; accuracy in %, 95 % over texts").format(
        data=data, split=_split_name(split), runs=runs
    )
    table = _empty_table(title, ("policy", "texts", "accuracy", "runs", "encoder_minus"), ("policy",))
    for number, row in enumerate(rows):
        spread = "" if row["lowest"] is None else format_range(row["lowest"], row["highest"])
        accuracy = format_percent(row["accuracy"], interval_of(row))
        difference = percent_cell(row, "first_minus") if number else ""
        table.add_row(policy_name(row["policy"]), str(row["texts"]), accuracy, spread, difference)
    print_table(table)


@in_language_of_messages
def print_answers(rows: Sequence[Mapping[str, Any]], title: str) -> None:
    """Print the rows of `accuracy_table`: for each value of a factor, one row for the model and one for each baseline.

    These columns are printed only if they have values: "runs" (lowest and highest accuracy of the runs), "silent"
    (share of answers "none of them") and "contrast" (difference between the accuracies for the two values of a factor).
    "decisions" (accuracy of deciding for each candidate whether it is an antecedent) is printed only if the baseline
    that always answers "none of them" is among the rows.
    """
    several = any(row["lowest"] is not None for row in rows)
    undecided = any(row["policy"] == NONE_OF_THEM for row in rows)
    compared = "contrast" in rows[0]
    columns = {"items": True, "accuracy": True, "runs": several, "minimal_pairs": True, "decisions": undecided}
    columns |= {"silent": any(row["silent"] for row in rows), "model_minus": True, "contrast": compared}
    shown = [name for name, is_shown in columns.items() if is_shown]
    table = headed_table(title, ("", _heading("policy")), map(_heading, shown), no_wrap=True)
    for row in rows:
        cells = {
            "items": str(row["items"]),
            "accuracy": format_percent(row["accuracy"], interval_of(row)),
            "runs": "" if row["lowest"] is None else format_range(row["lowest"], row["highest"]),
            "minimal_pairs": format_percent(row["minimal_pair_accuracy"]),
            "decisions": percent_cell(row, "decision_accuracy"),
            "silent": format_percent(row["silent"]),
            "model_minus": "" if row["policy"] == MODEL else percent_cell(row, "model_minus"),
            "contrast": percent_cell(row, "contrast") if compared and row["contrast"] is not None else "",
        }
        without = value_cell("factor", row["factor"]) + _(": ") + NOT_MEASURED if row["factor"] else _("all")
        value = value_cell("value", row["value"]) if row["value"] else without
        table.add_row(value, policy_name(row["policy"]), *(cells[name] for name in shown))
    print_table(table)
    _print_left_out_note((row["low"], row["high"]) for row in rows if row["policy"] == MODEL)


def _print_left_out_note(spans: Iterable[tuple[float | None, float | None]]) -> None:
    if note := left_out_note(spans):
        console.print(wrapped(note, console.width))


def percent_cell(row: Mapping[str, Any], name: str) -> str:
    """Format the share `row[name]`, from 0 to 1, in percent, with its interval if the row has one (`interval_of`)."""
    return format_percent(row[name], interval_of(row, f"{name}_"))


@in_language_of_messages
def print_decisions(title: str, rows: Sequence[Mapping[str, Any]], runs: Collection[str]) -> None:
    """Print a table of GAP scores, one row per run, baseline, head or probe; names in `runs` are not translated."""
    table = _empty_table(title, rows[0], ("policy",), padding=(0, 0), pad_edge=False)
    for row in map(with_shown_intervals, rows):
        scores = [value_cell(name, row[name]) for name in row if name != "policy"]
        table.add_row(_row_name(row["policy"], runs), *scores)
    print_table(table)
    _print_left_out_note((row["low"], row["high"]) for row in rows)


def _row_name(name: str, runs: Collection[str]) -> str:
    if name in runs:
        return name
    if name.endswith(BOTH_WAYS_SUFFIX):
        return _("{policy}, both ways").format(policy=_row_name(name.removesuffix(BOTH_WAYS_SUFFIX), runs))
    key = name.replace(",", "").replace(" ", "_")
    return wording.name_policy_names().get(key) or stored_sentence(name)


@in_language_of_messages
def print_table_of(title: str, rows: Sequence[Mapping[str, Any]], shortcuts: Collection[str] = ()) -> None:
    """Print rows as a table without empty columns; each word of a heading is on its own line.

    Intervals that are single points are left out, and a note is printed below the table. `shortcuts` are the names of
    columns that hold the results of shortcut baselines; they are headed by the baselines' display names.
    """
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 0), pad_edge=False)
    shown = [with_shown_intervals(row) for row in rows]
    names = [name for name in (rows[0] if rows else ()) if any(row[name] not in ("", None) for row in shown)]
    for name in names:
        heading = policy_name(name) if name in shortcuts else _heading(name)
        is_text = isinstance(rows[0][name], str)
        table.add_column(heading.replace(" ", "\n"), justify="left" if is_text else "right", no_wrap=True)
    for row in shown:
        table.add_row(*(value_cell(name, row[name]) for name in names))
    print_table(table)
    _print_left_out_note((row["low"], row["high"]) for row in rows if "low" in row)


_VALUES_OF_COLUMNS = {
    "split": wording.split_names,
    "language": typed_names,
    "kind": typed_names,
    "type": wording.factor_value_names,
    "stratum": wording.factor_value_names,
    "factor": wording.factor_names,
    "value": wording.factor_value_names,
}
"""Functions that return the display names of a column's values; values in user data may have no display name."""


def value_cell(column: str, value: Any) -> str:
    """Format a value of a result file for a table in the terminal; missing values become a dash."""
    if value is None or value != value:  # NaN: not measured
        return NOT_MEASURED
    if isinstance(value, float):
        return with_minus(f"{value:.3f}")
    if column in ("name", "policy"):
        return policy_name(str(value))
    named = _VALUES_OF_COLUMNS[column]() if column in _VALUES_OF_COLUMNS else {}
    if column == "value":  # those of several factors are joined
        return pgettext("list", ", ").join(named.get(one, one) for one in str(value).split(", "))
    return named.get(str(value), str(value))


def policy_name(name: str) -> str:
    """Return the display name of a policy: a model, a shortcut baseline or a classifier that predicts answers."""
    if name.endswith(OWN_FOLDS_SUFFIX):
        return _("{policy} on own folds").format(policy=policy_name(name.removesuffix(OWN_FOLDS_SUFFIX)))
    named = wording.shortcut_names() | {
        "chance": _("chance"),
        "model": _("model"),
        "none_of_them": _("none of them"),
        "encoder": _("encoder"),
        "bag of its tokens": _("bag of its tokens"),
        "bag of words and pairs": _("bag of words and pairs"),
        "most frequent label": _("most frequent label"),
    }
    return named[name] if name in named else wording.label(wording.baseline_names(), name)


def file_column_names() -> dict[str, str]:
    """Return the headings of table columns in the terminal, keyed by the names of the columns in the result files."""
    return {
        "this_run": _("this run"),
        "worst_template": _("worst template"),
        "run_minus_bag": _("this run - bag of words"),
        "minimal_pairs": _("minimal pairs"),
        "model_minus": _("model minus it"),
        "encoder_minus": _("encoder minus it, points"),
        "split": _("split"),
        "language": _("language"),
        "kind": _("kind"),
        "type": _("type"),
        "stratum": _("stratum"),
        "label": _("label"),
        "factor": _("factor"),
        "value": _("value"),
        "name": _("name"),
        "items": _("items"),
        "texts": _("texts"),
        "words": pgettext("column", "words"),
        "characters": _("characters"),
        "no_antecedent": pgettext("column", "no antecedent"),
        "groups": _("groups"),
        "templates": _("templates"),
        "mean_distance": _("mean distance"),
        "largest_distance": _("largest distance"),
        "accuracy": _("accuracy"),
        "low": _("low"),
        "high": _("high"),
        "chance": _("chance"),
        "bag_of_words": _("bag of words"),
        "policy": _("policy"),
        "runs": pgettext("column", "runs"),
        "decisions": _("decisions"),
        "silent": _("silent"),
        "contrast": _("contrast"),
        "f1": "F1",
        "precision": _("precision"),
        "recall": _("recall"),
        "masculine": pgettext("column", "masculine"),
        "feminine": pgettext("column", "feminine"),
        "bias": _("bias"),
        "bias_low": _("bias low"),
        "bias_high": _("bias high"),
        "weighted_bias": _("weighted bias"),
        "weighted_bias_low": _("weighted bias low"),
        "weighted_bias_high": _("weighted bias high"),
    }

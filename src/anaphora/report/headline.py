"""Headline of a run (the main results of the chosen head): a table for the terminal, and a conclusion in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.table import Table

from anaphora.analysis.evidence.evidence import Evidence
from anaphora.analysis.results.scores import UNTRAINED, Cell
from anaphora.base.console import headed_table
from anaphora.base.translation import _, pgettext
from anaphora.report.numbers import NOT_MEASURED, format_number, format_percent, format_short_percent
from anaphora.report.wording import (
    Group,
    all_groups,
    baseline_names,
    head_choice_names,
    head_name,
    joined_sentences,
    kind_names,
    label,
    language_name,
    listed,
    split_names,
)

_LONGEST_NAME = 14
"""Maximum width of a baseline's name in terminal columns; a Chinese character takes two."""


def headline_table(evidence: Evidence) -> Table:
    """Return a table of the scores by language and cue category, at most 100 characters wide, without wrapped cells."""
    title = _("{split} split, {head} ({choice}), shares in %").format(
        split=label(split_names(), evidence.split),
        head=head_name(evidence.head.layer, evidence.head.head),
        choice=label(head_choice_names(), evidence.head.chosen_on),
    )
    headings = (
        _("items"),
        _("task"),
        _("candidate\n[95 %]"),
        _("quad"),
        _("mass"),
        _("lift\n(times)"),
        pgettext("headline table", "chance"),
        _("best\nbaseline"),
        _("untrained\nmean / 95th"),
    )
    spacing = {"padding": (0, 0), "pad_edge": False, "show_edge": False}
    table = headed_table(title, [""], headings, no_wrap=True, title_style="bold", **spacing)
    for group in all_groups(evidence.scores):
        is_whole = group.kind == "all"
        name = language_name(group.language) if is_whole else f" {kind_names()[group.kind]}"
        table.add_row(name, *_row_cells(group.cell), style="bold" if is_whole else "")
    return table


def headline_sentence(evidence: Evidence) -> str:
    """Return in words what the scores show about the chosen head, for each group of items (`groups_by_case`)."""
    cases = groups_by_case(evidence)
    items = _("unseen items")
    if not evidence.is_of_held_out_items:
        items = _("{split} items (the head was {choice})").format(
            split=label(split_names(), evidence.split), choice=label(head_choice_names(), evidence.head.chosen_on)
        )
    sentences = [
        _accuracy_sentence(case, cases[case], evidence, items)
        for case in ("points", "unmeasured", "open")
        if cases[case]
    ]
    for group in cases["ordinary"]:
        bars = listed([threshold_text(name, value) for name, value in unmet_thresholds(group.cell).items()])
        sentences.append(_accuracy_sentence("ordinary", [group], evidence, items, bars=bars))
    sentences += [_unsolved_sentence(group, items) for group in cases["unsolved"]]
    if below_chance := [group_name(group) for group in cases["unsolved"] if _is_below_chance(group.cell)]:
        sentences.append(
            _(
                "In {groups} that is below chance: on these items, what the model has learned points the wrong way."
            ).format(groups=listed(below_chance))
        )
    if evidence.reads_candidates and len(cases["unsolved"]) < sum(map(len, cases.values())):
        sentences.append(
            _(
                "This model’s prediction head compares the candidates’ own states with the pronoun’s: its answers need "
                "no attention between them."
            )
        )
    if evidence.head_is_supervised:
        sentences.append(
            _(
                "The labels trained the attention of this head itself, so its maps are no evidence that a "
                "head comes to attend to the antecedent by itself."
            )
        )
    return joined_sentences(sentences)


def groups_by_case(evidence: Evidence) -> dict[str, list[Group[Cell]]]:
    """Return groups of items, keyed by what the scores on these items show about the chosen head.

    A group has the items of one language, or those of one cue category ("set" or "role") in one language.

    The task is solved if the task accuracy is at least halfway from chance to 1, and if its lower bound is above chance
    and above every baseline other than untrained models. If there is no interval, the accuracy itself is compared. The
    head's candidate accuracy is compared with thresholds: chance and all baselines, including the mean and the 95th
    percentile of untrained models.

    Returns:
        Lists of groups under these keys. A cue category is listed only if its key differs from that of its language.
        "points": the task is solved, and the lower bound of the head's candidate accuracy is above all thresholds.
        "unmeasured": as for "points", but untrained models were not measured.
        "open": the task is solved and the candidate accuracy is above all thresholds, but there is no interval, since
        the items have too few templates or groups.
        "ordinary": the task is solved, but the candidate accuracy is not clearly above all thresholds.
        "unsolved": the task is not solved, or the model's answers were not measured.
    """
    names = ("points", "unmeasured", "open", "ordinary", "unsolved")
    cases: dict[str, list[Group[Cell]]] = {name: [] for name in names}
    of_language = {language: _case(whole) for language, whole in evidence.languages.items()}
    for group in all_groups(evidence.scores):
        case = _case(group.cell)
        if group.kind == "all" or case != of_language[group.language]:
            cases[case].append(group)
    return cases


def group_name(group: Group[Any]) -> str:
    """Return the name of a group of items, for use in a sentence: "English", or "English role cues"."""
    name = language_name(group.language)
    if group.kind == "all":
        return name
    return _("{spoken} {kind}").format(spoken=name, kind=kind_names()[group.kind])


def _row_cells(cell: Cell) -> list[str]:
    best = cell.best_shortcut
    untrained = [format_percent(cell.baselines.get(name)) for name in UNTRAINED]
    return [
        f"{cell.items}",
        format_percent(cell.task_accuracy),
        format_percent(cell.candidate_accuracy, cell.intervals.candidate_accuracy),
        format_percent(cell.quad_accuracy),
        format_percent(cell.antecedent_mass),
        format_number(cell.lift, 1),
        format_percent(cell.chance),
        f"{_shortened(best.name)} {format_percent(best.accuracy)}" if best else NOT_MEASURED,
        " / ".join(untrained) if set(untrained) != {NOT_MEASURED} else NOT_MEASURED,
    ]


def _least_accuracy(chance: float) -> float:
    """Return the minimum task accuracy of a solved task: halfway from chance to 1."""
    return (1 + chance) / 2


def _case(cell: Cell) -> str:
    task, chance = cell.task_accuracy, cell.chance or 0.0
    best = cell.best_shortcut
    bar = max(chance, best.accuracy) if best else chance
    ends = cell.intervals.task_accuracy
    if task is None or task < _least_accuracy(chance) or (ends.low if ends else task) <= bar:
        return "unsolved"
    if bars := unmet_thresholds(cell):
        is_above = cell.candidate_accuracy is not None and cell.candidate_accuracy > max(bars.values())
        return "open" if is_above and cell.intervals.candidate_accuracy is None else "ordinary"
    return "points" if cell.baselines.get("random_init_95") is not None else "unmeasured"


def _is_below_chance(cell: Cell) -> bool:
    """Return whether the upper bound of the task accuracy is below chance; False if there is no interval."""
    ends = cell.intervals.task_accuracy
    return ends is not None and ends.high < (cell.chance or 0.0)


def unmet_thresholds(cell: Cell) -> dict[str, float]:
    """Return the thresholds that the lower bound of the head's candidate accuracy does not exceed, keyed by name.

    The thresholds are chance and the baselines; without an interval, all are returned. "all_candidates" is the accuracy
    of a random choice among all candidates; "chance" is that of a random choice among those between which the cue
    decides (`Example.focal`).
    """
    ends = cell.intervals.candidate_accuracy
    low = ends.low if ends else 0.0
    bars = {"all_candidates": cell.chance, **cell.baselines}
    if bars.get("chance") == cell.chance:
        bars.pop("chance", None)  # the same value twice
    return {name: value for name, value in bars.items() if value is not None and low <= value}


def threshold_text(name: str, value: float) -> str:
    """Return the name and the accuracy of a baseline, or of chance ("all_candidates"), for use in a sentence."""
    return _("{rule} ({share})").format(rule=_threshold_name(name), share=share_text(value))


def _accuracy_sentence(case: str, groups: Sequence[Group[Cell]], evidence: Evidence, items: str, **values: str) -> str:
    shares = [share_text(group.cell.candidate_accuracy) for group in groups]
    if len(groups) > 1:
        shares = [
            _("{share} ({group})").format(share=share, group=group_name(group))
            for share, group in zip(shares, groups, strict=True)
        ]
    text = {
        "points": _(
            "In {groups}, {head} picks the antecedent (gives it more weight than every other candidate) in "
            "{shares} of {items} (chance {chance}), above every baseline and the 95th percentile of untrained "
            "models; this shows what the head attends to; the causal tests and the verdict say whether the "
            "model uses it."
        ),
        "unmeasured": _(
            "In {groups}, {head} picks the antecedent in {shares} of {items} (chance {chance}); untrained models were "
            "not measured, so this is no finding yet."
        ),
        "ordinary": _(
            "In {groups}, {head} picks the antecedent in {shares} of {items} (chance {chance}), which is not clearly "
            "above {bars}: no evidence that this head picks antecedents."
        ),
        "open": _(
            "In {groups}, {head} picks the antecedent in {shares} of {items} (chance {chance}), but these "
            "items come from too few templates or groups for an interval, so it is open whether the head is "
            "above every baseline."
        ),
    }[case]
    return text.format(
        groups=listed([group_name(group) for group in groups]),
        head=head_name(evidence.head.layer, evidence.head.head),
        shares=listed(shares),
        items=items,
        chance=" / ".join(dict.fromkeys(share_text(group.cell.chance) for group in groups)),
        **values,
    )


def _unsolved_sentence(group: Group[Cell], items: str) -> str:
    cell, best = group.cell, group.cell.best_shortcut
    if cell.task_accuracy is None:
        return _(
            "In {group} these scores hold no answers of the model, so they do not show that the task is solved: where "
            "its heads point should not be read as alignment."
        ).format(group=group_name(group))
    values = {
        "group": group_name(group),
        "share": share_text(cell.task_accuracy),
        "items": items,
        "chance": share_text(cell.chance),
    }
    if bar := task_threshold(cell):
        if best is not None and cell.task_accuracy <= best.accuracy:
            text = _(
                "In {group} the model answers {share} of {items} correctly, no more than a rule that uses no "
                "attention ({rule}: {best}; chance: {chance}): the task counts as not solved, so where its "
                "heads point should not be read as alignment."
            )
            return text.format(**values, rule=_threshold_name(best.name), best=share_text(best.accuracy))
        return _(
            "In {group} the model answers {share} of {items} correctly, not clearly above {bar}: the task counts as "
            "not solved, so where its heads point should not be read as alignment."
        ).format(**values, bar=bar)
    if best is None:
        return _(
            "In {group} the model answers {share} of {items} correctly (chance {chance}): the task is not solved, so "
            "where its heads point should not be read as alignment."
        ).format(**values)
    return _(
        "In {group} the model answers {share} of {items} correctly (chance {chance}, best baseline {rule} {best}): the "
        "task is not solved, so where its heads point should not be read as alignment."
    ).format(**values, rule=_threshold_name(best.name), best=share_text(best.accuracy))


def task_threshold(cell: Cell) -> str | None:
    """Return name and accuracy of the best baseline, or of chance if it is higher, for use in a sentence.

    Return None if the task accuracy was not measured, or is less than halfway from chance to 1.
    """
    if cell.task_accuracy is None or cell.task_accuracy < _least_accuracy(cell.chance or 0.0):
        return None
    best, chance = cell.best_shortcut, cell.chance or 0.0
    name, accuracy = (best.name, best.accuracy) if best and best.accuracy > chance else ("all_candidates", chance)
    return threshold_text(name, accuracy)


def _threshold_name(name: str) -> str:
    bars = {
        "all_candidates": _("chance"),
        "random_init": _("the mean of untrained models"),
        "random_init_95": _("the 95th percentile of untrained models"),
    }
    return bars.get(name) or label(baseline_names(), name)


def share_text(share: float | None) -> str:
    """Return a share (0 to 1) in percent as in `format_short_percent`, for use in a sentence."""
    return _("an unknown share") if share is None else _("{value} %").format(value=format_short_percent(share))


def _shortened(name: str) -> str:
    words = label(baseline_names(), name)
    return words if cell_len(words) <= _LONGEST_NAME else set_cell_size(words, _LONGEST_NAME - 1).rstrip() + "…"

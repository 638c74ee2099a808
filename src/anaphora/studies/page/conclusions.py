"""Verdict on the claim of a study (whether its conditions hold) and conclusions from its results, as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from anaphora.base.translation import _, pgettext
from anaphora.report.numbers import format_percent, format_spread
from anaphora.report.wording import clauses, language_name
from anaphora.studies.page.figures import PANEL_MEASURES, cue_groups
from anaphora.studies.page.words import cell_label, has_alignment, items_label, measure_label
from anaphora.studies.schema import GroupSummary, Study


def answer_sentence(study: Study) -> str:
    """Return a sentence that says whether all conditions of a study's claim hold, and how many of them do."""
    rows = study.verdict.rules
    if not rows:
        return _("Open: this study states no condition.")
    results = [row.passed for row in rows]
    held, failed, unchecked = (results.count(result) for result in (True, False, None))
    verdict = study.verdict.verdict
    text = {
        "holds": _(
            "It holds: {held} of {conditions:condition|conditions}, written down before anything ran, were met."
        ),
        "not so": _(
            "Not so: {failed} of {conditions:condition|conditions}, written down before anything ran, did not"
            " hold, and {unchecked} could not be checked."
        )
        if unchecked
        else _(
            "Not so: {failed} of {conditions:condition|conditions}, written down before anything ran, did not hold."
        ),
        "open": _(
            "Open: not everything is measured, or runs do not solve the task, so that alignment cannot be compared."
        )
        if has_alignment(study)
        else _("Open: not everything is measured."),
    }[verdict]
    return text.format(held=held, failed=failed, unchecked=unchecked, conditions=len(rows))


def conclusions(study: Study) -> list[str]:
    """Return the conclusions from a study's results: a few sentences for each language and cue category."""
    sentences: list[str] = []
    cells = study.cells
    for language in study.measured_languages:
        kinds = dict.fromkeys(kind for cell in cells for kind in cue_groups(cell.groups.get(language, {})))
        for kind in kinds:
            by_cell = {
                cell.name: cell.groups[language][kind] for cell in cells if kind in cell.groups.get(language, {})
            }
            title = _("{spoken}, {kind}").format(spoken=language_name(language), kind=items_label(kind))
            sentences += _group_conclusions(title, by_cell, study)
    return sentences


def _group_conclusions(group: str, by_cell: Mapping[str, GroupSummary], study: Study) -> Iterator[str]:
    measured = {name: summary for name, summary in by_cell.items() if summary.is_solved is not None}
    solved = [name for name, summary in measured.items() if summary.is_solved]
    if not measured:
        return
    limit = f"{100 * study.solved:g}"
    if not solved:
        text = (
            _(
                "{group}: no cell solves the task (a median task accuracy of at least {limit} %), so "
                "alignment is not compared."
            )
            if has_alignment(study)
            else _("{group}: no cell solves the task (a median task accuracy of at least {limit} %).")
        )
        yield text.format(group=group, limit=limit)
        return
    unsolved = [cell_label(name, study) for name in measured if name not in solved]
    named = pgettext("list", ", ").join(unsolved)
    yield (
        _(
            "{group}: {solved} of {cells:cell solves|cells solve} the task (a median task accuracy of at least "
            "{limit} %); not {unsolved}."
        )
        if unsolved
        else _(
            "{group}: {solved} of {cells:cell solves|cells solve} the task (a median task accuracy of at "
            "least {limit} %)."
        )
    ).format(group=group, solved=len(solved), cells=len(measured), limit=limit, unsolved=named)
    accuracies = {
        name: measured[name].measures["candidate_accuracy"]
        for name in solved
        if "candidate_accuracy" in measured[name].measures
    }
    if accuracies:
        lowest = min(accuracies, key=lambda name: accuracies[name].median)
        highest = max(accuracies, key=lambda name: accuracies[name].median)
        text = (
            _("{group}: among them the chosen head’s candidate accuracy is highest with {highest}, {share} %.")
            if lowest == highest
            else _(
                "{group}: among them the chosen head’s candidate accuracy is highest with {highest}, {share} %, and "
                "lowest with {lowest}, {lowest_share} %."
            )
        )
        yield text.format(
            group=group,
            highest=cell_label(highest, study),
            share=format_spread(accuracies[highest]),
            lowest=cell_label(lowest, study),
            lowest_share=format_spread(accuracies[lowest]),
        )
    for measure in PANEL_MEASURES:
        differences = []
        for name, summary in measured.items():
            difference = summary.against_base.get(measure)
            if difference and difference.interval and not difference.interval.low <= 0 <= difference.interval.high:
                mean = format_percent(difference.mean, difference.interval)
                differences.append(_("{cell} by {mean}").format(cell=cell_label(name, study), mean=mean))
        if differences:
            text = _("{group}: {measure} differs from the base’s, in points: {differences}.")
            yield text.format(group=group, measure=measure_label(measure), differences=clauses(differences))

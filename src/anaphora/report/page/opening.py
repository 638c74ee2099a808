"""The top of the page: the summary sentence, the facts, and a comparison of several runs."""

from __future__ import annotations

from collections.abc import Sequence

from anaphora.analysis.evidence.comparison import GroupSpread, RowDivergence
from anaphora.analysis.evidence.evidence import Evidence
from anaphora.base.locale.translation import _, pgettext
from anaphora.report.groups import kind_groups
from anaphora.report.headline import headline_sentence
from anaphora.report.numbers import NOT_MEASURED, format_number, format_spread
from anaphora.report.page.elements import PageElement, ReportRun, Section, TableElement
from anaphora.report.wording import (
    group_label,
    head_choice_names,
    head_name,
    label,
    language_name,
    short_measure_names,
    split_names,
)


def comparison_section(
    runs: Sequence[ReportRun], spreads: Sequence[GroupSpread] = (), divergences: Sequence[RowDivergence] = ()
) -> Section:
    """Return several runs: the verdict of each, median and spread of the measures, and how far their rows are apart."""
    elements: list[PageElement] = []
    for title, parts in (
        (_("Verdicts on the layer"), [run.evidence.verdict for run in runs]),
        (_("Verdicts on the one head"), [run.evidence.verdict_at_head for run in runs]),
    ):
        verdicts = [{group.label: _(group.cell.verdict) for group in kind_groups(one)} for one in parts]
        names = list(dict.fromkeys(name for by_group in verdicts for name in by_group))
        if names:
            rows = [[name, *(by_group.get(name, NOT_MEASURED) for by_group in verdicts)] for name in names]
            columns = [_("language, cue"), *(run.name for run in runs)]
            elements.append(TableElement(title=title, columns=columns, rows=rows, texts=len(runs) + 1))
    if spreads:
        measures = short_measure_names()
        rows = [
            [group_label(row.language, row.kind), *(format_spread(row.measures[measure]) for measure in measures)]
            for row in spreads
        ]
        elements.append(
            TableElement(
                title=_("Median over runs, and in brackets the lowest and the highest, in %"),
                columns=[_("language, cue"), *measures.values()],
                rows=rows,
            )
        )
    if divergences:
        rows = [
            [f"{row.run} – {row.other}", language_name(row.language), format_number(row.divergence, 2, row.interval)]
            for row in divergences
        ]
        columns = [_("runs"), _("language"), _("bits")]
        elements.append(
            TableElement(
                title=_(
                    "How far the rows of the chosen heads are apart (Jensen-Shannon): 0 is the same, 1 no word in "
                    "common"
                ),
                columns=columns,
                rows=rows,
                texts=2,
            )
        )
    recipes = [run.recipe for run in runs]
    is_one = recipes[0] is not None and all(recipe == recipes[0] for recipe in recipes)
    difference = (
        _("Runs differ in their random start and order of data, and in nothing else.")
        if is_one
        else _(
            "These runs differ in their settings or data, not in their random start alone: a difference between them "
            "has no single cause, and a median over them is one over different models."
        )
    )
    return Section(
        name="runs",
        title=_("{count} runs side by side").format(count=len(runs)),
        explanation=_(
            "{difference} Their heads are not aligned, so scores are put together here and head numbers never are."
        ).format(difference=difference),
        elements=elements,
    )


def run_headline(evidence: Evidence) -> str:
    """Return the summary sentence on the run; empty if no language was scored."""
    return headline_sentence(evidence) if evidence.languages else ""


def run_facts(run: ReportRun) -> list[tuple[str, str]]:
    """Return facts about the run, by name."""
    evidence = run.evidence
    items = sum(whole.items for whole in evidence.languages.values())
    seconds = evidence.train_seconds
    facts = {
        _("run"): run.name,
        _("seed"): evidence.seed,
        _("split"): label(split_names(), evidence.split),
        _("items"): f"{items:,}" if items else None,
        pgettext("fact", "left out"): _left_out(evidence),
        _("not in the vocabulary"): _("{items} of {all} items have a pronoun or candidate with {words}").format(
            items=f"{run.unread.items:,}", all=f"{run.unread.of:,}", words=run.unread.listed
        )
        if run.unread
        else None,
        _("equal scores"): _("{items} items; of k equal answers each counts 1/k").format(
            items=f"{evidence.undecided:,}"
        )
        if evidence.undecided
        else None,
        _("head"): _("{head}, {choice}").format(
            head=head_name(evidence.head.layer, evidence.head.head),
            choice=label(head_choice_names(), evidence.head.chosen_on),
        ),
        pgettext("number of", "untrained models"): evidence.untrained_models,
        _("training"): _("{minutes} min").format(minutes=f"{seconds / 60:.{0 if seconds >= 600 else 1}f}")
        if seconds
        else None,
    }
    return [(name, str(value)) for name, value in facts.items() if value is not None]


def _left_out(evidence: Evidence) -> str | None:
    """Return how many items are left out of the scores, and why; None where none are."""
    counts = [
        _("{items} ({reason})").format(items=f"{count:,}", reason=_(reason))
        for reason, count in evidence.dropped.items()
        if count
    ]
    return pgettext("list", ", ").join(counts) or None

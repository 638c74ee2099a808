"""The top of the page: the sentence that sums it up, the facts, and several runs side by side."""

from __future__ import annotations

from collections.abc import Sequence

from anaphora.analysis.results.evidence import Evidence
from anaphora.analysis.results.several_runs import GroupSpread, RowDivergence
from anaphora.report.groups import kind_groups
from anaphora.report.headline import headline_sentence
from anaphora.report.numbers import NOT_MEASURED, format_number, format_spread
from anaphora.report.page.elements import PageElement, ReportRun, Section, TableElement
from anaphora.report.page.sections.cells import column_names
from anaphora.report.wording import group_label, head_name, label, labels, language_name, phrase


def comparison_section(
    runs: Sequence[ReportRun], spreads: Sequence[GroupSpread] = (), divergences: Sequence[RowDivergence] = ()
) -> Section:
    """Several runs: the verdict of each, median and spread of the measures, and how far their rows are apart."""
    elements: list[PageElement] = []
    for title, parts in (
        ("verdicts", [run.evidence.verdict for run in runs]),
        ("verdicts_at_head", [run.evidence.verdict_at_head for run in runs]),
    ):
        verdicts = [{group.label: label("verdicts", group.cell.verdict) for group in kind_groups(one)} for one in parts]
        names = list(dict.fromkeys(name for by_group in verdicts for name in by_group))
        if names:
            rows = [[name, *(by_group.get(name, NOT_MEASURED) for by_group in verdicts)] for name in names]
            columns = [*column_names("group"), *(run.name for run in runs)]
            elements.append(TableElement(title=phrase("runs", title), columns=columns, rows=rows, texts=len(runs) + 1))
    if spreads:
        measures = labels("short_measures")
        rows = [
            [
                group_label(row.language, row.kind),
                *(format_spread(row.measures[measure]) for measure in measures),
            ]
            for row in spreads
        ]
        elements.append(
            TableElement(
                title=phrase("runs", "spread"), columns=[*column_names("group"), *measures.values()], rows=rows
            )
        )
    if divergences:
        rows = [
            [
                f"{row.run} – {row.other}",
                language_name(row.language),
                format_number(row.divergence, 2, row.interval),
            ]
            for row in divergences
        ]
        columns = column_names("runs", "language", "bits")
        elements.append(TableElement(title=phrase("runs", "divergence"), columns=columns, rows=rows, texts=2))
    recipes = [run.recipe for run in runs]
    is_one = recipes[0] is not None and all(recipe == recipes[0] for recipe in recipes)
    difference = "same_settings" if is_one else "other_settings"
    return Section(
        name="runs",
        title=phrase("runs", "title", count=len(runs)),
        explanation=phrase("runs", "explanation", difference=phrase("runs", difference)),
        elements=elements,
    )


def run_headline(evidence: Evidence) -> str:
    """The sentence that one may say about the run; empty where no language was scored."""
    return headline_sentence(evidence) if evidence.languages else ""


def run_facts(run: ReportRun) -> list[tuple[str, str]]:
    """What the run is: name and value of a few facts."""
    evidence = run.evidence
    items = sum(whole.items for whole in evidence.languages.values())
    seconds = evidence.train_seconds
    facts = {
        "run": run.name,
        "seed": evidence.seed,
        "split": label("splits", evidence.split),
        "items": f"{items:,}" if items else None,
        "left_out": _left_out(evidence),
        "equal_scores": phrase("facts", "undecided", items=f"{evidence.undecided:,}") if evidence.undecided else None,
        "head": phrase(
            "facts",
            "chosen_head",
            head=head_name(evidence.head.layer, evidence.head.head),
            choice=label("head_choices", evidence.head.chosen_on),
        ),
        "untrained_models": evidence.untrained_models,
        "training": phrase("facts", "minutes", minutes=f"{seconds / 60:.{0 if seconds >= 600 else 1}f}")
        if seconds
        else None,
    }
    return [(phrase("facts", name), str(value)) for name, value in facts.items() if value is not None]


def _left_out(evidence: Evidence) -> str | None:
    """How many items are left out of the scores, and why; None where none are."""
    counts = [
        phrase("facts", "reason", items=f"{count:,}", reason=label("drop_reasons", reason))
        for reason, count in evidence.dropped.items()
        if count
    ]
    return phrase("joined", "comma").join(counts) or None

"""The page of a study: question, prediction, verdict, figures, tables and plain conclusions in one offline file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

from anaphora.analysis.results.typed_json import Interval
from anaphora.base.files import write_text
from anaphora.report.numbers import NOT_MEASURED, format_number, format_spread
from anaphora.report.page.elements import (
    FigureElement,
    GroupVerdict,
    NoteElement,
    PageElement,
    RuleResult,
    Section,
    TableElement,
    VerdictElement,
)
from anaphora.report.page.offline import font_placeholder, read_asset, template_environment, with_fonts
from anaphora.report.page.write import inline_figure
from anaphora.report.wording import clauses, label, language_name, phrase
from anaphora.studies.page.figures import (
    PANEL_MEASURES,
    cells_figure,
    cue_groups,
    interventions_figure,
    series_figure,
    series_of,
)
from anaphora.studies.page.words import (
    cell_label,
    condition_text,
    items_label,
    judged_spread,
    measure_label,
    measure_text,
    names_of,
    own_words,
    plain_label,
    points_text,
    prediction_of,
    question_of,
    status_text,
    table_title,
    value_in,
)
from anaphora.studies.schema import GroupSummary, RuleOutcome, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STUDY_PAGE = "study"
"""What the name of a study's page begins with."""
_SIGNS = {"holds": "yes", "not so": "no", "open": "open"}
_ITEMS = ("set", "role", "all")
"""Groups whose interactions are shown."""


def draw_study_figures(study: Study) -> dict[str, Figure]:
    """The figures of a study by name: each language's cells, changed models, and measures that run along an axis."""
    figures: dict[str, Figure | None] = {
        f"cells_{language}": cells_figure(study, language) for language in study.measured_languages
    }
    figures["changes"] = interventions_figure(study)
    figures |= {name: series_figure(study, *series) for name, series in series_of(study).items()}
    return {name: figure for name, figure in figures.items() if figure is not None}


def figure_alt(study: Study, name: str) -> str:
    """What a figure of `draw_study_figures` shows, for those who do not see it."""
    series = series_of(study).get(name)
    if series:
        axis, measure = series
        values = {"axis": label("study_axes", axis), "measure": measure_label(measure)}
        return phrase("study_figures", "series_alt", question=question_of(study), **values)
    if name == "changes":
        return phrase("study_figures", "interventions_alt", question=question_of(study))
    spoken = language_name(name.removeprefix("cells_"))
    return phrase("study_figures", "cells_alt", question=question_of(study), spoken=spoken)


def write_study_page(
    path: Path, study: Study, figures: Mapping[str, Figure], translations: Mapping[str, str] | None = None
) -> None:
    """Write a study as one HTML file that needs nothing else.

    Args:
        path: of the file.
        figures: those of `draw_study_figures`.
        translations: where the page links to for the same in other languages: an address by language.
    """
    pictures = {(0, name): inline_figure(figure, f"{name}-") for name, figure in figures.items()}
    runs = [run for cell in study.cells for run in cell.runs]
    done = sum(run.status == "finished" for run in runs)
    seconds = sum(run.seconds or 0.0 for run in runs)
    html = template_environment().get_template("single.html.j2").render(
        title=question_of(study),
        translations=translations or {},
        lead=phrase("study", "lead", study=study.name, prediction=prediction_of(study)),
        openings=[answer_sentence(study)],
        facts=[
            (phrase("study", "runs_finished"), phrase("study", "count_of", count=done, all=len(runs))),
            (phrase("study", "cells"), str(len(study.cells))),
            (phrase("study", "seeds"), phrase("joined", "comma").join(map(str, study.seeds))),
            (phrase("study", "hours"), format_number(seconds / 3600, 2) if seconds else NOT_MEASURED),
            # What is measured without training has no split and chooses no head.
            *(
                [(phrase("study", "measured_on"), phrase("study", "split", split=label("splits", study.split)))]
                if seconds
                else []
            ),
            (phrase("study", "beginning"), " ".join(study.base) or phrase("study", "defaults")),
        ],
        sections=sections(study, figures),
        pictures=pictures,
        style=read_asset("report.css"),
        font_mark=font_placeholder(),
    )  # fmt: skip
    write_text(path, with_fonts(html, html, (400, 700)))


def answer_sentence(study: Study) -> str:
    """The answer in one sentence."""
    rows = study.verdict.rules
    results = [row.passed for row in rows]
    held, failed, unchecked = (results.count(result) for result in (True, False, None))
    verdict = study.verdict.verdict
    name = "not_so_unchecked" if verdict == "not so" and unchecked else verdict
    return phrase("study_answers", name, held=held, failed=failed, unchecked=unchecked, conditions=len(rows))


def sections(study: Study, figures: Mapping[str, Figure]) -> list[Section]:
    """The page's sections in the order of the argument."""
    pictures = [
        FigureElement(name=name, figure=figure, alt=figure_alt(study, name)) for name, figure in figures.items()
    ]
    notes = [NoteElement(text=text) for text in conclusions(study)]
    return [
        _section("verdict", list(verdict_elements(study)), phrase("study", "verdict_missing")),
        _section("conclusions", notes, phrase("study", "conclusions_missing")),
        _section("figures", pictures),
        _section("cells", list(_cell_tables(study))),
        _section("interactions", list(_interaction_tables(study)), phrase("study", "interactions_missing")),
        _section("runs", [_run_table(study)]),
    ]


def _section(name: str, elements: Sequence[PageElement], missing: str | None = None) -> Section:
    return Section(
        name=name,
        title=phrase("study", f"{name}_title"),
        explanation=phrase("study", f"{name}_explanation"),
        elements=elements,
        missing=missing or phrase("study", "nothing"),
    )


def conclusions(study: Study) -> list[str]:
    """What a study's numbers allow one to say, a sentence or two for each language and kind of cue."""
    sentences: list[str] = []
    cells = study.cells
    for language in study.measured_languages:
        kinds = dict.fromkeys(kind for cell in cells for kind in cue_groups(cell.groups.get(language, {})))
        for kind in kinds:
            by_cell = {
                cell.name: cell.groups[language][kind] for cell in cells if kind in cell.groups.get(language, {})
            }
            title = phrase("joined", "group", spoken=language_name(language), kind=items_label(kind))
            sentences += _group_conclusions(title, by_cell, study.solved, names_of(study))
    return sentences


def _group_conclusions(
    group: str, by_cell: Mapping[str, GroupSummary], threshold: float, names: Mapping[str, str]
) -> Iterator[str]:
    measured = {name: summary for name, summary in by_cell.items() if summary.is_solved is not None}
    solved = [name for name, summary in measured.items() if summary.is_solved]
    if not measured:
        return
    limit = f"{100 * threshold:g}"
    if not solved:
        yield phrase("study", "none_solves", group=group, limit=limit)
        return
    unsolved = [cell_label(name, names) for name in measured if name not in solved]
    counts = {"group": group, "solved": str(len(solved)), "cells": str(len(measured)), "limit": limit}
    comma = phrase("joined", "comma")
    yield phrase("study", "some_solve" if unsolved else "all_solve", **counts, unsolved=comma.join(unsolved))
    accuracies = {
        name: measured[name].measures["candidate_accuracy"]
        for name in solved
        if "candidate_accuracy" in measured[name].measures
    }
    if accuracies:
        lowest = min(accuracies, key=lambda name: accuracies[name].median)
        highest = max(accuracies, key=lambda name: accuracies[name].median)
        yield phrase(
            "study",
            "highest" if lowest == highest else "highest_and_lowest",
            group=group,
            highest=cell_label(highest, names),
            share=format_spread(accuracies[highest]),
            lowest=cell_label(lowest, names),
            lowest_share=format_spread(accuracies[lowest]),
        )
    for measure in PANEL_MEASURES:
        differences = [
            _difference_text(cell_label(name, names), difference.median, difference.interval)
            for name, summary in measured.items()
            if (difference := summary.against_base.get(measure)) and _excludes_zero(difference.interval)
        ]
        if differences:
            values = {"measure": measure_label(measure), "differences": clauses(differences)}
            yield phrase("study", "differences", group=group, **values)


def _excludes_zero(interval: Interval | None) -> TypeGuard[Interval]:
    return interval is not None and (interval.low > 0 or interval.high < 0)


def _difference_text(cell: str, middle: float, interval: Interval) -> str:
    median, low, high = (format_number(100 * value, 1) for value in (middle, *interval))
    return phrase("study", "difference", cell=cell, median=median, low=low, high=high)


def verdict_elements(study: Study) -> Iterator[PageElement]:
    """A study's verdict with all of its conditions; nothing where it states none."""
    rows = study.verdict.rules
    if not rows:
        return
    names = names_of(study)
    rules = [
        RuleResult(
            rule=_rule_cells(row, names),
            question=own_words(row.statement, row.statement_zh),
            value=clauses([value_in(language, judged_spread(row, spread)) for language, spread in row.spreads.items()])
            or NOT_MEASURED,
            needed=condition_text(row),
            passed=row.passed,
        )
        for row in rows
    ]
    verdict = study.verdict.verdict
    yield VerdictElement(
        columns=[],
        counted="conditions",
        rows=[GroupVerdict("", phrase("study_verdicts", verdict), _SIGNS[verdict], [], rules)],
        rule_columns=[
            *(phrase("study_columns", name) for name in ("cell", "condition")),
            *(phrase("columns", name) for name in ("measured", "needed", "result")),
        ],
    )


def _rule_cells(row: RuleOutcome, names: Mapping[str, str]) -> str:
    cell, baseline = cell_label(row.cell, names), row.baseline_cell
    if not baseline:
        return cell
    return phrase("study", "difference_of_cells", cell=cell, baseline=cell_label(baseline, names))


def _cell_tables(study: Study) -> Iterator[PageElement]:
    names = names_of(study)
    for language in study.measured_languages:
        measures = dict.fromkeys(
            measure for group in study.groups_in(language) for measure in group.measures if measure != "items"
        )
        rows = []
        for cell in study.table_cells:
            for group, summary in cell.groups.get(language, {}).items():
                values = [measure_text(summary, measure) for measure in measures]
                rows.append([cell_label(cell.name, names), items_label(group), _solving(summary), *values])
        if rows:
            columns = [phrase("study_columns", name) for name in ("cell", "items", "solving")]
            yield TableElement(
                title=table_title("study", language),
                columns=[*columns, *map(measure_label, measures)],
                rows=rows,
                texts=2,
            )


def _solving(group: GroupSummary) -> str:
    """How many seeds solve the task."""
    if group.solved is None:
        return NOT_MEASURED
    return phrase("study", "count_of", count=group.solved, all=group.runs)


def _interaction_tables(study: Study) -> Iterator[PageElement]:
    rows: list[Sequence[str]] = []
    for row in study.interactions:
        if row.group in _ITEMS and row.measure in PANEL_MEASURES:
            ends = [format_number(100 * end, 1) for end in row.interval or ()]
            rows.append(
                [
                    cell_label(row.cell, names_of(study)),
                    language_name(row.language),
                    items_label(row.group),
                    measure_label(row.measure),
                    points_text(row),
                    phrase("study", "interval", low=ends[0], high=ends[1]) if ends else NOT_MEASURED,
                    str(row.pairs),
                ]
            )
    if rows:
        names = ("cell", "language", "items", "measure", "beyond", "interval", "seeds")
        columns = [phrase("study_columns", name) for name in names]
        yield TableElement(title=phrase("study", "interactions"), columns=columns, rows=rows, texts=4)


def _run_table(study: Study) -> TableElement:
    rows = [
        [
            _cell_and_folder(cell.name, names_of(study)),
            str(run.seed),
            status_text(run.status, run.error),
            NOT_MEASURED if run.head is None else ".".join(map(str, run.head)),
            NOT_MEASURED if run.seconds is None else format_number(run.seconds, 0),
            " ".join(cell.overrides) or NOT_MEASURED,
        ]
        for cell in study.cells
        for run in cell.runs
    ]
    columns = [phrase("study_columns", name) for name in ("cell", "seed", "state", "head", "seconds", "changes")]
    return TableElement(title=phrase("study", "runs"), columns=columns, rows=rows, texts=6, folded=True)


def _cell_and_folder(cell: str, names: Mapping[str, str]) -> str:
    """A cell, and its folder where that is not called alike."""
    name = cell_label(cell, names)
    return name if name == plain_label(cell) else phrase("study", "cell_and_folder", cell=name, folder=cell)

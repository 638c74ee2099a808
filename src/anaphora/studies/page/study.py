"""HTML page of a study, in one self-contained file: question, prediction, verdict, conclusions, figures and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from anaphora.base.translation import _, pgettext
from anaphora.report.numbers import NOT_MEASURED, format_number, format_percent
from anaphora.report.page.elements import (
    FigureElement,
    GroupVerdict,
    NoteElement,
    PageElement,
    RuleResult,
    Section,
    TableElement,
    VerdictElement,
    table_of,
    with_rows,
)
from anaphora.report.page.offline import write_page
from anaphora.report.page.write import inline_figure
from anaphora.report.wording import clauses, joined_sentences, label, language_name, split_names
from anaphora.studies.page import words
from anaphora.studies.page.conclusions import answer_sentence, conclusions
from anaphora.studies.page.figures import PANEL_MEASURES, cells_figure, interventions_figure, series_figure, series_of
from anaphora.studies.schema import GroupSummary, RuleOutcome, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STUDY_PAGE = "study"
"""Stem of the file name of a study's page."""
_SIGNS = {"holds": "yes", "not so": "no", "open": "open"}
_ITEMS = ("set", "role", "all")
"""Groups of items for which the table of interactions has rows."""


def draw_study_figures(study: Study) -> dict[str, Figure]:
    """Draw the figures of a study and return them keyed by name.

    These are a comparison of the cells (configurations) for each language, a figure of the interventions, and a plot
    for each measure that is plotted against a quantity such as distance (`series_of`).
    """
    figures: dict[str, Figure | None] = {
        f"cells_{language}": cells_figure(study, language) for language in study.measured_languages
    }
    figures["changes"] = interventions_figure(study)
    figures |= {name: series_figure(study, *series) for name, series in series_of(study).items()}
    return {name: figure for name, figure in figures.items() if figure is not None}


def figure_alt(study: Study, name: str) -> str:
    """Return the alternative text of the figure with this name in `draw_study_figures`."""
    values = {"question": words.question_of(study)}
    if name in series_of(study):
        axis, measure = series_of(study)[name]
        values |= {"axis": label(words.axis_names(), axis), "measure": words.measure_label(measure)}
        text = _("{question} {measure} by {axis}; the tables of the page have the numbers")
    elif name == "changes":
        text = _(
            "{question} Task accuracy as trained and under each intervention; the tables of the page have the numbers"
        )
    else:
        values["spoken"] = language_name(name.removeprefix("cells_"))
        text = _(
            "{spoken}: {question} Median and range over seeds of every cell; the tables of the page have the numbers"
        )
    return text.format(**values)


def write_study_page(
    path: Path, study: Study, figures: Mapping[str, Figure], translations: Mapping[str, str] | None = None
) -> None:
    """Write the page of a study as one self-contained HTML file.

    Args:
        path: path of the file.
        study: results of the study.
        figures: figures from `draw_study_figures`.
        translations: URL of the page in each of the other languages, keyed by language.
    """
    runs = [run for cell in study.cells for run in cell.runs]
    done = sum(run.status == "finished" for run in runs)
    seconds = sum(run.seconds or 0.0 for run in runs)
    # Recurrent networks have no heads, and models that label texts choose none.
    chooses_heads = any(run.head is not None for run in runs)
    measured = (
        _("{split} split, heads chosen on the development split")
        if chooses_heads
        else pgettext("measured on", "{split} split")
    )
    write_page(
        path,
        "single.html.j2",
        title=words.question_of(study),
        translations=translations or {},
        lead=_("Study {study}. Predicted: {prediction}").format(
            study=study.name, prediction=words.prediction_of(study)
        ),
        openings=[answer_sentence(study)],
        facts=[
            (_("runs finished"), _("{count} of {all}").format(count=done, all=len(runs))),
            (_("cells"), str(len(study.cells))),
            (_("seeds"), pgettext("list", ", ").join(map(str, study.seeds))),
            (_("hours of training"), format_number(seconds / 3600, 2) if seconds else NOT_MEASURED),
            # Measures without training have no split and no chosen head.
            *([(_("measured on"), measured.format(split=label(split_names(), study.split)))] if seconds else []),
            (_("settings of all cells"), " ".join(study.base) or _("the defaults")),
        ],
        sections=_sections(study, figures),
        pictures={(0, name): inline_figure(figure, f"{name}-") for name, figure in figures.items()},
    )


def _explained(study: Study, text: str, of_alignment: str) -> str:
    """Return `text`, followed by `of_alignment` if the study measures how well attention identifies the antecedent."""
    return joined_sentences([text, of_alignment] if words.has_alignment(study) else [text])


def _sections(study: Study, figures: Mapping[str, Figure]) -> list[Section]:
    return [
        Section(
            name="verdict",
            title=_("Does the claim hold?"),
            explanation=_(
                "Each condition is about the median over seeds, unless it names the lowest or the highest, and must "
                "hold in every language it names."
            ),
            elements=list(verdict_elements(study)),
            missing=_("This study states no condition."),
        ),
        Section(
            name="conclusions",
            title=_("Conclusions"),
            explanation=_explained(
                study,
                _(
                    "Differences are taken seed by seed; the numbers are their mean over seeds and, in "
                    "brackets, its 95 % interval."
                ),
                _("Alignment is compared only between runs that both solve the task."),
            ),
            elements=[NoteElement(text=text) for text in conclusions(study)],
            missing=_("Beyond the conditions above, no measured predictions or heads can be compared."),
        ),
        Section(
            name="figures",
            title=_("Cell by cell"),
            explanation=_("A mark is the median over seeds, its line the lowest and the highest seed."),
            elements=[
                FigureElement(name=name, figure=figure, alt=figure_alt(study, name)) for name, figure in figures.items()
            ],
            missing=_("Nothing has been measured yet."),
        ),
        Section(
            name="cells",
            title=_("The numbers"),
            explanation=_explained(
                study,
                _("Median and, in brackets, the lowest and the highest seed."),
                _("A tilde marks alignment of a cell that does not solve the task."),
            ),
            elements=list(_cell_tables(study)),
            missing=_("Nothing has been measured yet."),
        ),
        Section(
            name="interactions",
            title=_("Do two changes add up?"),
            explanation=_("What both do together, minus what each does alone, in points; 0 if they add up."),
            elements=with_rows(_interaction_table(study)),
            missing=_("No pair of changes has been measured both together and separately."),
        ),
        Section(
            name="runs",
            title=_("Every run"),
            explanation=_("Runs that failed or are not there yet are listed like the others."),
            elements=[_run_table(study)],
            missing=_("Nothing has been measured yet."),
        ),
    ]


def verdict_elements(study: Study) -> Iterator[PageElement]:
    """Yield the page element with the verdict of a study and all its conditions, if there are any."""
    rows = study.verdict.rules
    if not rows:
        return
    rules = [
        RuleResult(
            rule=_rule_cells(row, study),
            question=words.in_page_language(row.statement, row.statement_zh),
            value=clauses(
                [
                    words.value_in(language, words.judged_spread(row, row.spreads.get(language)))
                    for language in words.judged_languages(row)
                ]
            )
            or NOT_MEASURED,
            needed=words.condition_text(row),
            passed=row.passed,
        )
        for row in rows
    ]
    verdict = study.verdict.verdict
    title = {"holds": _("It holds"), "not so": _("Not so"), "open": _("Open")}[verdict]
    yield VerdictElement(
        columns=[],
        counted="conditions",
        rows=[GroupVerdict("", title, _SIGNS[verdict], [], rules)],
        rule_columns=[_("cell"), _("condition"), _("measured"), _("needed"), _("result")],
    )


def _rule_cells(row: RuleOutcome, study: Study) -> str:
    cell = words.cell_label(row.cell, study)
    if not row.baseline_cell:
        return cell
    return _("{cell} − {baseline}").format(cell=cell, baseline=words.cell_label(row.baseline_cell, study))


def _cell_tables(study: Study) -> Iterator[PageElement]:
    for language in study.measured_languages:
        measures = dict.fromkeys(
            measure for group in study.groups_in(language) for measure in group.measures if measure != "items"
        )
        rows = []
        for cell in study.table_cells:
            for group, summary in cell.groups.get(language, {}).items():
                values = [words.measure_text(summary, measure) for measure in measures]
                rows.append([words.cell_label(cell.name, study), words.items_label(group), _solving(summary), *values])
        if rows:
            columns = [_("cell"), _("kind of items"), _("seeds that solve it")]
            yield TableElement(
                title=words.table_title(language),
                columns=[*columns, *map(words.measure_label, measures)],
                rows=rows,
                texts=2,
            )


def _solving(group: GroupSummary) -> str:
    if group.solved is None:
        return NOT_MEASURED
    return _("{count} of {all}").format(count=group.solved, all=group.runs)


def _interaction_table(study: Study) -> TableElement:
    rows = [
        {
            _("cell"): words.cell_label(row.cell, study),
            _("language"): language_name(row.language),
            _("kind of items"): words.items_label(row.group),
            _("measure"): words.measure_label(row.measure),
            _("beyond the sum (points)"): words.spread_text(row, format_percent),
            _("mean [95 %]"): format_percent(row.mean, row.interval),
            pgettext("number of", "seeds"): str(row.pairs),
        }
        for row in study.interactions
        if row.group in _ITEMS and row.measure in PANEL_MEASURES
    ]
    return table_of(rows, _("Interactions"), texts=4)


def _run_table(study: Study) -> TableElement:
    rows = [
        {
            _("cell"): _cell_and_folder(cell.name, study),
            _("seed"): str(run.seed),
            _("state"): words.status_text(run.status, run.error),
            _("head chosen (layer.head)"): NOT_MEASURED if run.head is None else ".".join(map(str, run.head)),
            _("seconds of training"): format_number(run.seconds, 0),
            _("changes"): " ".join(cell.overrides) or NOT_MEASURED,
        }
        for cell in study.cells
        for run in cell.runs
    ]
    return table_of(rows, _("Runs"), texts=6, folded=True)


def _cell_and_folder(cell: str, study: Study) -> str:
    """Return the display name of a cell (configuration), and in brackets that of its folder if the names differ."""
    name = words.cell_label(cell, study)
    return name if name == words.plain_label(cell) else _("{cell} ({folder})").format(cell=name, folder=cell)

"""HTML page that lists all studies in a folder, with question, verdict, conditions and figures of each study."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from anaphora.base.translation import _, spoken_language
from anaphora.report.page.elements import FigureElement, PageElement, Section
from anaphora.report.page.offline import other_pages, write_page
from anaphora.report.page.write import inline_figure
from anaphora.studies.page.conclusions import answer_sentence
from anaphora.studies.page.figures import PANEL_MEASURES, cells_figure, series_figure, series_of
from anaphora.studies.page.study import STUDY_PAGE, figure_alt, verdict_elements
from anaphora.studies.page.words import axis_value, prediction_of, question_of, verdict_names
from anaphora.studies.schema import Study, read_study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INDEX = "index"
"""Stem of the page's file name."""
_WAY_OUT = "run that study again to write it, or move its folder away"


def read_studies(folder: Path, without: str | None = None) -> dict[str, Study]:
    """Read the `study.json` of each subfolder except `without`, keyed by name of the subfolder.

    Raises:
        UserError: a file is damaged.
    """
    paths = [path for path in sorted(folder.glob("*/study.json")) if path.parent.name != without]
    return {path.parent.name: read_study(path, _WAY_OUT) for path in paths}


def write_study_index(folder: Path, names: Mapping[str, str]) -> None:
    """Write the page that lists all studies in a folder, in the current language.

    `names` maps each language in which the page is written to the page's file name.

    Raises:
        UserError: the `study.json` of a study is damaged.
    """
    page = names[spoken_language()]
    read = read_studies(folder)
    studies = {_page_name(name): study for name, study in read.items()}
    addresses = {_page_name(name): _address(folder, name, page.removeprefix(INDEX)) for name in read}
    figures = {name: verdict_figures(study) for name, study in studies.items()}
    verdicts = [study.verdict.verdict for study in studies.values()]
    write_page(
        folder / page, "single.html.j2",
        title=_("Questions and verdicts of all studies"),
        translations=other_pages(names, spoken_language()),
        lead=_("Every study in this folder: its question, its verdict by conditions that were written down "
               "before anything ran, and the figures that its conditions are about."),
        openings=[],
        facts=[
            (_("studies"), str(len(studies))),
            *((name, str(verdicts.count(verdict))) for verdict, name in verdict_names().items()),
        ],
        sections=[_study_section(own, study, figures[own], addresses[own]) for own, study in studies.items()],
        pictures={
            (0, f"{own}_{name}"): inline_figure(figure, f"{own}-{name}-")
            for own, of_study in figures.items()
            for name, figure in of_study.items()
        },
    )  # fmt: skip


def verdict_figures(study: Study) -> dict[str, Figure]:
    """Return the figures of the measures on which the verdict of a study depends, keyed by name.

    For a condition on a measure that is plotted against a quantity such as distance, this is the plot. For a condition
    on a measure in `PANEL_MEASURES`, or if no condition has a figure, these are the comparisons of the cells
    (configurations), one for each language.
    """
    names = {series: name for name, series in series_of(study).items()}
    figures: dict[str, Figure | None] = {}
    cells = False
    for rule in study.verdict.rules:
        place = axis_value(rule.group)
        series = (place[0] if place else "", rule.measure)
        if series in names:
            figures[names[series]] = series_figure(study, *series)
        else:
            cells = cells or rule.measure in PANEL_MEASURES
    if cells or not figures:
        figures |= {f"cells_{language}": cells_figure(study, language) for language in study.measured_languages}
    return {name: figure for name, figure in figures.items() if figure is not None}


def _page_name(folder: str) -> str:
    """Convert a folder's name to an HTML id: invalid characters become hexadecimal code points between underscores."""
    return re.sub(r"[^\w.-]", lambda other: f"_{ord(other[0]):x}_", folder)


def _address(folder: Path, name: str, ending: str) -> str:
    """Return the URL of a study's page, relative to the index; "" if the study has no page.

    Args:
        folder: folder of the studies.
        name: name of the study's folder.
        ending: language suffix and extension of the wanted page. If there is no such page, because the study was
            written in a single language, the page without a language suffix is used.
    """
    pages = (f"{STUDY_PAGE}{one}" for one in (ending, ".html"))
    page = next((page for page in pages if (folder / name / page).is_file()), None)
    return f"{quote(name)}/{page}" if page else ""


def _study_section(own: str, study: Study, figures: Mapping[str, Figure], address: str) -> Section:
    runs = [run for cell in study.cells for run in cell.runs]
    finished = sum(run.status == "finished" for run in runs)
    pictures: list[PageElement] = [
        FigureElement(name=f"{own}_{name}", figure=figure, alt=figure_alt(study, name))
        for name, figure in figures.items()
    ]
    return Section(
        name=own,
        title=question_of(study),
        explanation=_("{answer} Study {study}, {finished} of {runs:run|runs} finished. Predicted: {prediction}").format(
            answer=answer_sentence(study),
            study=study.name,
            finished=finished,
            runs=len(runs),
            prediction=prediction_of(study),
        ),
        elements=[*verdict_elements(study), *pictures],
        missing=_("Nothing has been measured yet."),
        address=address,
    )

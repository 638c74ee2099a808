"""One page over all studies of a folder: of each the question, the verdict with its conditions, and its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anaphora.base.files import read_json, write_text
from anaphora.report.page.elements import FigureElement, PageElement, Section
from anaphora.report.page.offline import font_placeholder, read_asset, template_environment, with_fonts
from anaphora.report.page.write import inline_svg
from anaphora.studies.figures import (
    PANEL_MEASURES,
    axis_value,
    cells_figure,
    measured_languages,
    numeric_axes,
    series_figure,
)
from anaphora.studies.page import answer_sentence, verdict_elements

INDEX = "index.html"
_SPREAD = {"median": float, "lowest": float, "highest": float}
_GROUP = {"is_solved": (bool, None), "measures": {str: _SPREAD}}
_RULE = {
    **dict.fromkeys(("statement", "cell", "group", "measure", "needed"), str),
    "baseline_cell?": (str, None),
    "passed": (bool, None),
    "spreads": {str: (_SPREAD, None)},
}
_STUDY = {
    **dict.fromkeys(("name", "question", "prediction"), str),
    "solved": float,
    "cells": [
        {"name": str, "factor": (str, None), "runs": [{"status": str}], "groups": {str: {str: _GROUP}}},
    ],
    "verdict": {"verdict": str, "rules": [_RULE]},
}
"""What the page over all studies reads of a study.json."""


def read_studies(folder: Path, without: str | None = None) -> list[dict[str, Any]]:
    """What the `study.json` of each study in a folder holds.

    Args:
        folder: of the studies.
        without: the name of one that is left out.

    Raises:
        UserError: a file is damaged.
    """
    paths = [path for path in sorted(folder.glob("*/study.json")) if path.parent.name != without]
    return [read_json(path, _STUDY, "run that study again to write it, or move its folder away") for path in paths]


def write_study_index(folder: Path) -> Path:
    """Write `index.html` into the folder of the studies, from the `study.json` of each."""
    studies = read_studies(folder)
    figures = {study["name"]: verdict_figures(study) for study in studies}
    verdicts = [study["verdict"]["verdict"] for study in studies]
    html = template_environment().get_template("study.html.j2").render(
        title="Questions and verdicts of all studies",
        lead="Every study that lies in this folder: its question, its verdict by conditions that were written down "
        "before anything ran, and the figures that its conditions are about.",
        opening=None,
        facts=[
            ("studies", str(len(studies))),
            *((name, str(verdicts.count(name))) for name in ("holds", "not so", "open")),
        ],
        sections=[_study_section(study, figures[study["name"]]) for study in studies],
        pictures={
            (0, f"{study}_{name}"): inline_svg(figure, f"{study}-{name}-")
            for study, of_study in figures.items()
            for name, figure in of_study.items()
        },
        style=read_asset("report.css"),
        font_mark=font_placeholder(),
    )  # fmt: skip
    write_text(folder / INDEX, with_fonts(html, html, (400, 700)))
    return folder / INDEX


def verdict_figures(study: Mapping[str, Any]) -> dict[str, Any]:
    """The figures that a study's conditions are about, by name; where none is, those of its cells."""
    axes = numeric_axes(study)
    series: dict[str, Any] = {}
    cells = False
    for rule in study["verdict"]["rules"]:
        axis, _ = axis_value(rule["group"]) or (None, None)
        if axis and rule["measure"] in axes.get(axis, ()):
            series[f"{axis.replace(' ', '_')}_{rule['measure']}"] = (axis, rule["measure"])
        else:
            cells = cells or rule["measure"] in PANEL_MEASURES
    figures = {name: series_figure(study, *axis_and_measure) for name, axis_and_measure in series.items()}
    if cells or not figures:
        figures |= {f"cells_{language}": cells_figure(study, language) for language in measured_languages(study)}
    return {name: figure for name, figure in figures.items() if figure is not None}


def _study_section(study: Mapping[str, Any], figures: Mapping[str, Any]) -> Section:
    runs: Sequence[Mapping[str, Any]] = [run for cell in study["cells"] for run in cell["runs"]]
    finished = sum(run["status"] == "finished" for run in runs)
    pictures: list[PageElement] = [
        FigureElement(
            name=f"{study['name']}_{name}",
            figure=figure,
            alt=f"{name.replace('_', ' ')} of {study['name']}; its own page holds the numbers",
        )
        for name, figure in figures.items()
    ]
    return Section(
        name=study["name"],
        title=study["question"],
        explanation=f"{answer_sentence(study)} Study {study['name']}, {finished} of {len(runs)} runs finished. "
        f"Predicted: {study['prediction']}",
        elements=[*verdict_elements(study), *pictures],
        missing="Nothing has been measured yet.",
    )

"""One page over all studies of a folder: of each the question, the verdict with its conditions, and what shows it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anaphora.files import write_text
from anaphora.report.blocks import Block, Picture, Section
from anaphora.report.offline import environment, font_mark, own_file, with_fonts
from anaphora.report.page import _inline
from anaphora.report.study_figures import SHARES, axes_of, cells_figure, languages_of, place_of, series_figure
from anaphora.report.study_page import opening, verdict_blocks

INDEX = "index.html"


def write_index(folder: Path) -> Path:
    """Write `index.html` into the folder of the studies, from the `study.json` of each."""
    studies = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*/study.json"))]
    figures = {one["name"]: telling_figures(one) for one in studies}
    said = [one["verdict"]["verdict"] for one in studies]
    html = environment().get_template("study.html.j2").render(
        title="What was asked, and what came out",
        lead="Every study that lies in this folder: its question, its verdict by conditions that were written down "
        "before anything ran, and the figures that its conditions are about.",
        opening=None,
        facts=[
            ("studies", str(len(studies))),
            *((name, str(said.count(name))) for name in ("holds", "not so", "open")),
        ],
        sections=[_section(one, figures[one["name"]]) for one in studies],
        pictures={
            (0, f"{study}_{name}"): _inline(figure, f"{study}-{name}-")
            for study, drawn in figures.items()
            for name, figure in drawn.items()
        },
        style=own_file("report.css"),
        font_mark=font_mark(),
    )  # fmt: skip
    write_text(folder / INDEX, with_fonts(html, html, (400, 700)))
    return folder / INDEX


def telling_figures(study: Mapping[str, Any]) -> dict[str, Any]:
    """The figures that a study's conditions are about, by name; where none is, those of its cells."""
    axes = axes_of(study)
    asked: dict[str, Any] = {}
    cells = False
    for rule in study["verdict"]["rules"]:
        place = place_of(rule["group"])
        if place and rule["measure"] in axes.get(place[0], ()):
            asked[f"{place[0].replace(' ', '_')}_{rule['measure']}"] = (place[0], rule["measure"])
        else:
            cells = cells or rule["measure"] in SHARES
    found = {name: series_figure(study, *about) for name, about in asked.items()}
    if cells or not found:
        found |= {f"cells_{language}": cells_figure(study, language) for language in languages_of(study)}
    return {name: figure for name, figure in found.items() if figure is not None}


def _section(study: Mapping[str, Any], figures: Mapping[str, Any]) -> Section:
    runs: Sequence[Mapping[str, Any]] = [run for cell in study["cells"] for run in cell["runs"]]
    done = sum(run["status"] == "finished" for run in runs)
    pictures: list[Block] = [
        Picture(
            name=f"{study['name']}_{name}",
            figure=figure,
            alt=f"{name.replace('_', ' ')} of {study['name']}; its own page holds the numbers",
        )
        for name, figure in figures.items()
    ]
    return Section(
        name=study["name"],
        title=study["question"],
        explanation=f"{opening(study)} Study {study['name']}, {done} of {len(runs)} runs finished. "
        f"Predicted: {study['prediction']}",
        blocks=[*verdict_blocks(study), *pictures],
        missing="Nothing has been measured yet.",
    )

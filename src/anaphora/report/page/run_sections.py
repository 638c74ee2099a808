"""The report's sections on one run, from evidence to questions, figures and tables.

Every file of `sections` holds some of them, with their places on the page. Nothing there knows of HTML: the page lays
the sections out. A part of the evidence that is None gives a section that says that it was not measured.
"""

from __future__ import annotations

from importlib import import_module
from operator import itemgetter
from pathlib import Path

from anaphora.report.page.elements import PlacedSections, ReportRun, Section
from anaphora.report.page.sections.heads import alignment_section, heads_section, quads_section
from anaphora.report.page.sections.scores import scoreboard_section

_FILES = [
    import_module(f"anaphora.report.page.sections.{path.stem}")
    for path in sorted((Path(__file__).parent / "sections").glob("*.py"))
    if path.stem != "__init__"
]
FIGURES = tuple(name for file in _FILES for name in getattr(file, "FIGURES", ()))
"""The names of all figures that a report can have: by them those of an earlier one are known."""


def run_sections(run: ReportRun) -> list[Section]:
    """Return the sections of one run in the order of their places."""
    files: list[PlacedSections] = [file.SECTIONS for file in _FILES]
    placed = sorted((item for sections in files for item in sections.items()), key=itemgetter(0))
    return [section for _place, make in placed if (section := make(run)) is not None]


def score_sections(run: ReportRun) -> list[Section]:
    """Return the sections that need only the scores."""
    return [scoreboard_section(run), heads_section(run), quads_section(run), alignment_section(run)]

"""Sections of the report on one run, each of which answers one question.

Each module defines `SECTIONS`, a mapping from positions on the page to functions that build a `Section`, and `FIGURES`,
the names of its figures, if any. Sections contain no HTML.
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
    for path in sorted(Path(__file__).parent.glob("*.py"))
    if path.stem != "__init__"
]
FIGURES = tuple(name for file in _FILES for name in getattr(file, "FIGURES", ()))
"""Names of all figures that a report can have, by which the figures of an earlier report are recognised."""


def run_sections(run: ReportRun) -> list[Section]:
    """Return the sections of one run in page order, without sections that do not apply to its corpus."""
    files: list[PlacedSections] = [file.SECTIONS for file in _FILES]
    placed = sorted((item for sections in files for item in sections.items()), key=itemgetter(0))
    return [section for _place, make in placed if (section := make(run)) is not None]


def score_sections(run: ReportRun) -> list[Section]:
    """Return the sections on scores, heads, quads (two cues, two candidate orders) and training, in this order."""
    return [scoreboard_section(run), heads_section(run), quads_section(run), alignment_section(run)]

"""What the report says, section by section: evidence in; questions, figures and tables in plain words out.

Nothing here knows of HTML: the page lays the sections out. A part of the evidence that is None gives a section that
says that it was not measured.
"""

from __future__ import annotations

from anaphora.analysis.results.scores import KINDS
from anaphora.base.language import LANGUAGES
from anaphora.report.page.elements import ReportRun, Section
from anaphora.report.page.sections.causal import (
    ablation_section,
    controls_section,
    dose_response_section,
    knockout_section,
    patching_section,
)
from anaphora.report.page.sections.examples import examples_section
from anaphora.report.page.sections.heads import alignment_section, heads_section, quads_section, roles_section
from anaphora.report.page.sections.levels import levels_sections
from anaphora.report.page.sections.one_head import one_head_section
from anaphora.report.page.sections.scores import (
    baselines_section,
    effects_section,
    factors_section,
    maps_section,
    scoreboard_section,
)
from anaphora.report.page.sections.verdict import verdict_section

FIGURES = (
    *("scoreboard", *(f"heads_{language}" for language in LANGUAGES)),
    *(f"quad_{language}_{kind}" for language in LANGUAGES for kind in KINDS),
    *("effects", "knockout", "ablation", "pattern_patching", "equal_doses", "dose_response", "controls"),
    *("alignment_through_training", "maps", "strata", "factors"),
)
"""The names of all figures that a report can have: by them those of an earlier one are known."""


def run_sections(run: ReportRun, *, explored: bool = True) -> list[Section]:
    """The sections of one run in the order of the argument.

    Args:
        run: what is known of the run.
        explored: whether the page's explorer shows its sentences, so that examples lead there.
    """
    evidence = run.evidence
    return [
        verdict_section(evidence),
        scoreboard_section(evidence),
        *levels_sections(evidence),
        heads_section(run),
        quads_section(run),
        effects_section(evidence.effects),
        knockout_section(evidence.causal_cells),
        one_head_section(evidence),
        ablation_section(evidence.causal_cells),
        patching_section(evidence.causal_cells),
        dose_response_section(evidence.causal_cells),
        controls_section(evidence),
        baselines_section(evidence),
        alignment_section(run),
        roles_section(evidence),
        maps_section(evidence),
        factors_section(evidence),
        examples_section(run, explored),
    ]


def score_sections(run: ReportRun) -> list[Section]:
    """The sections that need no more than the scores: what is drawn of a run without a report."""
    return [scoreboard_section(run.evidence), heads_section(run), quads_section(run), alignment_section(run)]

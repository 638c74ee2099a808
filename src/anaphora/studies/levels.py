"""What a study measures of compositions: a group for each level of what training showed."""

from __future__ import annotations

from anaphora.analysis.results.evidence import Evidence
from anaphora.base.errors import UserError
from anaphora.studies.records import GroupMeasures

_MEASURES = ("task_accuracy", "candidate_accuracy", "antecedent_mass", "octad_accuracy", "items")


def scores_by_level(evidence: Evidence) -> GroupMeasures:
    """{language: {level: {measure: value}}}.

    Raises:
        UserError: the data have no compositions, or the run no attention.
    """
    if not evidence.levels:
        raise UserError("measures ('levels') needs data with compositions, for instance data=compositions")
    return {
        language: {name: {measure: getattr(level, measure) for measure in _MEASURES} for name, level in levels.items()}
        for language, levels in evidence.levels.items()
    }

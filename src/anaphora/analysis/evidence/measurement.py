"""The evidence on a run: measured or, where metrics.json holds it, read."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace

from anaphora.analysis.evidence import controls
from anaphora.analysis.evidence.examination import measure_evidence
from anaphora.analysis.evidence.headline import Headline, Progress, measure_headline
from anaphora.analysis.evidence.protocol import protocol
from anaphora.analysis.evidence.schema.evidence import Evidence, Provenance
from anaphora.analysis.evidence.storage import read_evidence, write_evidence
from anaphora.analysis.evidence.verdict import verdict, verdict_at_head
from anaphora.data.example import to_record
from anaphora.runs.digests import analysis_code_digest, weights_digest
from anaphora.runs.directory import Run
from anaphora.runs.items import EvaluationSplits, evaluation_splits
from anaphora.settings.commands.analysis import Report


@dataclass(frozen=True)
class RunEvidence:
    """What is known of a run: every head's scores, and all that its `metrics.json` holds."""

    headline: Headline
    evidence: Evidence


def gather_evidence(run: Run, settings: Report, progress: Progress) -> RunEvidence:
    """The evidence on a run, measured or, where `metrics.json` holds it, read; controls and verdict are always anew.

    Args:
        run: a finished run.
        settings: of the report.
        progress: is called with the name of each stage.
    """
    splits = evaluation_splits(run, settings.split)
    provenance = _provenance(settings, run, splits)
    stored = _stored_evidence(run, settings, provenance)
    headline = measure_headline(
        run,
        None if stored else splits.training,
        splits.development,
        splits.measured,
        settings.split,
        0 if stored else settings.untrained,
        progress=progress,
    )
    evidence = stored or replace(
        measure_evidence(headline, splits.development, settings.items, settings.protocol, progress),
        provenance=provenance,
    )
    evidence = replace(evidence, controls=controls.read(run.directory, settings.split))
    alpha = settings.protocol.alpha
    evidence = replace(evidence, verdict=verdict(evidence, alpha), verdict_at_head=verdict_at_head(evidence, alpha))
    write_evidence(headline, run.directory, evidence)
    return RunEvidence(headline, evidence)


def _stored_evidence(run: Run, settings: Report, provenance: Provenance) -> Evidence | None:
    """What `metrics.json` holds of this very question; None where it is another one, or was never measured."""
    stored = read_evidence(run.directory, settings.split)
    fixed = protocol(settings.protocol, settings.split, run.config)
    return stored if stored and (stored.protocol, stored.provenance) == (fixed, provenance) else None


def _provenance(settings: Report, run: Run, splits: EvaluationSplits) -> Provenance:
    """What the evidence is about: how much of it, and which weights, items and measuring code, by their digests."""
    items = hashlib.sha256()
    for example in (*splits.development, *splits.measured):
        items.update(json.dumps(to_record(example), sort_keys=True).encode())
    return Provenance(
        items=settings.items,
        untrained=settings.untrained,
        weights=weights_digest(run),
        data=items.hexdigest()[:16],
        code=analysis_code_digest(),
    )

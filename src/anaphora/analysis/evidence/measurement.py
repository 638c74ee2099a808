"""The evidence on a run: measured or, where metrics.json holds it, read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from anaphora.analysis.evidence import controls
from anaphora.analysis.evidence.examination import measure_evidence
from anaphora.analysis.evidence.headline import Headline, Progress, measure_headline
from anaphora.analysis.evidence.plan import EvidencePlan
from anaphora.analysis.evidence.protocol import protocol
from anaphora.analysis.evidence.storage import evidence_to_replace, write_evidence
from anaphora.analysis.evidence.verdict import verdict, verdict_at_head
from anaphora.analysis.results.evidence import Evidence, MeasuredOn, Provenance
from anaphora.runs.digests import analysis_code_digest, examples_digest, weights_digest
from anaphora.runs.directory import Run
from anaphora.runs.items import EvaluationSplits, evaluation_splits


@dataclass(frozen=True)
class RunEvidence:
    """What is known of a run.

    Attributes:
        headline: every head's scores.
        evidence: all that its `metrics.json` holds.
        folder: where `metrics.json` and the tables lie.
    """

    headline: Headline
    evidence: Evidence
    folder: Path


def gather_evidence(run: Run, settings: EvidencePlan, progress: Progress, folder: Path | None = None) -> RunEvidence:
    """The evidence on a run, measured or, where `metrics.json` holds it, read; controls and verdict are always anew.

    Args:
        run: a finished run.
        settings: of the report.
        progress: is called with the name of each stage.
        folder: where `metrics.json` and the tables lie, by default the run's directory; the caller holds it.

    Raises:
        UserError: the stored controls are damaged, or the data cannot be read.
    """
    folder = folder or run.directory
    stored_controls = controls.read(run.directory, settings.split)  # before the work, for they may be damaged
    splits = evaluation_splits(run, settings.split)
    provenance = _provenance(settings, run, splits)
    trained_controls = controls.current(run.directory, settings.split, stored_controls, provenance.measured_on)
    stored = _stored_evidence(run, folder, settings, provenance)
    headline = measure_headline(
        run,
        None if stored else splits.training,
        splits.development,
        splits.measured,
        settings.split,
        0 if stored else settings.untrained,
        progress=progress,
        data=provenance.data,
    )
    evidence = stored or replace(
        measure_evidence(headline, splits.development, settings.items, settings.protocol, progress),
        provenance=provenance,
    )
    evidence = replace(evidence, controls=trained_controls)
    alpha = settings.protocol.alpha
    evidence = replace(evidence, verdict=verdict(evidence, alpha), verdict_at_head=verdict_at_head(evidence, alpha))
    write_evidence(headline, folder, evidence)
    return RunEvidence(headline, evidence, folder)


def _stored_evidence(run: Run, folder: Path, settings: EvidencePlan, provenance: Provenance) -> Evidence | None:
    """What `metrics.json` holds of this very question; None where it is another one, or was never measured."""
    fixed = protocol(settings.protocol, settings.split, run.config)
    for place in dict.fromkeys((folder, run.directory, run.files.directory)):
        stored = evidence_to_replace(place, settings.split)
        if stored and (stored.protocol, stored.provenance) == (fixed, provenance):
            return stored
    return None


def current_evidence(run: Run, splits: EvaluationSplits) -> Evidence | None:
    """What a run's `metrics.json` holds, if it was measured on these items, with these weights and this code."""
    stored = evidence_to_replace(run.directory, splits.split)
    if stored is None or stored.provenance is None:
        return None
    return stored if stored.provenance.measured_on == measured_on(run, splits) else None


def measured_on(run: Run, splits: EvaluationSplits) -> MeasuredOn:
    """What is measured on these items: with which weights, and by which code."""
    return MeasuredOn(weights=weights_digest(run), data=items_digest(splits), code=analysis_code_digest())


def items_digest(splits: EvaluationSplits) -> str:
    """A digest of the items on which heads are chosen and of those that are measured."""
    return examples_digest((*splits.development, *splits.measured))


def _provenance(settings: EvidencePlan, run: Run, splits: EvaluationSplits) -> Provenance:
    """What the evidence is about: how much of it, and which weights, items and measuring code, by their digests."""
    return Provenance(items=settings.items, untrained=settings.untrained, **vars(measured_on(run, splits)))

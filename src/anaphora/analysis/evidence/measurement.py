"""The evidence on a run, measured or read from metrics.json."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.causal.causal_tests import causal_tests_of_run
from anaphora.analysis.evidence import controls
from anaphora.analysis.evidence.evidence import Evidence, MeasuredOn, Provenance
from anaphora.analysis.evidence.headline import Headline, Measurement, Progress, measure_headline, no_progress
from anaphora.analysis.evidence.plan import EvidencePlan, Protocol
from anaphora.analysis.evidence.protocol import protocol
from anaphora.analysis.evidence.storage import evidence_to_replace, write_evidence
from anaphora.analysis.evidence.verdict import verdict, verdict_at_head
from anaphora.analysis.maps.capture import maps_of_each
from anaphora.analysis.maps.kinds import MAP_GRANULARITY, MapRows, candidates_to_pronoun, pronoun_maps
from anaphora.analysis.results.causal import Causal
from anaphora.analysis.scores.heads import is_main
from anaphora.base.console import say
from anaphora.base.errors import UserError
from anaphora.base.locale.translation import _
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.example import Example, sample_quads
from anaphora.data.tokens.tokenizer import TokenizedText
from anaphora.runs.digests import analysis_code_digest, examples_digest, weights_digest
from anaphora.runs.directory import Run
from anaphora.runs.items import EvaluationSplits, evaluation_splits
from anaphora.settings.model.prediction import NoPrediction

MAP_DEVELOPMENT_ITEMS = 400
"""Development items on which the best head or layer of each map is chosen: integrated gradients take 30 ms an item."""

MAX_ATTRIBUTED_TOKENS = 20_000
"""Tokens at most of the items that integrated gradients explain, whole quads at equal distances: each token is passed
`INTEGRATION_STEPS` times forward and back, and 800 texts of a hundred words would take as long as a training run."""


@dataclass(frozen=True)
class RunEvidence:
    """The known evidence on a run.

    Attributes:
        headline: every head's scores.
        evidence: the content of its `metrics.json`.
        folder: where `metrics.json` and the tables lie.
    """

    headline: Headline
    evidence: Evidence
    folder: Path


def gather_evidence(run: Run, settings: EvidencePlan, progress: Progress, folder: Path | None = None) -> RunEvidence:
    """Measure the evidence on a run, or read it from `metrics.json`; controls and verdict are always recomputed.

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
    """Return the stored evidence if it was measured with the same settings; otherwise None."""
    fixed = protocol(settings.protocol, settings.split, run.config)
    for place in dict.fromkeys((folder, run.directory, run.files.directory)):
        stored = evidence_to_replace(place, settings.split)
        if stored and (stored.protocol, stored.provenance) == (fixed, provenance):
            return stored
    return None


def current_evidence(run: Run, splits: EvaluationSplits) -> Evidence | None:
    """Return the stored evidence if it was measured on these items, with these weights and this code."""
    stored = evidence_to_replace(run.directory, splits.split)
    if stored is None or stored.provenance is None:
        return None
    return stored if stored.provenance.measured_on == measured_on(run, splits) else None


def measured_on(run: Run, splits: EvaluationSplits) -> MeasuredOn:
    """Return the digests of items, weights and code."""
    return MeasuredOn(weights=weights_digest(run), data=items_digest(splits), code=analysis_code_digest())


def items_digest(splits: EvaluationSplits) -> str:
    """Return a digest of the items on which heads are chosen and of those that are measured."""
    return examples_digest((*splits.development, *splits.measured))


def _provenance(settings: EvidencePlan, run: Run, splits: EvaluationSplits) -> Provenance:
    """Return the provenance of the evidence: its size, and the digests of weights, items and measuring code."""
    return Provenance(items=settings.items, untrained=settings.untrained, **vars(measured_on(run, splits)))


@dataclass(frozen=True, eq=False)
class MeasuredModel:
    """A run's model and the items on which further measures apply it.

    Attributes:
        headline: the head, its scores and the model's answers.
        development: items on which the best unit of every other map is chosen.
        examples: a sample of the measured items.
        progress: is called with the name of each stage.
    """

    headline: Headline
    development: Sequence[Example]
    examples: list[Example]
    progress: Progress

    def whole_maps(self) -> Iterator[tuple[TokenizedText, NDArray[np.float32]]]:
        """Yield the tokens and the attention maps of each of the `examples`, (L, H, T, T)."""
        run = self.headline.run
        return maps_of_each(run.model, run.tokenizer, self.examples, run.config.task.prediction)

    @cached_property
    def map_rows(self) -> dict[str, MapRows]:
        """Return the rows of every kind of map on the `examples`."""
        return _map_rows(self.headline.run, self.examples)

    def development_map_rows(self) -> dict[str, MapRows]:
        """Return the rows of every kind of map on the development items."""
        return _map_rows(self.headline.run, self.development)

    def causal_tests(self) -> Causal | None:
        """Run the causal tests; return None, with a line in the terminal, if the run cannot be tested."""
        headline = self.headline
        by_map = {name: rows.records for name, rows in self.map_rows.items()}
        try:
            return causal_tests_of_run(
                headline.run, self.examples, headline.head, headline.development, by_map, self.progress
            )
        except UserError as error:
            say(_("no causal tests: {reason}").format(reason=error.translated()))
            return None


def measure_evidence(
    headline: Headline, development: Sequence[Example], items: int, fixed: Protocol, progress: Progress = no_progress
) -> Evidence:
    """Measure all evidence for and against the chosen head, except controls and verdict.

    Args:
        headline: the head, its scores and the model's answers.
        development: where the best unit of every other map is chosen.
        items: about how many main items, as whole quads, other maps and causal tests are measured on.
        fixed: the fixed protocol.
        progress: is called with the name of each stage.

    Returns:
        What `row_evidence` returns, with the protocol and every measure that needs the model.
    """
    run, scores = headline.run, headline.measured
    progress(_("the other direction"))
    reverse = candidates_to_pronoun(
        run.model, EncodedSplit(scores.examples, run.tokenizer), run.config.batching, run.config.task.prediction
    )
    progress(_("significance, effects, factors and roles"))
    evidence = row_evidence(replace(headline, reverse=reverse))
    model = MeasuredModel(
        headline,
        sampled_main_items(development, MAP_DEVELOPMENT_ITEMS),
        sampled_main_items(scores.examples, items),
        progress,
    )
    measured = {}
    for measure in fields(Evidence):
        if "from_model" in measure.metadata:
            if stage := measure.metadata["stage"]:
                progress(_(stage))
            measured[measure.name] = measure.metadata["from_model"](model)
    return replace(evidence, protocol=protocol(fixed, headline.split, run.config), **measured)


def row_evidence(measurement: Measurement) -> Evidence:
    """Compute the evidence that needs only the pronoun's rows and the answers, for any model.

    Returns:
        The scores, and every measure that is computed from rows.

    Raises:
        UserError: no main item could be scored.
    """
    scores = measurement.measured
    if not is_main(scores.examples).any():
        left_out = ", ".join(f"{count} with {reason}" for reason, count in scores.dropped.items())
        raise UserError(
            f"{measurement.split} split: no item of stratum main can be scored ({left_out or 'there is none'})"
        )
    measured = {
        measure.name: measure.metadata["from_rows"](measurement)
        for measure in fields(Evidence)
        if "from_rows" in measure.metadata
    }
    return replace(measurement.evidence(), **measured)


def _map_rows(run: Run, examples: Sequence[Example]) -> dict[str, MapRows]:
    prediction, batching = run.config.task.prediction, run.config.batching
    data = EncodedSplit(examples, run.tokenizer)
    without_gradients = [name for name in MAP_GRANULARITY if name != "integrated_gradients"]
    by_map = pronoun_maps(run.model, data, batching, prediction, without_gradients)
    # Integrated gradients explain an answer: without a prediction head there is none.
    if not isinstance(prediction, NoPrediction):
        tokens = int(data.ids.lengths.sum())
        few = list(examples)
        if tokens > MAX_ATTRIBUTED_TOKENS:
            few = sample_quads(few, max(1, len(few) * MAX_ATTRIBUTED_TOKENS // tokens))
        name = "integrated_gradients"
        rows = pronoun_maps(run.model, EncodedSplit(few, run.tokenizer), batching, prediction, [name])[name]
        by_map[name] = replace(rows, skipped=len(examples) - len(few))
    return by_map


def sampled_main_items(examples: Sequence[Example], most: int) -> list[Example]:
    """Sample main items, as whole blocks of sentences that belong together."""
    return sample_quads([each for each, main in zip(examples, is_main(examples), strict=True) if main], most)

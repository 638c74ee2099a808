"""Measurement of the evidence on whether a run's head picks antecedents: scores, statistics and causal tests.

Evidence that metrics.json already contains is reused if weights, items, code and settings are unchanged. Only the heads
are always scored again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.causal.causal_tests import causal_tests, run_subject, testable_items
from anaphora.analysis.evidence import controls
from anaphora.analysis.evidence.evidence import Evidence, MeasuredOn, Provenance
from anaphora.analysis.evidence.headline import Headline, Measurement, measure_headline, no_main_item, no_progress
from anaphora.analysis.evidence.plan import EvidencePlan, Protocol
from anaphora.analysis.evidence.storage import evidence_to_replace, write_evidence
from anaphora.analysis.evidence.verdict import protocol, verdict, verdict_at_head
from anaphora.analysis.maps.capture import maps_of_each
from anaphora.analysis.maps.kinds import MAP_GRANULARITY, MapRows, candidates_to_pronoun, pronoun_maps
from anaphora.analysis.results.causal import Causal
from anaphora.analysis.scores.heads import ranked_heads
from anaphora.base.console import Progress, say
from anaphora.base.errors import UserError
from anaphora.base.translation import _
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.example import Example, sample_quads
from anaphora.data.tokens.tokenizer import TokenizedText
from anaphora.runs.directory import Run
from anaphora.runs.items import (
    EvaluationSplits,
    analysis_code_digest,
    evaluation_splits,
    examples_digest,
    weights_digest,
)
from anaphora.settings.model.prediction import NoPrediction

MAP_DEVELOPMENT_ITEMS = 400
"""Number of development items on which the best head or layer is chosen for each kind of map; integrated gradients take
30 ms per item."""

MAX_ATTRIBUTED_TOKENS = 20_000
"""Maximum number of tokens in texts for integrated gradients, which take `INTEGRATION_STEPS` forward and backward
passes. If there are more, evenly spaced groups of items are sampled."""


@dataclass(frozen=True)
class RunEvidence:
    """All evaluation results of a run (`Evidence`), and the scores from which they were computed."""

    headline: Headline  # scores of all heads and answers; without baselines if `evidence` was read from metrics.json
    evidence: Evidence
    folder: Path  # folder with metrics.json and its tables


def gather_evidence(run: Run, settings: EvidencePlan, progress: Progress, folder: Path | None = None) -> RunEvidence:
    """Measure all results of a run, or read them from metrics.json if weights, items, code and settings are unchanged.

    The heads are always scored anew, the verdict (`Verdict`) is always recomputed from the stored controls, and
    `metrics.json` and its tables are written again.

    Args:
        folder: folder with `metrics.json` and the tables, by default the run's directory; locked by the caller.

    Raises:
        UserError: the stored controls are damaged, no item of the main results (`Example.is_main`) can be scored, or a
            file cannot be written; also the errors of `evaluation_splits` and `measure_headline`.
    """
    folder = folder or run.directory
    # before the work, because they may be damaged
    stored_controls = controls.read(run.directory, settings.split, run.argument)
    splits = evaluation_splits(run, settings.split)
    digests = measured_on(run, splits)
    provenance = Provenance(items=settings.items, untrained=settings.untrained, **vars(digests))
    trained_controls = controls.current(run, settings.split, stored_controls, digests)
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
    fixed = protocol(settings.protocol, settings.split, run.config)
    for place in dict.fromkeys((folder, run.directory, run.files.directory)):
        stored = evidence_to_replace(place, settings.split)
        if stored and (stored.protocol, stored.provenance) == (fixed, provenance):
            return stored
    return None


def current_evidence(run: Run, splits: EvaluationSplits) -> Evidence | None:
    """Return the stored evidence on a split; None unless it was measured on the current weights, items and code.

    If the file is damaged, print the error and return None.
    """
    stored = evidence_to_replace(run.directory, splits.split)
    if stored is None or stored.provenance is None:
        return None
    return stored if stored.provenance.measured_on == measured_on(run, splits) else None


def measured_on(run: Run, splits: EvaluationSplits) -> MeasuredOn:
    """Return hashes of a run's weights, of the development and evaluated items, and of the evaluation code."""
    return MeasuredOn(weights=weights_digest(run), data=items_digest(splits), code=analysis_code_digest())


def items_digest(splits: EvaluationSplits) -> str:
    """Return a hash of the development and the evaluated items."""
    return examples_digest((*splits.development, *splits.measured))


@dataclass(frozen=True, eq=False)
class MeasuredModel:
    """Model of a run, with the items for those measures that need further forward passes."""

    headline: Headline
    development: Sequence[Example]  # main items on which the best head or layer of each other map is chosen
    examples: list[Example]  # sample of the measured main items
    progress: Progress

    def whole_maps(self) -> Iterator[tuple[TokenizedText, NDArray[np.float32]]]:
        """Yield the tokens and attention maps (L, H, queries, keys) of each item in `examples`."""
        run = self.headline.run
        return maps_of_each(run.model, run.tokenizer, self.examples)

    @cached_property
    def map_rows(self) -> dict[str, MapRows]:
        """Return the pronoun's rows in each kind of attention map, for the items in `self.examples`, keyed by kind.

        Integrated gradients are left out if the model has no prediction head. If the items have more than
        `MAX_ATTRIBUTED_TOKENS` tokens in total, integrated gradients are computed for a sample of them.
        """
        return _map_rows(self.headline.run, self.examples)

    def development_map_rows(self) -> dict[str, MapRows]:
        """Return the pronoun's rows in each kind of attention map, for the development items; see `map_rows`."""
        return _map_rows(self.headline.run, self.development)

    def causal_tests(self) -> Causal | None:
        """Run the causal tests; print the reason and return None if the run cannot be tested."""
        headline = self.headline
        by_map = {name: rows.records for name, rows in self.map_rows.items()}
        try:
            subject = run_subject(headline.run, testable_items(self.examples))
            return causal_tests(subject, headline.head, ranked_heads(headline.development), by_map, self.progress)
        except UserError as error:
            say("no causal tests: {reason}", reason=error.translated())
            return None


def measure_evidence(
    headline: Headline, development: Sequence[Example], items: int, fixed: Protocol, progress: Progress = no_progress
) -> Evidence:
    """Measure all of a run's `Evidence` except controls and verdict.

    Args:
        headline: scores of the run's heads and answers.
        development: items on which, for each kind of map other than raw attention, the best head or layer is chosen.
        items: approximate number of items of the main results (`Example.is_main`) for these maps and the
            causal tests; items of the same group (`Example.group`) are kept together.
        fixed: settings of the protocol.

    Raises:
        UserError: no such item could be scored.
    """
    run, scores = headline.run, headline.measured
    progress(_("the other direction"))
    reverse = candidates_to_pronoun(run.model, EncodedSplit(scores.examples, run.tokenizer), run.config.batching)
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
    """Compute those fields of `Evidence` that need only a model's answers and the pronoun's attention rows.

    Raises:
        UserError: no item of the main results (`Example.is_main`) could be scored.
    """
    scores = measurement.measured
    if not any(example.is_main for example in scores.examples):
        raise no_main_item(measurement.split, scores)
    measured = {
        measure.name: measure.metadata["from_rows"](measurement)
        for measure in fields(Evidence)
        if "from_rows" in measure.metadata
    }
    return replace(measurement.evidence(), **measured)


def _map_rows(run: Run, examples: Sequence[Example]) -> dict[str, MapRows]:
    batching = run.config.batching
    data = EncodedSplit(examples, run.tokenizer)
    without_gradients = [name for name in MAP_GRANULARITY if name != "integrated_gradients"]
    by_map = pronoun_maps(run.model, data, batching, without_gradients)
    # Integrated gradients explain an answer, which needs a prediction head.
    if not isinstance(run.config.task.prediction, NoPrediction):
        tokens = int(data.ids.lengths.sum())
        few = list(examples)
        if tokens > MAX_ATTRIBUTED_TOKENS:
            few = sample_quads(few, max(1, len(few) * MAX_ATTRIBUTED_TOKENS // tokens))
        name = "integrated_gradients"
        rows = pronoun_maps(run.model, EncodedSplit(few, run.tokenizer), batching, [name])[name]
        by_map[name] = replace(rows, skipped=len(examples) - len(few))
    return by_map


def sampled_main_items(examples: Sequence[Example], most: int) -> list[Example]:
    """Return about `most` items of the main results (`Example.is_main`), evenly spaced and in whole groups."""
    return sample_quads([example for example in examples if example.is_main], most)

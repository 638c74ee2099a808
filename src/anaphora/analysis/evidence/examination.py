"""Everything measured of a run beyond its scores: significance, effects, other maps, roles of heads, causal tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.causal.causal_tests import causal_tests_of_run
from anaphora.analysis.causal.perturbations import perturbations
from anaphora.analysis.evidence.headline import Headline, Measurement, Progress, no_progress
from anaphora.analysis.evidence.plan import Protocol
from anaphora.analysis.evidence.protocol import protocol, significance
from anaphora.analysis.maps.capture import maps_of_each
from anaphora.analysis.maps.kinds import MAP_GRANULARITY, MapRows, candidates_to_pronoun, pronoun_maps
from anaphora.analysis.results.evidence import Evidence
from anaphora.analysis.results.scores import Head, HeadPosition, HeadsOnDevelopment, MapCell, MapScores
from anaphora.analysis.scores.cells import bootstrap_interval, by_language_and_kind, cells, clusters, rounded
from anaphora.analysis.scores.effects import effects
from anaphora.analysis.scores.factors import factors
from anaphora.analysis.scores.further import further_measures
from anaphora.analysis.scores.heads import choose_head, is_main, score_records
from anaphora.analysis.scores.roles import head_roles
from anaphora.analysis.scores.specificity import pronoun_specificity
from anaphora.analysis.scores.statistics import permutation_p_max
from anaphora.base.console import say
from anaphora.base.errors import UserError
from anaphora.base.locale.translation import _
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.example import Example, sample_quads
from anaphora.runs.directory import Run
from anaphora.settings.model.prediction import NoPrediction

MAP_DEVELOPMENT_ITEMS = 400
"""Development items on which the best head or layer of each map is chosen: integrated gradients take 30 ms an item."""

MAX_ATTRIBUTED_TOKENS = 20_000
"""Tokens at most of the items that integrated gradients explain, whole quads at equal distances: each token is passed
`INTEGRATION_STEPS` times forward and back, and 800 texts of a hundred words would take as long as a training run."""


def measure_evidence(
    headline: Headline, development: Sequence[Example], items: int, fixed: Protocol, progress: Progress = no_progress
) -> Evidence:
    """All the evidence for and against the chosen head, controls and verdict aside.

    Args:
        headline: the head, its scores and the model's answers.
        development: where the best unit of every other map is chosen.
        items: about how many main items, as whole quads, other maps and causal tests are measured on.
        fixed: what was settled beforehand.
        progress: is called with the name of each stage.

    Returns:
        What `row_evidence` returns, with the protocol, other maps, perturbations and causal tests; these are None for a
        run that answers nothing.
    """
    run, scores, head = headline.run, headline.measured, headline.head
    progress(_("the other direction"))
    reverse = candidates_to_pronoun(
        run.model, EncodedSplit(scores.examples, run.tokenizer), run.config.batching, run.config.task.prediction
    )
    progress(_("significance, effects, factors and roles"))
    evidence = row_evidence(headline, reverse)
    few_development = sampled_main_items(development, MAP_DEVELOPMENT_ITEMS)
    few_measured = sampled_main_items(scores.examples, items)
    progress(_("other words as queries"))
    whole = maps_of_each(run.model, run.tokenizer, few_measured, run.config.task.prediction)
    specificity = pronoun_specificity(few_measured, whole, head)
    progress(_("other maps"))
    map_rows = _map_rows(run, few_measured)
    other_maps = map_scores(_map_rows(run, few_development), map_rows, head)
    progress(_("without cue, context or positions"))
    perturbed = perturbations(run, map_rows["raw"].records, head)
    by_map = {name: rows.records for name, rows in map_rows.items()}
    try:
        causal = causal_tests_of_run(run, few_measured, head, headline.development, by_map, progress)
    except UserError as error:  # nothing that this run can be asked; its rows are measured all the same
        causal = None
        say(_("no causal tests: {reason}").format(reason=error.translated()))
    return replace(
        evidence,
        protocol=protocol(fixed, headline.split, run.config),
        pronoun_specificity=specificity,
        maps=other_maps,
        perturbations=perturbed,
        causal=causal,
    )


def row_evidence(measurement: Measurement, reverse: NDArray[np.floating] | None) -> Evidence:
    """The evidence that is in the pronoun's rows and the answers alone, of any model.

    Args:
        measurement: the head, its scores and the model's answers.
        reverse: (N, L, H, M) the weight from each candidate to the pronoun, where it is known.

    Returns:
        The scores with their significance, effects, factors, further scores and roles of heads, and the p of every head
        on the development split.

    Raises:
        UserError: no main item could be scored.
    """
    scores, head = measurement.measured, measurement.head
    if not is_main(scores.examples).any():
        left_out = ", ".join(f"{count} with {reason}" for reason, count in scores.dropped.items())
        raise UserError(
            f"{measurement.split} split: no item of stratum main can be scored ({left_out or 'there is none'})"
        )
    records = measurement.capture.records
    return replace(
        measurement.evidence(),
        significance=significance(scores, head),
        heads_on_development=HeadsOnDevelopment(
            p=tuple(tuple(map(rounded, row)) for row in permutation_p_max(measurement.development))
        ),
        effects=effects(scores, head),
        factors=factors(scores, head, measurement.task_correct),
        further_scores=further_measures(scores, records, head, measurement.task_answers, reverse),
        head_roles=head_roles(scores, records, measurement.baselines),
    )


def map_scores(development: Mapping[str, MapRows], measured: Mapping[str, MapRows], head: Head) -> dict[str, MapScores]:
    """How well each map picks the antecedent, at the head or layer that development items chose for it.

    Args:
        development: every map's rows on development items.
        measured: the same maps on the items to report.
        head: of the raw weights, chosen on the whole development split.
    """
    by_map: dict[str, MapScores] = {}
    for name, rows in measured.items():
        if not rows.records or not development[name].records:
            continue
        unit = head if name == "raw" else choose_head(score_records(development[name].records))
        scores = score_records(rows.records)
        where = {
            "head": HeadPosition(layer=unit.layer, head=unit.head),
            "layer": HeadPosition(layer=unit.layer),
            "model": None,
        }
        right, mass = (
            values[:, unit.layer, unit.head].astype(np.float64)
            for values in (scores.candidate_accuracy, scores.antecedent_mass)
        )
        labels = clusters(scores.examples)
        by_map[name] = MapScores(
            granularity=rows.granularity,
            head=where[rows.granularity],
            items=len(scores.examples),
            skipped=rows.skipped,
            languages=by_language_and_kind(
                (
                    language,
                    kind,
                    MapCell(
                        candidate_accuracy=rounded(right[items].mean()),
                        antecedent_mass=rounded(mass[items].mean()),
                        interval=bootstrap_interval(
                            right[items], [labels[item] for item in np.flatnonzero(items)], (0, 1)
                        ),
                    ),
                )
                for language, kind, items in cells(scores.examples)
            ),
        )
    return by_map


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
    """About so many items of stratum main, as whole blocks of sentences that belong together."""
    return sample_quads([each for each, main in zip(examples, is_main(examples), strict=True) if main], most)

"""Everything asked of a run beyond its scores: significance, effects, other maps, roles of heads, causal tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.causal import causal
from anaphora.analysis.cells import cells, clusters, interval, nested, rounded
from anaphora.analysis.effects import effects
from anaphora.analysis.factors import factors
from anaphora.analysis.flow import MAPS, MapRows, candidates_to_pronoun, pronoun_maps
from anaphora.analysis.measures import more_scores
from anaphora.analysis.perturbations import perturbations
from anaphora.analysis.protocol import protocol, significance
from anaphora.analysis.roles import head_roles
from anaphora.analysis.scores import Head, choose_head, is_main, score
from anaphora.analysis.settings import Protocol
from anaphora.analysis.statistics import permutation_p_max
from anaphora.analysis.study import Measurement, Progress, Study, silent
from anaphora.checkpoint import Run
from anaphora.data.batch import Encoded
from anaphora.data.example import Example, whole_blocks
from anaphora.errors import UserError
from anaphora.model.settings import NoReadout

MAP_DEVELOPMENT = 400
"""Development items on which the best head or layer of each map is chosen: integrated gradients take 30 ms an item."""

ATTRIBUTED = 20_000
"""Tokens at most of the items that integrated gradients explain, whole blocks at equal distances: each token is passed
`attribution.STEPS` times forward and back, and 800 texts of a hundred words would take as long as a training run."""


def examine(
    found: Study, development: Sequence[Example], items: int, fixed: Protocol, progress: Progress = silent
) -> dict[str, Any]:
    """What `metrics.json` holds beside `Study.metrics`: the evidence for and against the chosen head.

    Args:
        found: the head, its scores and the model's answers.
        development: where the best unit of every other map is chosen.
        items: about how many main items, as whole blocks, other maps and causal tests are measured on.
        fixed: what was settled beforehand.
        progress: is told what is going on.

    Returns:
        "protocol", "maps", "perturbations" and "causal", each as the function of that name says, and what
        `told_by_rows` returns. "causal" is None for a run that answers nothing.
    """
    run, scores, head = found.run, found.measured, found.head
    progress("the other direction")
    back = candidates_to_pronoun(
        run.resolver, Encoded(scores.examples, run.tokenizer), run.config.batching, run.config.task.readout
    )
    progress("significance, effects, factors and roles")
    evidence = {"protocol": protocol(fixed, found.split, run.config), **told_by_rows(found, back)}
    few, asked = _main(development, MAP_DEVELOPMENT), _main(scores.examples, items)
    progress("other maps")
    rows = _maps(run, asked)
    evidence["maps"] = map_scores(_maps(run, few), rows, head)
    progress("without cue, context or positions")
    evidence["perturbations"] = perturbations(run, rows["raw"].records, head)
    answers = not isinstance(run.config.task.readout, NoReadout)
    by_map = {name: each.records for name, each in rows.items()}
    evidence["causal"] = causal(run, asked, head, found.development, by_map, progress) if answers else None
    return evidence


def told_by_rows(found: Measurement, reverse: NDArray[np.floating] | None) -> dict[str, Any]:
    """The evidence that is in the pronoun's rows and the answers alone, of any model.

    Args:
        found: the head, its scores and the model's answers.
        reverse: (N, L, H, M) the weight from each candidate to the pronoun, where it is known.

    Returns:
        "significance", "effects", "factors", "more_scores", "head_roles", each as the function of that name says, and
        "heads_on_development": {"p": (L, H)}, the p of every head's candidate accuracy there, corrected for being able
        to pick the best of all.

    Raises:
        UserError: no main item could be scored.
    """
    scores, head = found.measured, found.head
    if not is_main(scores.examples).any():
        left_out = ", ".join(f"{count} with {reason}" for reason, count in scores.dropped.items())
        raise UserError(f"{found.split} split: no item of stratum main can be scored ({left_out or 'there is none'})")
    records = found.seen.records
    return {
        "significance": significance(scores, head),
        "heads_on_development": {"p": np.round(permutation_p_max(found.development), 6).tolist()},
        "effects": effects(scores, head),
        "factors": factors(scores, head, found.task_correct),
        "more_scores": more_scores(scores, records, head, found.seen.answers[scores.kept], reverse),
        "head_roles": head_roles(scores, records, found.baselines),
    }


def map_scores(development: Mapping[str, MapRows], measured: Mapping[str, MapRows], head: Head) -> dict[str, Any]:
    """How well each map points at the antecedent, at the head or layer that development items chose for it.

    Args:
        development: every map's rows on development items.
        measured: the same maps on the items to report.
        head: of the raw weights, chosen on the whole development split.

    Returns:
        {map: {"granularity", "head", "items", "skipped", language: {kind or "all": {"candidate_accuracy",
        "antecedent_mass", "interval"}}}}; the interval is that of the candidate accuracy.
    """
    found: dict[str, Any] = {}
    for name, rows in measured.items():
        if not rows.records or not development[name].records:
            continue
        unit = head if name == "raw" else choose_head(score(development[name].records))
        scores = score(rows.records)
        where = {"head": {"layer": unit.layer, "head": unit.head}, "layer": {"layer": unit.layer}, "model": None}
        right, mass = (
            each[:, unit.layer, unit.head].astype(np.float64)
            for each in (scores.candidate_accuracy, scores.antecedent_mass)
        )
        labels = clusters(scores.examples)
        found[name] = {
            "granularity": rows.granularity,
            "head": where[rows.granularity],
            "items": len(scores.examples),
            "skipped": rows.skipped,
            **nested(
                (
                    language,
                    kind,
                    {
                        "candidate_accuracy": rounded(right[chosen].mean()),
                        "antecedent_mass": rounded(mass[chosen].mean()),
                        "interval": interval(right[chosen], [labels[place] for place in np.flatnonzero(chosen)]),
                    },
                )
                for language, kind, chosen in cells(scores.examples)
            ),
        }
    return found


def _maps(run: Run, examples: Sequence[Example]) -> dict[str, MapRows]:
    readout, batching = run.config.task.readout, run.config.batching
    data = Encoded(examples, run.tokenizer)
    free = [name for name in MAPS if name != "integrated_gradients"]
    found = pronoun_maps(run.resolver, data, batching, readout, free)
    # Integrated gradients explain an answer: without a read-out there is none.
    if not isinstance(readout, NoReadout):
        tokens = int(data.ids.lengths.sum())
        few = list(examples)
        if tokens > ATTRIBUTED:
            few = whole_blocks(few, max(1, len(few) * ATTRIBUTED // tokens))
        name = "integrated_gradients"
        rows = pronoun_maps(run.resolver, Encoded(few, run.tokenizer), batching, readout, [name])[name]
        found[name] = replace(rows, skipped=len(examples) - len(few))
    return found


def _main(examples: Sequence[Example], most: int) -> list[Example]:
    chosen = is_main(examples)
    return whole_blocks([one for one, main in zip(examples, chosen, strict=True) if main], most)

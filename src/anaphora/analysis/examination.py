"""Everything asked of a run beyond its scores: significance, effects, other maps, roles of heads, causal tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anaphora.analysis.causal import causal
from anaphora.analysis.cells import cells, clusters, interval, nested, rounded
from anaphora.analysis.effects import effects
from anaphora.analysis.factors import factors
from anaphora.analysis.flow import MAPS, MapRows, candidates_to_pronoun, pronoun_maps
from anaphora.analysis.measures import more_scores
from anaphora.analysis.protocol import protocol, significance
from anaphora.analysis.roles import head_roles
from anaphora.analysis.scores import choose_head, is_main, score
from anaphora.analysis.settings import Protocol
from anaphora.analysis.study import Progress, Study, silent
from anaphora.checkpoint import Run
from anaphora.data.batch import Encoded
from anaphora.data.example import Example, whole_blocks
from anaphora.model.settings import NoReadout

MAP_DEVELOPMENT = 400
"""Development items on which the best head or layer of each map is chosen: integrated gradients take 30 ms an item."""


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
        "protocol", "significance", "effects", "factors", "more_scores", "head_roles", "maps", "causal"; each as the
        function of that name says. "causal" is None for a run that answers nothing.
    """
    run, scores, head = found.run, found.measured, found.head
    records = [found.seen.records[place] for place in scores.kept]
    progress("significance, effects and factors")
    evidence: dict[str, Any] = {
        "protocol": protocol(fixed, found.split, run.config),
        "significance": significance(scores, head),
        "effects": effects(scores, head),
        "factors": factors(scores, head, found.task_correct),
    }
    progress("the other direction, and what the other heads do")
    back = candidates_to_pronoun(
        run.resolver, Encoded(scores.examples, run.tokenizer), run.config.batching, run.config.task.readout
    )
    evidence["more_scores"] = more_scores(scores, records, head, found.seen.answers[scores.kept], back)
    evidence["head_roles"] = head_roles(scores, records, found.baselines)
    few, asked = _main(development, MAP_DEVELOPMENT), _main(scores.examples, items)
    progress("other maps")
    rows = _maps(run, asked)
    evidence["maps"] = map_scores(_maps(run, few), rows)
    answers = not isinstance(run.config.task.readout, NoReadout)
    by_map = {name: each.records for name, each in rows.items()}
    evidence["causal"] = causal(run, asked, head, found.development, by_map, progress) if answers else None
    return evidence


def map_scores(development: Mapping[str, MapRows], measured: Mapping[str, MapRows]) -> dict[str, Any]:
    """How well each map points at the antecedent, at the head or layer that development items chose for it.

    Args:
        development: every map's rows on development items.
        measured: the same maps on the items to report.

    Returns:
        {map: {"granularity", "head", "items", "skipped", language: {kind or "all": {"candidate_accuracy",
        "antecedent_mass", "interval"}}}}; the interval is that of the candidate accuracy.
    """
    found: dict[str, Any] = {}
    for name, rows in measured.items():
        if not rows.records or not development[name].records:
            continue
        unit = choose_head(score(development[name].records))
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
    readout = run.config.task.readout
    # Integrated gradients explain an answer: without a read-out there is none.
    names = [name for name in MAPS if name != "integrated_gradients" or not isinstance(readout, NoReadout)]
    data = Encoded(examples, run.tokenizer)
    return pronoun_maps(run.resolver, data, run.config.batching, readout, names)


def _main(examples: Sequence[Example], most: int) -> list[Example]:
    chosen = is_main(examples)
    return whole_blocks([one for one, main in zip(examples, chosen, strict=True) if main], most)

"""GAP-style name decisions (Webster et al. 2018) by the attention heads of any model, with baselines.

Axes are N (items), L (layers), H (heads) and K (policies).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.evidence.headline import Progress, no_progress
from anaphora.analysis.maps.words import mention_mass
from anaphora.analysis.results.scores import Head, existing_head
from anaphora.analysis.tasks.gap import (
    Decisions,
    GapScore,
    best_thresholds,
    decisions_from_answers,
    gap_score,
    gold_decisions,
    require_two_names,
    rule_scores,
    score_columns,
)
from anaphora.api.models import untrained_model
from anaphora.api.runs import OpenRun
from anaphora.api.scoring import pronoun_records
from anaphora.base.checks import at_least, whole_number
from anaphora.base.locale.translation import _
from anaphora.data.example import Example

if TYPE_CHECKING:
    from anaphora.hf.reader import TransformersModel

Masses = NDArray[np.float64]
POLICIES = ("random", "nearest", "first", "parallel roles", "head", "head with threshold", "untrained", "answers")
"""Policies by row; "untrained" needs untrained models, and "answers" a model that answers pronoun questions."""


def name_decisions(
    model: OpenRun | TransformersModel,
    development: Sequence[Example],
    measured: Sequence[Example],
    head: Head,
    untrained: int,
    progress: Progress = no_progress,
) -> list[dict[str, Any]]:
    """Score a head's choice between two names as a binary decision for each name (Webster et al. 2018).

    The policy "head" accepts the name with more of the pronoun's attention. "head with threshold" accepts neither name
    if this attention is below a threshold, which is chosen on the development items.

    Args:
        model: run or `transformers` model.
        development: items on which the threshold and the heads of untrained models are chosen.
        measured: items to evaluate on.
        head: the head, chosen on the development items.
        untrained: number of randomly initialised models of the same architecture to evaluate as a control.
        progress: callback that receives the name of each stage.

    Returns:
        One row for each policy with "policy", "items" and the columns of `score_columns`. A ratio with denominator 0 is
        None.

    Raises:
        UserError: the head does not exist, an item does not have two names, a pronoun has no gender, or `untrained` is
            negative.
    """
    existing_head(head, model.attending_layers, model.heads)
    at_least("untrained", whole_number("untrained", untrained), 0)
    examples = require_two_names(measured)
    gold = gold_decisions(require_two_names(development), 2)
    progress(_("{model}: name decisions").format(model=model.name))
    chosen_on = _read(model, development)[0]
    masses, answers = _read(model, examples)
    number = list(model.attending_layers).index(head.layer) * model.heads + head.head
    top, named = _named(chosen_on[..., [number]])
    (threshold,) = best_thresholds(top, np.take_along_axis(gold, named, axis=1), int(gold.sum()))[0]
    scores: dict[str, GapScore] = rule_scores(examples)
    scores["head"] = gap_score(_decide(masses[..., number])[None], examples)
    scores["head with threshold"] = gap_score(_decide(masses[..., number], threshold)[None], examples)
    controls = []
    for seed in range(1, untrained + 1):
        stage = _("{model}: name decisions of an untrained model, {number} of {all}")
        progress(stage.format(model=model.name, number=seed, all=untrained))
        control = untrained_model(model, seed)
        named = _named(_read(control, development)[0])[1]
        best = int(np.take_along_axis(gold, named, axis=1).mean(axis=0).argmax())
        controls.append(_decide(_read(control, examples)[0][..., best]))
    if controls:
        scores["untrained"] = gap_score(np.stack(controls), examples)
    if answers is not None:
        scores["answers"] = gap_score(decisions_from_answers(np.array(answers), 2)[None], examples)
    return [
        {"policy": name, "items": len(examples), **{key: _existing(value) for key, value in score_columns(one).items()}}
        for name, one in scores.items()
    ]


def _read(model: OpenRun | TransformersModel, examples: Sequence[Example]) -> tuple[Masses, list[int] | None]:
    """Return each head's attention from the pronoun to both names, (N, 2, K = L * H), and the run's answers.

    L counts only layers with attention. The answers are None if the model gives none.
    """
    records, answers = pronoun_records(model, examples)
    layers = list(model.attending_layers)
    masses = np.stack([mention_mass(record)[layers].reshape(-1, 2).T for record in records])
    return masses.astype(np.float64), answers


def _named(masses: Masses) -> tuple[Masses, NDArray[np.int64]]:
    """Return the larger of the two weights and the index of its name: (N, 2, K) -> two arrays of shape (N, K)."""
    return masses.max(axis=1), masses.argmax(axis=1)


def _decide(masses: Masses, threshold: float = -np.inf) -> Decisions:
    """Accept the name with the larger weight if the weight reaches the threshold: (N, 2) -> (N, 2) bool."""
    decisions: Decisions = decisions_from_answers(masses.argmax(axis=1), 2) & (masses >= threshold)
    return decisions


def _existing(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None

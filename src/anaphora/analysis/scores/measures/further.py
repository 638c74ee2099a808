"""Measures beyond candidate accuracy: reciprocal rank, maximum attention score, agreement with the model, and others.

Axes are N (items), L (layers), H (heads) and M (candidates at most).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.maps.answers import NO_CANDIDATE, CandidateNumbers, Floats
from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.results.scores import Groups, Head
from anaphora.analysis.results.typed_json import Interval
from anaphora.analysis.scores.cells import bootstrap_interval, clusters, each_cell, rounded
from anaphora.analysis.scores.heads import HeadScores, strongest_candidates

_TIED = NO_CANDIDATE - 1
"""Index that stands for a tie between a head's strongest candidates; it differs from every answer of a model."""


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Cohen's kappa between the candidate to which the head gives the largest weight and the model's answer."""

    kappa: float | None
    interval: Interval | None


@dataclass(frozen=True, kw_only=True)
class FurtherScores:
    """Measures of a head that are reported in addition to candidate accuracy; `further_measures` defines them."""

    mrr: float | None
    mas: float | None
    mass_per_token: float | None
    agreement: Agreement
    reverse_candidate_accuracy: float | None


def further_measures(
    scores: HeadScores,
    records: Sequence[AttentionRecord],
    head: Head,
    answers: CandidateNumbers | None,
    reverse: NDArray[np.floating] | None = None,
) -> Groups[FurtherScores]:
    """Return measures of a head in addition to candidate accuracy, for each language and cue category (`kind`).

    Args:
        scores: N scored items, of which only those of the main results (`Example.is_main`) count.
        records: attention records; the scores of item i were computed from `records[scores.kept[i]]`.
        answers: index of the candidate that the model predicts for each item, `NO_CANDIDATE` if it predicts no
            candidate, or `UNDECIDED`, (N,); None for a model without answers.
        reverse: weight from each candidate to the pronoun (`candidates_to_pronoun`), (N, L, H, M).

    Returns:
        {language: {kind: measures}}, with the kind "all" for all items:

        - "mrr": mean over items of 1 / rank of the antecedent, if the candidates are ranked by the head's weight.
        - "mas": share of items in which the antecedent has the highest maximum attention score
          (`maximum_attention_scores`), which depends on all layers and heads.
        - "mass_per_token": mean weight per token of the antecedent, which does not favour long or frequent mentions.
        - "agreement": Cohen's kappa between the candidate to which the head gives the largest weight and the model's
          answer, both as candidate indices, with its 95 % interval. A tie between weights, or between right and wrong
          answers, counts as disagreement. Kappa is 1 for perfect agreement and 0 for chance. Kappa and interval are
          None for a model without answers, and if head and model choose the same candidate index in all items.
        - "reverse_candidate_accuracy": share of items in which, among all candidates, the antecedent gives the pronoun
          the most weight in the head; None if `reverse` is None.

    Raises:
        ValueError: `answers` or `reverse` has another shape.
    """
    count = len(scores.examples)
    if answers is not None and answers.shape != (count,):
        raise ValueError(f"answers: the shape is {answers.shape}; expected ({count},), one for each scored item")
    if reverse is not None and reverse.shape != scores.candidate_mass.shape:
        raise ValueError(f"reverse: the shape is {reverse.shape}; expected {scores.candidate_mass.shape}")
    labels = clusters(scores.examples)
    lengths = np.array([len(records[number].spans) for number in scores.kept])
    at_head = (slice(None), head.layer, head.head)
    columns: dict[str, Floats] = {
        "mrr": scores.at(head, "reciprocal_rank"),
        "mas": _candidate_accuracy(scores, maximum_attention_scores(scores)[:, None, None])[:, 0, 0],
        # The lift is the antecedent's mass over its share of the tokens.
        "mass_per_token": scores.at(head, "lift") / lengths,
    }
    if reverse is not None:
        columns["reverse_candidate_accuracy"] = _candidate_accuracy(scores, reverse)[at_head]
    pointed = strongest_candidates(scores)[at_head]
    attended = np.where(pointed.max(axis=1) > 1 - 1e-6, pointed.argmax(axis=1), _TIED)

    def cell(items: NDArray[np.bool_]) -> FurtherScores:
        means = {name: rounded(values[items].mean()) for name, values in columns.items()}
        agreement = _agreement(attended[items], None if answers is None else answers[items], labels[items])
        return FurtherScores(agreement=agreement, **({"reverse_candidate_accuracy": None} | means))

    return each_cell(scores.examples, cell)


def maximum_attention_scores(scores: HeadScores) -> Floats:
    """Return the maximum attention score (MAS) of each candidate, (N, M), Klein and Nabi 2019, section 2.

    In each layer and head, only the weight on the strongest candidate is kept (in a tie, on all tied candidates). A
    candidate's score is its share of the sum of the kept weights over all layers and heads. If this sum is 0, all
    candidates have the same score.
    """
    kept = (scores.candidate_mass * (strongest_candidates(scores) > 0)).sum(axis=(1, 2), dtype=np.float64)
    total = kept.sum(axis=1, keepdims=True)
    even = scores.present / np.maximum(scores.present.sum(axis=1, keepdims=True), 1)
    return np.asarray(np.divide(kept, total, out=even, where=total > 0))


def _candidate_accuracy(scores: HeadScores, mass: NDArray[np.floating]) -> Floats:
    """Return the correctness of choosing the candidate with the largest `mass`: (N, L, H); 1 / k in a tie among k."""
    chosen = strongest_candidates(replace(scores, candidate_mass=mass.astype(np.float32)))
    return np.asarray((chosen * scores.gold[:, None, None]).sum(axis=-1, dtype=np.float64))


def _agreement(
    attended: NDArray[np.int64], answers: CandidateNumbers | None, item_clusters: NDArray[np.int64]
) -> Agreement:
    """Return Cohen's kappa (Cohen 1960), 1 - observed / expected disagreement, with its 95 % interval.

    Both are None for a model without answers, and if a single index is chosen by head and model in all items. If only
    the head, or only the model, always chooses one index, the interval is None. Kappa is not a mean of item values, so
    its interval is a cluster bootstrap of linearised values: kappa plus each item's first-order influence on it.
    """
    if answers is None:
        return Agreement(kappa=None, interval=None)
    names, codes = np.unique(np.concatenate((attended, answers)), return_inverse=True)
    head, model = codes[: len(attended)], codes[len(attended) :]
    if len(names) < 2:
        return Agreement(kappa=None, interval=None)
    share_head, share_model = (np.bincount(each, minlength=len(names)) / len(each) for each in (head, model))
    agree = (head == model).astype(np.float64)
    apart = 1 - share_head @ share_model
    kappa = float((agree.mean() - (1 - apart)) / apart)
    expected = share_model[head] + share_head[model] - 2 * (1 - apart)
    values = kappa + (agree - agree.mean()) / apart - (1 - agree.mean()) * expected / apart**2
    # If the head's picks are all the same, or the answers are, kappa and all linearised values are 0.
    is_constant = len(set(head)) == 1 or len(set(model)) == 1
    return Agreement(kappa=rounded(kappa), interval=None if is_constant else bootstrap_interval(values, item_clusters))

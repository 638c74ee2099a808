"""Name decisions: whether the pronoun means each of two names, with F1 as in Webster et al. 2018.

S models, N items, M candidates at most.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.results.rows import table_row
from anaphora.analysis.scores.baselines.policies import Floats, first, nearest
from anaphora.analysis.scores.cells import clusters
from anaphora.analysis.scores.statistics import BOOTSTRAPPED_FROM, has_interval
from anaphora.base.errors import UserError
from anaphora.data.example import Example, Span, codes_of

Decisions = NDArray[np.bool_]

BOTH_WAYS_SUFFIX = ", both ways"
"""The suffix of a row whose answers are the mean over the text as it is and with its names exchanged."""
_BOOTSTRAP_SAMPLES = 2000
_BLIND_CHOICES = 100  # of the rule "random"


@dataclass(frozen=True, kw_only=True)
class GapScore:
    """The scores of name decisions; means over the models if there are several.

    Attributes:
        f1: over all decisions on all names, precision and recall with it.
        masculine, feminine: F1 over the items whose pronoun is masculine, or feminine.
        bias: feminine / masculine; 1 is none.
        weighted_bias: the same where texts that name few and many count alike for both genders: a text of either is
            weighted by how often its fifth, by number of names, stands in all items and how often in its gender.
        interval, bias_interval, weighted_bias_interval: 95 % percentile bootstrap over texts, the same texts for all
            models.
    """

    items: int
    f1: float
    interval: tuple[float, float]
    precision: float
    recall: float
    masculine: float
    feminine: float
    bias: float
    bias_interval: tuple[float, float]
    weighted_bias: float
    weighted_bias_interval: tuple[float, float]


def gap_score(decisions: Decisions, examples: Sequence[Example]) -> GapScore:
    """Return the scores of some models' decisions.

    Args:
        decisions: (S, N, M) whether each model takes each name for an antecedent; False where there is no candidate.
        examples: N items; the factor `gender` says "male" or "female".

    Raises:
        ValueError: an item has no gender.
    """
    genders = np.array([example.factors.get("gender", "") for example in examples])
    if not set(genders) <= {"male", "female"}:
        raise ValueError("every item must have the factor gender, male or female")
    counts, weights = _confusion_counts(decisions, examples), _bootstrap_weights(examples)
    overall = _f1(weights, counts)
    alike = _balancing_weights(genders, [_count_names(example.text) for example in examples])
    masculine, feminine = (_f1_of(genders == name, weights, counts) for name in ("male", "female"))
    bias = _ratio(feminine, masculine)
    weighted = _ratio(*(_f1_of(genders == name, weights * alike, counts) for name in ("female", "male")))
    right, wrong, missed = counts.sum(axis=1).T
    texts = len(set(clusters(examples)))
    return GapScore(
        items=len(examples),
        precision=float(np.mean(right / np.maximum(right + wrong, 1))),
        recall=float(np.mean(right / np.maximum(right + missed, 1))),
        f1=float(overall[0].mean()),
        interval=_interval(overall[1:].mean(axis=1), texts),
        masculine=float(masculine[0]),
        feminine=float(feminine[0]),
        bias=float(bias[0]),
        bias_interval=_interval(bias[1:], texts),
        weighted_bias=float(weighted[0]),
        weighted_bias_interval=_interval(weighted[1:], texts),
    )


def score_columns(score: GapScore) -> dict[str, float]:
    """Return a score as the columns of a table; numbers that do not exist are NaN."""
    return {name: value for name, value in table_row(score).items() if isinstance(value, float)}


def rule_scores(examples: Sequence[Example], seed: int = 0) -> dict[str, GapScore]:
    """Return the scores of random choices and of rules without attention, which name one of two names per item."""
    policies: dict[str, Callable[[Example], Floats]] = {
        "nearest": nearest,
        "first": first,
        "parallel roles": parallelism,
    }
    scores = {"random": gap_score(_random_decisions(len(examples), seed), examples)}
    for name, policy in policies.items():
        answers = np.array([policy(example).argmax() for example in examples])
        scores[name] = gap_score(decisions_from_answers(answers, 2)[None], examples)
    return scores


def _random_decisions(items: int, seed: int) -> Decisions:
    """Return the decisions of many random choices between two names: (S, N, 2)."""
    choices = np.random.default_rng(seed).integers(2, size=(_BLIND_CHOICES, items))
    decisions: Decisions = choices[:, :, None] == np.arange(2)
    return decisions


def require_two_names(examples: Sequence[Example]) -> list[Example]:
    """Check that each example has two names and a pronoun with a gender, and return the examples.

    Raises:
        UserError: one has not, or there is none.
    """
    for number, example in enumerate(examples):
        if len(example.candidates) != 2 or example.factors.get("gender") not in ("male", "female"):
            raise UserError(
                f"data: item {number} has {len(example.candidates)} candidates and the gender "
                f"{example.factors.get('gender')!r}; two names and male or female are needed, as data=gap has them"
            )
    if not examples:
        raise UserError("data: there is no item")
    return list(examples)


def f1_difference(
    decisions: Decisions, other: Decisions, examples: Sequence[Example]
) -> tuple[float, tuple[float, float]]:
    """Return the difference of F1 between two sets of decisions on the same items, with its paired interval.

    Args:
        decisions, other: (S, N, M) as in `gap_score`; means over the models.
        examples: N items.
    """
    weights = _bootstrap_weights(examples)
    first, second = (_f1(weights, _confusion_counts(each, examples)).mean(axis=1) for each in (decisions, other))
    return float(first[0] - second[0]), _interval(first[1:] - second[1:], len(set(clusters(examples))))


def _ratio(above: Floats, below: Floats) -> Floats:
    """Return a ratio; NaN if the denominator is zero."""
    ratio: Floats = above / np.where(below > 0, below, np.nan)
    return ratio


def _count_names(text: str) -> int:
    """Count the different stretches of capitalised words in a text, about its number of names."""
    return len(set(_CAPITALISED.findall(text)))


def _balancing_weights(genders: NDArray[np.str_], names: Sequence[int]) -> Floats:
    """Return weights (N,) of the items that balance genders within every fifth by number of names.

    0 if a fifth has items of one gender alone: there is nothing to compare them with.
    """
    counts = np.asarray(names)
    fifths = np.searchsorted(np.quantile(counts, (0.2, 0.4, 0.6, 0.8)), counts)
    weights = np.zeros(len(counts))
    for fifth in np.unique(fifths):
        in_fifth = fifths == fifth
        shares = {gender: np.mean(in_fifth[genders == gender]) for gender in np.unique(genders)}
        if min(shares.values()) > 0:
            for gender, share in shares.items():
                weights[in_fifth & (genders == gender)] = in_fifth.mean() / share
    return weights


def _confusion_counts(decisions: Decisions, examples: Sequence[Example]) -> NDArray[np.int64]:
    """Return hits, false alarms and misses of each item: (S, N, M) -> (S, N, 3)."""
    gold = gold_decisions(examples, decisions.shape[2])
    counts: NDArray[np.int64] = np.stack([decisions & gold, decisions & ~gold, gold & ~decisions], axis=-1).sum(axis=2)
    return counts


def _bootstrap_weights(examples: Sequence[Example]) -> Floats:
    """Return how often each item is in each bootstrap sample of texts: (D + 1, N), the original items first."""
    codes = np.array(codes_of(clusters(examples)))
    texts = len(np.unique(codes))
    counts = np.random.default_rng(0).multinomial(texts, np.full(texts, 1 / texts), size=_BOOTSTRAP_SAMPLES)
    return np.concatenate([np.ones((1, len(examples))), counts[:, codes]])


def gold_decisions(examples: Sequence[Example], most: int) -> Decisions:
    """Return which candidates are antecedents: (N, M)."""
    gold = np.zeros((len(examples), most), dtype=np.bool_)
    for number, example in enumerate(examples):
        gold[number, list(example.antecedents)] = True
    return gold


def decisions_from_answers(answers: NDArray[np.int64], most: int) -> Decisions:
    """Return the decisions of answers that name one of M candidates or none: (N,) -> (N, M)."""
    decisions: Decisions = answers[:, None] == np.arange(most)
    return decisions


def _f1(weights: Floats, counts: NDArray[np.int64]) -> Floats:
    """Compute F1 from (D, N) weights of the items and (S, N, 3) hits, false alarms and misses -> (D, S)."""
    hits, alarms, misses = np.einsum("dn,snk->kds", weights, counts)
    # Without a decision or an antecedent anywhere there is nothing to be right about.
    f1: Floats = 2 * hits / np.maximum(2 * hits + alarms + misses, 1)
    return f1


def _f1_of(gender: NDArray[np.bool_], weights: Floats, counts: NDArray[np.int64]) -> Floats:
    """Return F1 on the items of a gender, mean over models: (D, N) weights -> (D,), NaN without weight."""
    own = weights * gender
    f1: Floats = np.where(own.sum(axis=1) > 0, _f1(own, counts).mean(axis=1), np.nan)
    return f1


def _interval(values: Floats, texts: int) -> tuple[float, float]:
    """Return the 95 % percentiles of a score over samples of texts; NaN if these do not show how it varies."""
    known = values[np.isfinite(values)]  # without a hit there is no bias to speak of
    if not len(known) or texts < BOOTSTRAPPED_FROM or (np.ptp(known) == 0 and not has_interval(np.zeros(texts))):
        return math.nan, math.nan
    low, high = np.quantile(known, [0.025, 0.975])
    return float(low), float(high)


def best_thresholds(top: Floats, right: Decisions, antecedents: int) -> tuple[Floats, Floats]:
    """Return, for each of K policies, the score threshold that gives the best F1.

    Args:
        top: (N, K) the score of the candidate that each policy names.
        right: (N, K) whether that one is an antecedent.
        antecedents: how many names are antecedents in all.

    Returns:
        (K,) thresholds and the F1 that each reaches: an answer below its threshold is taken for "none of them".
    """
    order = np.argsort(-top, axis=0, kind="stable")
    ranked = np.take_along_axis(top, order, axis=0)
    hits = np.take_along_axis(right, order, axis=0).cumsum(axis=0)
    f1 = 2 * hits / (np.arange(1, len(top) + 1)[:, None] + antecedents)
    # Equal scores cannot be parted: only the last of them is a place to cut.
    f1[:-1][ranked[:-1] == ranked[1:]] = -1
    best = f1.argmax(axis=0)
    columns = np.arange(top.shape[1])
    return ranked[best, columns], f1[best, columns]


_CAPITALISED = re.compile(r"[A-Z][\w.'’-]+(?: [A-Z][\w.'’-]*)*")
_BEFORE_SUBJECT = re.compile(
    "and|but|or|when|while|as|because|that|where|who|which|after|before|although|though|since|if|until|then|however"
)
_AFTER_OBJECT = re.compile(
    "to|of|in|on|at|by|for|with|from|and|but|or|as|that|when|while|who|which|after|before|until|into|during|if|than|"
    "about|the|an?|up|out|off|down|back|away"
)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|[^\w\s]")


def parallelism(example: Example) -> Floats:
    """Apply a rule after the parallelism baseline of Webster et al. 2018, with roles from neighbouring words.

    A mention is possessive before 's, a subject at the start of a sentence or behind a comma or a conjunction, and an
    object elsewhere. "he" and "she" are subjects, "him" an object, "his" possessive; "her" is an object before a mark,
    a preposition or a conjunction, and possessive elsewhere. A candidate with a mention of the pronoun's role comes
    before one without; the nearest of those that are left is the answer.
    """
    role = _pronoun_role(example.text, example.pronoun)
    near = nearest(example)
    same = [any(_role(example.text, span) == role for span in spans) for spans in example.candidates]
    return np.array(same, dtype=float) + near / (1 + len(example.text))


def _pronoun_role(text: str, span: Span) -> str:
    word = text[slice(*span)].lower()
    if word in ("he", "she"):
        return "subject"
    if word == "her":
        following = _WORD.search(text, span[1])
        after = following[0].lower() if following else "."
        return "object" if _AFTER_OBJECT.fullmatch(after) or not after[0].isalpha() else "possessive"
    return "possessive" if word in ("his", "hers") else "object"


def _role(text: str, span: Span) -> str:
    if text[span[1] : span[1] + 2] in ("'s", "’s", "' ", "’ "):
        return "possessive"
    before = _WORD.findall(text[: span[0]])
    return (
        "subject"
        if not before or not before[-1][0].isalnum() or _BEFORE_SUBJECT.fullmatch(before[-1].lower())
        else "object"
    )

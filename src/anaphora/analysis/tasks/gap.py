"""GAP scores (Webster et al. 2018): F1 of yes/no decisions on whether a pronoun refers to a name.

The decisions are those of models, rules, heads, or a probe: a linear classifier on the attention weights of all heads
from pronoun to candidates and back. Axes are S (models), N (items), M (largest number of candidates of an item) and D
(bootstrap samples).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.maps.answers import Bools, Floats, right_answers, shares_chosen
from anaphora.analysis.results.typed_json import table_row
from anaphora.analysis.scores.baselines.policies import Policy, first, nearest
from anaphora.analysis.scores.cells import clusters
from anaphora.analysis.scores.heads import argmax_shares
from anaphora.analysis.scores.statistics import BOOTSTRAPPED_FROM, has_interval
from anaphora.base.errors import UserError, counted
from anaphora.data.example import Example, Span

Decisions = Floats
"""1 for each name that is accepted as the antecedent, 1 / k for each of k names in a tie, else 0: (S, N, M)."""

BOTH_WAYS_SUFFIX = ", both ways"
"""Suffix of the name of results that are averaged over the original text and the text with its names exchanged."""
_BOOTSTRAP_SAMPLES = 2000
_BLIND_CHOICES = 100  # number of random choices over which the scores of the rule "random" are averaged


@dataclass(frozen=True, kw_only=True)
class GapScore:
    """GAP scores of yes/no decisions on whether a pronoun refers to a name, averaged over models.

    Intervals are 95 % bootstrap percentile intervals over texts, with the same samples for all models. Their ends are
    NaN if there are too few texts (for a bias: too few with one of the genders), or if the score is undefined in every
    sample. For `weighted_bias`, items are weighted so that texts with few and with many names (in quintiles) are
    equally frequent for both genders.
    """

    items: int
    f1: float
    interval: tuple[float, float]
    precision: float
    recall: float
    masculine: float  # F1 on the items with a masculine pronoun; NaN without such items
    feminine: float
    bias: float  # feminine / masculine F1; 1 means no bias
    bias_interval: tuple[float, float]
    weighted_bias: float
    weighted_bias_interval: tuple[float, float]


def gap_score(decisions: Decisions, examples: Sequence[Example]) -> GapScore:
    """Return the GAP scores of yes/no decisions on whether a pronoun refers to a name.

    `decisions` are (S, N, M), and 0 for candidates that an item lacks.

    Raises:
        ValueError: an item lacks the factor `gender`, "male" or "female".
    """
    genders = np.array([example.factors.get("gender", "") for example in examples])
    if not set(genders) <= {"male", "female"}:
        raise ValueError("every item must have the factor gender, male or female")
    counts, weights = _confusion_counts(decisions, examples), _bootstrap_weights(examples)
    overall = _f1(weights, counts).mean(axis=1)
    # The distinct sequences of capitalised words estimate the number of names in a text.
    names = [len(set(_CAPITALISED.findall(example.text))) for example in examples]
    alike = _balancing_weights(genders, names)
    masculine, feminine = (_f1_of(genders == name, weights, counts) for name in ("male", "female"))
    bias = _ratio(feminine, masculine)
    weighted = _ratio(*(_f1_of(genders == name, weights * alike, counts) for name in ("female", "male")))
    right, wrong, missed = counts.sum(axis=1).T
    labels = clusters(examples)
    texts = len(set(labels))
    fewest, fewest_weighted = (
        min(len(set(labels[mask & (genders == name)])) for name in ("male", "female"))
        for mask in (np.full(len(genders), True), alike > 0)
    )
    return GapScore(
        items=len(examples),
        precision=float(np.mean(_share(right, right + wrong))),
        recall=float(np.mean(_share(right, right + missed))),
        f1=float(overall[0]),
        interval=_interval(overall[1:], texts),
        masculine=float(masculine[0]),
        feminine=float(feminine[0]),
        bias=float(bias[0]),
        bias_interval=_interval(bias[1:], fewest),
        weighted_bias=float(weighted[0]),
        weighted_bias_interval=_interval(weighted[1:], fewest_weighted),
    )


def score_columns(score: GapScore) -> dict[str, float]:
    """Return the float fields of GAP scores as columns of a table; an interval becomes two columns."""
    return {name: value for name, value in table_row(score).items() if isinstance(value, float)}


def rule_scores(examples: Sequence[Example], seed: int = 0) -> dict[str, GapScore]:
    """Return the GAP scores of three rules that choose one of two names, and of random choices, by name of the rule.

    Raises:
        ValueError: an item has no gender.
    """
    policies: dict[str, Policy] = {"nearest": nearest, "first": first, "parallel roles": parallelism}
    choices = np.random.default_rng(seed).integers(2, size=(_BLIND_CHOICES, len(examples)))
    scores = {"random": gap_score(np.eye(2)[choices], examples)}
    for name, policy in policies.items():
        scores[name] = gap_score(shares_chosen(np.stack([policy(example) for example in examples]))[None], examples)
    return scores


def require_two_names(examples: Sequence[Example]) -> list[Example]:
    """Check that every example has two names and a gender, as GAP scores need them; return the examples.

    Raises:
        UserError: an example does not have two candidates or lacks a gender, or there are no examples.
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
    """Return the F1 of one set of decisions minus the F1 of another, averaged over models, with a paired interval.

    Both sets hold the decisions of S models on the same items, (S, N, M). The interval is a 95 % bootstrap percentile
    interval over texts. Its ends are NaN if there are too few texts.
    """
    weights = _bootstrap_weights(examples)
    first, second = (_f1(weights, _confusion_counts(each, examples)).mean(axis=1) for each in (decisions, other))
    return float(first[0] - second[0]), _interval(first[1:] - second[1:], len(set(clusters(examples))))


def _ratio(above: Floats, below: Floats) -> Floats:
    return np.asarray(above / np.where(below > 0, below, np.nan))


def _balancing_weights(genders: NDArray[np.str_], names: Sequence[int]) -> Floats:
    """Return item weights, (N,), under which both genders have the same distribution of the number of names in a text.

    The distribution is over quintiles. Items of a quintile with only one gender get weight 0.
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


def _confusion_counts(decisions: Decisions, examples: Sequence[Example]) -> Floats:
    """Return true positives, false positives and false negatives of each model's decisions on each item, (S, N, 3)."""
    gold = gold_decisions(examples, decisions.shape[2])
    return np.asarray(np.stack([decisions * gold, decisions * ~gold, gold * (1 - decisions)], axis=-1).sum(axis=2))


def _bootstrap_weights(examples: Sequence[Example]) -> Floats:
    """Return how often each item is in each bootstrap sample of texts: (D + 1, N), with the original sample first."""
    codes = clusters(examples)
    texts = len(np.unique(codes))
    counts = np.random.default_rng(0).multinomial(texts, np.full(texts, 1 / texts), size=_BOOTSTRAP_SAMPLES)
    return np.concatenate([np.ones((1, len(examples))), counts[:, codes]])


def gold_decisions(examples: Sequence[Example], most: int) -> Bools:
    """Return a mask of the antecedents among at most M = `most` candidates: (N, M)."""
    return right_answers(examples, most + 1)[:, :-1]


def _f1(weights: Floats, counts: Floats) -> Floats:
    """Return the F1 of each of S models in each of D samples of the items: (D, S).

    Args:
        weights: weight of each item in each sample, (D, N).
        counts: result of `_confusion_counts`, (S, N, 3).
    """
    hits, alarms, misses = np.einsum("dn,snk->kds", weights, counts)
    return _share(2 * hits, 2 * hits + alarms + misses)


def _share(hits: Floats, total: Floats) -> Floats:
    """Return `hits` / `total`, and 0 where `total` is 0."""
    return np.asarray(np.divide(hits, total, out=np.zeros_like(total), where=total > 0))


def _f1_of(gender: NDArray[np.bool_], weights: Floats, counts: Floats) -> Floats:
    """Return the F1 on items in the mask `gender`, averaged over models, (D,); NaN for samples without such items."""
    own = weights * gender
    return np.where(own.sum(axis=1) > 0, _f1(own, counts).mean(axis=1), np.nan)


def _interval(values: Floats, texts: int) -> tuple[float, float]:
    """Return the 95 % percentile interval of a score from bootstrap samples; NaN with too few texts or values."""
    known = values[np.isfinite(values)]  # the bias of a sample without hits is not defined
    if not len(known) or texts < BOOTSTRAPPED_FROM or (np.ptp(known) == 0 and not has_interval(np.zeros(texts))):
        return math.nan, math.nan
    low, high = np.quantile(known, [0.025, 0.975])
    return float(low), float(high)


def strongest_names(scores: NDArray[np.floating], gold: Bools) -> tuple[Floats, Decisions, Floats]:
    """Return, for each of K scorers (such as heads), the highest score, the name with this score, and its correctness.

    Ties are defined as in `argmax_shares`.

    Args:
        scores: scores of the M names of each item by each scorer, (N, M, K), at least 0.
        gold: mask of the antecedents, (N, M).

    Returns:
        Highest scores, (N, K). Shares of the names, (N, M, K): 1 for the name with the highest score, 1 / k for each of
        k tied names, and 0 for all others. Correctness, (N, K): the sum of the antecedents' shares.
    """
    names = argmax_shares(scores, np.ones((1, 1, 1), dtype=np.bool_)).astype(np.float64)
    return scores.max(axis=1).astype(np.float64), names, np.einsum("nmk,nm->nk", names, gold)


def best_thresholds(top: Floats, right: Floats, antecedents: int) -> tuple[Floats, Floats]:
    """Return, for each of K scorers (rules or heads), the score threshold with the best F1, and this F1.

    A scorer picks the name with the highest score in each item, unless this score is below the threshold.

    Args:
        top: each scorer's score of the name that it picks, (N, K).
        right: 1 if this name is an antecedent, else 0, (N, K); in a tie, the share of tied names that are.
        antecedents: total number of names that are antecedents.
    """
    order = np.argsort(-top, axis=0, kind="stable")
    ranked = np.take_along_axis(top, order, axis=0)
    hits = np.take_along_axis(right, order, axis=0).cumsum(axis=0)
    f1 = 2 * hits / (np.arange(1, len(top) + 1)[:, None] + antecedents)
    # Equal scores cannot be separated, so only the last of them can be the threshold.
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
    """Return the scores of the M candidates by the parallelism baseline of Webster et al. 2018: (M,).

    Candidates with a mention in the pronoun's grammatical role score higher than all others; among candidates with
    equal roles, the nearest to the pronoun scores highest.

    The role of a mention is inferred from the neighbouring words. A mention is possessive before an apostrophe (with or
    without "s"). Otherwise, it is a subject at the start of the text and after punctuation, a conjunction or a word
    such as "who". Elsewhere, it is an object. "he" and "she" are subjects; "his" and "hers" are possessive. "her" is an
    object at the end of the text and before punctuation, a preposition, a conjunction or an article, and otherwise
    possessive. Any other pronoun is an object.
    """
    role = _pronoun_role(example.text, example.pronoun)
    same = [any(_role(example.text, span) == role for span in spans) for spans in example.candidates]
    return np.array(same, dtype=float) + nearest(example) / (1 + len(example.text))


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
    starts = not before or not before[-1][0].isalnum() or _BEFORE_SUBJECT.fullmatch(before[-1].lower())
    return "subject" if starts else "object"


MIN_WEIGHT = 1e-6
"""Lower limit to which weights are raised before their logarithm is taken."""
INVERSE_PENALTIES = tuple(10.0**power for power in range(-4, 0))
"""Inverse regularisation strengths, chosen by cross-validation on the training items."""
_PROBE_FOLDS = 5


def head_features(forth: NDArray[np.float32], back: NDArray[np.float32]) -> Floats:
    """Return the input features of the probe over heads for each candidate: (N, M, 4 * L * H).

    There are four features for each head: the logarithms of the weights from the pronoun to the candidate (`forth`) and
    from the candidate to the pronoun (`back`), (N, L, H, M) each, and their means over the item's other candidates.
    Every item must have exactly M candidates; otherwise the means would include absent candidates.
    """
    items, _, _, most = forth.shape
    own = np.stack([forth, back], axis=1).reshape(items, -1, most).transpose(0, 2, 1)
    own = np.log(np.maximum(own, MIN_WEIGHT))
    others = (own.sum(axis=1, keepdims=True) - own) / max(1, most - 1)
    return np.concatenate([own, others], axis=2)


def out_of_fold_probabilities(features: Floats, gold: NDArray[np.bool_], folds: Sequence[int], seed: int = 0) -> Floats:
    """Return each candidate's probability of being an antecedent, (N, M), by classifiers fitted on other folds.

    Args:
        features: F features of each candidate, (N, M, F).
        gold: mask of the antecedents, (N, M).
        folds: fold of each item, (N,).

    Raises:
        UserError: for some fold, the other folds have too few items, or all or none of their names are antecedents.
    """
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.model_selection import GroupKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    numbers = np.asarray(folds)
    items, most, _ = features.shape
    probabilities = np.zeros((items, most))
    for fold in np.unique(numbers):
        training = np.flatnonzero(numbers != fold)
        rows, answers = features[training].reshape(len(training) * most, -1), gold[training].ravel()
        if len(training) < _PROBE_FOLDS or len(np.unique(answers)) < 2:
            raise UserError(
                f"data: {counted(len(training), 'item')} outside fold {fold}; the probe over heads, fitted on them, "
                f"needs {_PROBE_FOLDS}, with names that are antecedents and names that are not"
            )
        inner = list(GroupKFold(_PROBE_FOLDS).split(rows, answers, np.repeat(training, most)))
        reader = LogisticRegressionCV(
            Cs=list(INVERSE_PENALTIES),
            cv=inner,
            scoring="neg_log_loss",
            max_iter=2000,
            random_state=seed,
            l1_ratios=(0,),
            use_legacy_attributes=False,
        )
        model = make_pipeline(StandardScaler(), reader).fit(rows, answers)
        held_out = np.flatnonzero(numbers == fold)
        flat = features[held_out].reshape(len(held_out) * most, -1)
        probabilities[held_out] = model.predict_proba(flat)[:, 1].reshape(-1, most)
    return probabilities

"""Probe over all heads: a linear classifier on the attention between pronoun and candidates.

N items, L layers, H heads, M candidates.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.scores.baselines.policies import Floats

MIN_WEIGHT = 1e-6
"""Lower limit of weights before the logarithm."""
INVERSE_PENALTIES = tuple(10.0**power for power in range(-4, 0))
"""Inverse regularisation strengths, chosen by five-fold cross-validation on the training items."""


def head_features(forth: NDArray[np.float32], back: NDArray[np.float32]) -> Floats:
    """Return each candidate's features: its log weights in every head, and their means over the other candidates.

    Every item must have exactly M candidates, because the mean would include absent candidates.

    Args:
        forth: weight from the pronoun to each candidate, (N, L, H, M).
        back: weight from each candidate to the pronoun, (N, L, H, M).

    Returns:
        (N, M, 4 * L * H).
    """
    items, _, _, most = forth.shape
    own = np.stack([forth, back], axis=1).reshape(items, -1, most).transpose(0, 2, 1)
    own = np.log(np.maximum(own, MIN_WEIGHT))
    others = (own.sum(axis=1, keepdims=True) - own) / max(1, most - 1)
    return np.concatenate([own, others], axis=2)


def out_of_fold_probabilities(features: Floats, gold: NDArray[np.bool_], folds: Sequence[int], seed: int = 0) -> Floats:
    """Return each candidate's probability of being an antecedent, from a logistic regression fitted on other folds.

    Args:
        features: F features of each candidate, (N, M, F).
        gold: mask of the antecedents, (N, M).
        folds: fold of each item, (N,).
        seed: seed of the solver.

    Returns:
        (N, M).
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
        inner = list(GroupKFold(5).split(rows, answers, np.repeat(training, most)))
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

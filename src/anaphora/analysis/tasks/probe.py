"""A probe over all heads: a linear classifier on the attention between pronoun and candidates.

N items, L layers, H heads, M candidates.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.scores.baselines.policies import Floats

MIN_WEIGHT = 1e-6
"""The least weight that counts, so that each has a logarithm."""
INVERSE_PENALTIES = tuple(10.0**power for power in range(-4, 0))
"""The inverse regularisation strengths among which the training items choose, by five folds."""


def head_features(forth: NDArray[np.float32], back: NDArray[np.float32]) -> Floats:
    """Return each candidate's row of features: log weights of every head, its own and the mean of the others'.

    Every item has exactly M candidates: where one had fewer, the mean would count weights that are not there.

    Args:
        forth: (N, L, H, M) the weight that the pronoun puts on each candidate.
        back: (N, L, H, M) the weight that each candidate puts on the pronoun.

    Returns:
        (N, M, 4 * L * H).
    """
    items, _, _, most = forth.shape
    own = np.stack([forth, back], axis=1).reshape(items, -1, most).transpose(0, 2, 1)
    own = np.log(np.maximum(own, MIN_WEIGHT))
    others = (own.sum(axis=1, keepdims=True) - own) / max(1, most - 1)
    return np.concatenate([own, others], axis=2)


def out_of_fold_probabilities(features: Floats, gold: NDArray[np.bool_], folds: Sequence[int], seed: int = 0) -> Floats:
    """Return the probability of every candidate from a logistic regression fitted on the other folds.

    Args:
        features: (N, M, F).
        gold: (N, M).
        folds: (N,) the fold of each item.
        seed: of the solver.

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

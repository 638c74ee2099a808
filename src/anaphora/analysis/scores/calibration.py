"""Calibration of answers: one softmax temperature per language, and the expected calibration error.

Log-probabilities of answers are (N, M + 1) for N items with up to M candidates; the last column is "none of them", and
candidates that an item lacks get -inf. Masks of the right answers have the same shape. A temperature divides the
log-probabilities before the softmax (Guo et al. 2017, section 4.2) and changes no answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from anaphora.analysis.maps.answers import Bools, Floats, right_answers, shares_right
from anaphora.data.example import Example
from anaphora.data.grouping import indices_by

_BINS = 10
_LARGEST_LOG = 4.0  # largest absolute logarithm of a temperature


@dataclass(frozen=True)
class LanguageCalibration:
    """Calibration of the answers in one language."""

    language: str
    temperature: float
    items: int
    before: float  # expected calibration error without the temperature
    after: float  # expected calibration error with the temperature


def shares_at(logs: Floats, temperature: float) -> Floats:
    """Return the probabilities of answers at a softmax temperature, from their log-probabilities at temperature 1."""
    scaled = logs / temperature
    shares = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=-1, keepdims=True))


def fit_temperatures(examples: Sequence[Example], logs: Floats) -> dict[str, float]:
    """Return the temperature that `fit_temperature` fits to the items of each language."""
    right = right_answers(examples, logs.shape[1])
    languages = indices_by(example.language for example in examples)
    return {language: fit_temperature(logs[items], right[items]) for language, items in sorted(languages.items())}


def fit_temperature(logs: Floats, right: Bools) -> float:
    """Return the temperature, from exp(-4) to exp(4), that minimises the negative log-likelihood of the right answers.

    Items to which the model cannot give the right answer are left out; if no item is left, the temperature is 1. The
    likelihood has no maximum at a finite temperature if all answers are right, no better than chance, or equally
    probable. In these cases, the logarithm of the temperature gets a standard normal prior, which keeps the temperature
    near 1 if there are few items.
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import logsumexp

    answerable = (right & np.isfinite(logs)).any(axis=1)
    if not answerable.any():
        return 1.0
    logs, right = logs[answerable], right[answerable]
    of_right = np.where(right, logs, -np.inf)

    def loss(log_temperature: float, prior: float = 0.0) -> float:
        scale = np.exp(-log_temperature)
        likelihood = logsumexp(scale * of_right, axis=1) - logsumexp(scale * logs, axis=1)
        return float(prior * log_temperature**2 / 2 - likelihood.mean())

    def best(prior: float) -> float:
        bounds = (-_LARGEST_LOG, _LARGEST_LOG)
        return float(minimize_scalar(loss, bounds=bounds, args=(prior,), method="bounded", options={"xatol": 1e-6}).x)

    all_right = (of_right.max(axis=1) > np.where(right, -np.inf, logs).max(axis=1)).all()
    fitted = best(0.0)
    if all_right or fitted > _LARGEST_LOG - 0.001 or loss(fitted) > loss(0.0) - 1e-9:
        fitted = best(1 / len(logs))
    return float(np.exp(fitted))


def calibration_by_language(
    examples: Sequence[Example], logs: Floats, temperatures: Mapping[str, float]
) -> list[LanguageCalibration]:
    """Return the calibration of the answers in each language; a language not in `temperatures` has temperature 1."""
    right = right_answers(examples, logs.shape[1])
    rows = []
    for language, items in sorted(indices_by(example.language for example in examples).items()):
        temperature = temperatures.get(language, 1.0)
        before, after = (
            expected_calibration_error(shares_at(logs[items], each), right[items]) for each in (1.0, temperature)
        )
        rows.append(LanguageCalibration(language, temperature, len(items), before, after))
    return rows


def expected_calibration_error(shares: Floats, right: Bools) -> float:
    """Return the expected calibration error over 10 bins of equal width, Guo et al. 2017, equation 3.

    The confidence is the highest probability of an item's answers; in a tie, the accuracy is the share that is right.
    """
    confidence, correct = shares.max(axis=1), shares_right(shares, right)
    bins = np.clip(np.ceil(confidence * _BINS) - 1, 0, _BINS - 1).astype(np.int64)
    distances = np.bincount(bins, correct - confidence, _BINS)  # sums, not means, so that bins are weighted by size
    return float(np.abs(distances).sum() / len(shares))

"""Coreference scores MUC, B3, CEAF and LEA, as the reference scorer computes them (Pradhan et al. 2014).

A document has gold clusters of mentions, the key, and predicted clusters, the response. Precision is recall with key
and response exchanged. Numerators and denominators are summed over documents; a measure with denominator 0 is 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Clusters = Sequence[Collection[Hashable]]
"""Clusters of one document; each mention occurs once."""


@dataclass(frozen=True)
class PrecisionRecall:
    """Precision and recall of one measure, from 0 to 1."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """Return the harmonic mean of precision and recall; 0 if both are 0."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


@dataclass(frozen=True)
class CoreferenceScores:
    """Coreference scores of the predicted clusters of all documents."""

    muc: PrecisionRecall  # link-based score (Vilain et al. 1995)
    b_cubed: PrecisionRecall  # mention-based score B3 (Bagga and Baldwin 1998)
    ceaf_m: PrecisionRecall  # score of common mentions in clusters aligned one to one, similarity phi 3 (Luo 2005)
    ceaf_e: PrecisionRecall  # score of clusters aligned one to one, similarity phi 4 (Luo 2005)
    lea: PrecisionRecall  # link-based score of entities weighted by size (Moosavi and Strube 2016)

    @property
    def conll(self) -> float:
        """Return the CoNLL-2012 score: the mean F1 of MUC, B3 and CEAF-e."""
        return (self.muc.f1 + self.b_cubed.f1 + self.ceaf_e.f1) / 3


def coreference_scores(documents: Iterable[tuple[Clusters, Clusters]]) -> CoreferenceScores:
    """Return the coreference scores over all documents; each document is a pair of key and response."""
    sums = {name: np.zeros(4) for name in _MEASURES}
    for key, response in documents:
        for name, count in _MEASURES.items():
            sums[name] += count(key, response)
    return CoreferenceScores(**{name: _ratios(*counts) for name, counts in sums.items()})


Counts = tuple[float, float, float, float]
"""Numerator and denominator of recall, and those of precision."""


def _ratios(found: float, of_key: float, right: float, of_response: float) -> PrecisionRecall:
    return PrecisionRecall(
        precision=float(right / of_response) if of_response else 0.0, recall=float(found / of_key) if of_key else 0.0
    )


def _both_ways(count: Callable[[int, Counter[int], Sequence[int]], tuple[float, float]]) -> Callable[..., Counts]:
    """Return a measure that applies `count` to the key's clusters for recall and to the response's for precision.

    `count` gets the size of a cluster, the number of mentions that it shares with each cluster to be compared, and the
    sizes of the compared clusters. It returns what the cluster adds to the numerator and to the denominator.
    """

    def from_one_side(clusters: Clusters, others: Clusters) -> tuple[float, float]:
        place, sizes = _places(others), [len(other) for other in others]
        counted = [count(len(cluster), _overlaps(cluster, place), sizes) for cluster in clusters]
        return sum(found for found, _ in counted), sum(of for _, of in counted)

    def measure(key: Clusters, response: Clusters) -> Counts:
        return (*from_one_side(key, response), *from_one_side(response, key))

    return measure


def _muc(size: int, overlaps: Counter[int], _sizes: Sequence[int]) -> tuple[float, float]:
    parts = len(overlaps) + size - overlaps.total()  # a mention that the other side lacks is a part of its own
    return size - parts, size - 1


def _b_cubed(size: int, overlaps: Counter[int], _sizes: Sequence[int]) -> tuple[float, float]:
    return sum(shared**2 for shared in overlaps.values()) / size, size


def _lea(size: int, overlaps: Counter[int], sizes: Sequence[int]) -> tuple[float, float]:
    """Return what a cluster adds to the numerator and to the denominator of LEA.

    A cluster adds its size to the denominator. To the numerator, it adds its size times the share of its links (pairs
    of mentions) that lie within one of the compared clusters. A cluster of one mention adds 1 if it is also among the
    compared clusters, else 0.
    """
    if size == 1:
        return float(any(sizes[other] == 1 for other in overlaps)), size
    return size * sum(shared * (shared - 1) for shared in overlaps.values()) / (size * (size - 1)), size


def _ceaf_m(key: Clusters, response: Clusters) -> Counts:
    common = _aligned(key, response, lambda shared, _size, _other: shared)
    return common, sum(map(len, key)), common, sum(map(len, response))


def _ceaf_e(key: Clusters, response: Clusters) -> Counts:
    common = _aligned(key, response, lambda shared, size, other: 2 * shared / (size + other))
    return common, len(key), common, len(response)


def _aligned(key: Clusters, response: Clusters, similarity: Callable[[int, int, int], float]) -> float:
    """Return the maximum sum of similarities over one-to-one alignments of clusters."""
    from scipy.optimize import linear_sum_assignment

    place = _places(response)
    similarities = np.zeros((len(key), len(response)))
    for row, cluster in enumerate(key):
        for column, shared in _overlaps(cluster, place).items():
            similarities[row, column] = similarity(shared, len(cluster), len(response[column]))
    return float(similarities[linear_sum_assignment(similarities, maximize=True)].sum())


def _places(clusters: Clusters) -> dict[Hashable, int]:
    return {mention: number for number, cluster in enumerate(clusters) for mention in cluster}


def _overlaps(cluster: Collection[Hashable], place: Mapping[Hashable, int]) -> Counter[int]:
    return Counter(place[mention] for mention in cluster if mention in place)


_MEASURES: dict[str, Callable[[Clusters, Clusters], Counts]] = {
    "muc": _both_ways(_muc),
    "b_cubed": _both_ways(_b_cubed),
    "ceaf_m": _ceaf_m,
    "ceaf_e": _ceaf_e,
    "lea": _both_ways(_lea),
}

"""Scores of coreference clusters: MUC, B3, CEAF and LEA, as the reference scorer counts them (Pradhan et al. 2014).

A document has two divisions of mentions into clusters, the key and the response. Each measure is a recall, how much of
the key the response has, and a precision, the same with the two exchanged; numerators and denominators are summed over
documents. A measure without a denominator is 0, as there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Clusters = Sequence[Collection[Hashable]]
"""The clusters of one document; no mention is in two of them, or twice in one."""


@dataclass(frozen=True)
class PrecisionRecall:
    """One measure, each number from 0 to 1."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """Return the harmonic mean of both."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


@dataclass(frozen=True)
class CoreferenceScores:
    """The scores of a response.

    Attributes:
        muc: links between mentions (Vilain et al. 1995).
        b_cubed: the clusters of each mention (Bagga and Baldwin 1998).
        ceaf_m: mentions of clusters that are aligned one to one, similarity phi 3 (Luo 2005).
        ceaf_e: clusters aligned one to one, similarity phi 4 (Luo 2005).
        lea: clusters, weighted by their size, by their links (Moosavi and Strube 2016).
    """

    muc: PrecisionRecall
    b_cubed: PrecisionRecall
    ceaf_m: PrecisionRecall
    ceaf_e: PrecisionRecall
    lea: PrecisionRecall

    @property
    def conll(self) -> float:
        """Return the mean F1 of MUC, B3 and CEAF-e, by which CoNLL-2012 ranked systems."""
        return (self.muc.f1 + self.b_cubed.f1 + self.ceaf_e.f1) / 3


def coreference_scores(documents: Iterable[tuple[Clusters, Clusters]]) -> CoreferenceScores:
    """Return the scores of documents, each given as key and response."""
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
    """Return a measure that counts each cluster against the clusters of the other side, once from either side.

    Args:
        count: gives the numerator and the denominator of a cluster from its size, how many of its mentions are in each
            cluster of the other side, and the sizes of those.
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
    """The size times the share of links; a cluster of one mention is right if the other side has it alone, too."""
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
    """Return the greatest sum of similarities of an alignment of clusters one to one."""
    from scipy.optimize import linear_sum_assignment

    place = _places(response)
    similarities = np.zeros((len(key), len(response)))
    for row, cluster in enumerate(key):
        for column, shared in _overlaps(cluster, place).items():
            similarities[row, column] = similarity(shared, len(cluster), len(response[column]))
    return float(similarities[linear_sum_assignment(similarities, maximize=True)].sum())


def _places(clusters: Clusters) -> dict[Hashable, int]:
    """Return the number of each mention's cluster."""
    return {mention: number for number, cluster in enumerate(clusters) for mention in cluster}


def _overlaps(cluster: Collection[Hashable], place: Mapping[Hashable, int]) -> Counter[int]:
    """Return how many mentions of a cluster are in each cluster of the other side."""
    return Counter(place[mention] for mention in cluster if mention in place)


_MEASURES: dict[str, Callable[[Clusters, Clusters], Counts]] = {
    "muc": _both_ways(_muc),
    "b_cubed": _both_ways(_b_cubed),
    "ceaf_m": _ceaf_m,
    "ceaf_e": _ceaf_e,
    "lea": _both_ways(_lea),
}

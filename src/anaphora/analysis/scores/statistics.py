"""Bootstrap intervals for clustered items, permutation tests of heads' accuracies, and corrections of p-values.

Axes are N (items), L (layers), H (heads) and M (candidates at most).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anaphora.analysis.maps.answers import Floats
from anaphora.analysis.results.scores import Head, Spread
from anaphora.analysis.scores.heads import HeadScores, is_main, macro_weights, strongest_candidates
from anaphora.analysis.scores.quads import items_of_minimal_pairs
from anaphora.data.example import Example
from anaphora.data.grouping import codes_of, indices_by

BOOTSTRAPPED_FROM = 5
"""Smallest number of clusters for a bootstrap. Fewer clusters have few distinct samples, so that the interval would
cover the true mean far too rarely: about half the time for two clusters."""
FEWEST_EQUAL = 6
"""Smallest number of clusters with equal means for which an interval, of width 0, is given. K random cluster means all
lie on one side of the true mean with probability 2 / 2^K (the sign test). At the 95 % level, up to five means may be
equal by chance, which does not justify such an interval."""
UNBOUNDED = (-np.inf, np.inf)
_TAIL = (1 - 0.95) / 2
_ALIKE = 1e-9  # tolerance for equal means that were summed in different orders
_MAX_RANDOM_NUMBERS = 4_000_000  # random numbers in memory at once: 32 MB


def has_interval(cluster_means: ArrayLike) -> bool:
    """Return whether there are enough clusters for an interval of the mean.

    Two clusters are enough unless all K cluster means, (K,), are equal; then `FEWEST_EQUAL` clusters are needed.
    """
    means = np.asarray(cluster_means, dtype=np.float64)
    return len(means) > 1 and bool(np.ptp(means) > _ALIKE or len(means) >= FEWEST_EQUAL)


SHARES, DIFFERENCES = (0.0, 1.0), (-1.0, 1.0)
"""Bounds of an interval for a mean of shares, and for a mean of differences between shares."""


def cluster_interval(
    values: ArrayLike,
    clusters: Sequence[Hashable] | NDArray[np.int64],
    draws: int = 2000,
    seed: int = 0,
    bounds: tuple[float, float] = UNBOUNDED,
) -> tuple[float, float] | None:
    """Return the 95 % percentile bootstrap interval of the mean of `values`, resampling whole clusters.

    `values` and the cluster labels are (N,); items of one template, for example, are a cluster, because they are not
    independent. The ends are clipped to `bounds`. The result is None if there are too few clusters (`has_interval`).

    Plain percentiles undercover with few clusters. The percentiles are therefore further out than 2.5 % and 97.5 %,
    just as a t interval is wider than a normal interval ("expanded percentile", Hesterberg 2015). With fewer than
    `BOOTSTRAPPED_FROM` clusters the result is a t interval, because a bootstrap mean cannot lie outside the cluster
    means.

    Raises:
        ValueError: the numbers of values and labels differ.
    """
    from scipy import special

    numbers = np.asarray(values, dtype=np.float64)
    if numbers.shape != (len(clusters),):
        raise ValueError(f"values must be ({len(clusters)},), one for each cluster label, not {numbers.shape}")
    codes = np.array(codes_of(clusters), dtype=np.int64)
    count = int(codes.max(initial=-1)) + 1
    sums, sizes = np.bincount(codes, weights=numbers), np.bincount(codes)
    if not has_interval(sums / sizes):
        return None
    if count < BOOTSTRAPPED_FROM:
        mean = sums.sum() / sizes.sum()
        residuals = (sums - mean * sizes) / sizes.mean()  # the mean is a ratio of sums to sizes
        half = -special.stdtrit(count - 1, _TAIL) * np.sqrt((residuals**2).sum() / (count - 1) / count)
        return float(max(mean - half, bounds[0])), float(min(mean + half, bounds[1]))
    random = np.random.default_rng(seed)
    means = []
    for many in _chunks(draws, count):
        samples = random.integers(count, size=(many, count))
        means.append(sums[samples].sum(axis=1) / sizes[samples].sum(axis=1))
    tail = special.ndtr(special.stdtrit(count - 1, _TAIL) * np.sqrt(count / (count - 1)))
    low, high = np.quantile(np.concatenate(means), [tail, 1 - tail])
    return float(max(low, bounds[0])), float(min(high, bounds[1]))  # linearised values may exceed the bounds


def permutation_p_max(scores: HeadScores, draws: int = 1000, seed: int = 0) -> Floats:
    """Return each head's p-value of candidate accuracy, corrected for the number of heads by max-T: (L, H).

    A head's p-value is the share of draws in which the best head's accuracy is at least this head's observed accuracy.
    Only items of the main results (`Example.is_main`) count. Each draw relabels their antecedents
    (`_permutation_null`), in the same way for all heads; the true labels count as one draw. The head with the highest
    accuracy (`choose_head`) has the smallest p-value. The result is NaN in layers without attention.

    Raises:
        ValueError: there are no such items.
    """
    main, layers = scores.select(is_main(scores.examples)), list(scores.attending_layers)
    strongest = strongest_candidates(main)[:, layers].reshape(len(main.examples), -1, main.gold.shape[1])
    observed, null = _permutation_null(main, strongest, draws, seed)
    p = np.full(scores.shape, np.nan)
    p[layers] = _p_values(null.max(axis=1)[:, None], observed).reshape(len(layers), -1)
    return p


def permutation_p(scores: HeadScores, head: Head, draws: int = 2000, seed: int = 0) -> float:
    """Return the one-sided p-value of the candidate accuracy of a head that was chosen on other items.

    Antecedents of all items are relabelled as in `permutation_p_max`.

    Raises:
        ValueError: there are no items.
    """
    chosen = strongest_candidates(scores)[:, head.layer, head.head : head.head + 1]
    observed, null = _permutation_null(scores, chosen, draws, seed)
    return float(_p_values(null, observed)[0])


def smallest_p(examples: Sequence[Example], draws: int = 2000) -> float:
    """Return the p-value that `permutation_p` is expected to give a head that is right on all items.

    Such a head is as accurate on a draw of relabelled antecedents only if the draw repeats the true labels. The
    probability of this is 1 / the number of relabellings. The true labels count as one more draw.
    """
    sets = _minimal_pair_sets(examples)
    alone = sorted(set(range(len(examples))).difference(*sets))
    together = _redrawn_together(examples, alone)
    counts = [_distinct_permutations([_open_antecedents(examples[item]) for item in items]) for items in together]
    traded = set(_trading_groups(examples, sets))
    relabellings = math.prod([*counts, *(math.factorial(size) for _, size in traded)])
    return (1 + draws / relabellings) / (1 + draws)


def holm(p_values: Sequence[float]) -> Floats:
    """Return p-values corrected by the method of Holm 1979, in input order; the tests need not be independent."""
    raw = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(raw)
    corrected = np.empty_like(raw)
    corrected[order] = np.minimum(np.maximum.accumulate(raw[order] * np.arange(len(raw), 0, -1)), 1)
    return corrected


def median_and_spread(values: ArrayLike) -> Spread:
    """Return the median, minimum and maximum of values; raise ValueError if there are none or one is NaN."""
    numbers = np.asarray(values, dtype=np.float64)
    if not numbers.size or np.isnan(numbers).any():
        raise ValueError(f"values must be one or more numbers, not {numbers.tolist()}")
    return Spread(float(np.median(numbers)), float(numbers.min()), float(numbers.max()))


def _p_values(null: Floats, observed: Floats) -> Floats:
    # The observed labelling is one of the relabellings, so p is never 0. The tolerance allows for the order of sums.
    return np.asarray((1 + (null >= observed - 1e-9).sum(axis=0)) / (1 + len(null)))


def _chunks(draws: int, size: int) -> Iterator[int]:
    """Divide draws of `size` random numbers each into chunks that fit into memory; yield the size of each chunk."""
    most = max(1, _MAX_RANDOM_NUMBERS // max(size, 1))
    while draws > 0:
        yield min(draws, most)
        draws -= most


def _permutation_null(scores: HeadScores, pointed: NDArray[np.float32], draws: int, seed: int) -> tuple[Floats, Floats]:
    """Return the observed accuracies of K heads, (K,), and their accuracies with relabelled antecedents, (draws, K).

    In each draw, the items of a minimal pair, one for each cue, exchange their antecedents at random. All minimal pairs
    of a group, such as a quad, use the same permutation of the cues. A head that follows position, name or a fixed
    association of cue and name is therefore at chance level. Other items, and pairs in which two items have the same
    antecedent, get antecedents drawn from the candidates that the cue distinguishes. Items of a group are drawn
    together if they have equally many such candidates, since their antecedents are not independent.
    `pointed` holds the strongest candidates of the K heads, (N, K, M). An accuracy is a macro mean (`macro_weights`).
    """
    if not scores.examples:
        raise ValueError("scores must hold at least one item")
    weighted = pointed * macro_weights(scores.examples)[:, None, None]
    flat = weighted.transpose(0, 2, 1).reshape(-1, pointed.shape[1])  # (N * M, K)
    observed = scores.gold.reshape(-1).astype(np.float64) @ flat
    trades = _AntecedentPermutation(scores)
    random = np.random.default_rng(seed)
    null = [
        trades.draw(random, many).reshape(many, -1).astype(np.float64) @ flat
        for many in _chunks(draws, scores.gold.size)
    ]
    return observed, np.concatenate(null)


class _AntecedentPermutation:
    """Sampler of relabelled antecedents for a permutation test, as `_permutation_null` describes it."""

    def __init__(self, scores: HeadScores) -> None:
        self.gold = scores.gold
        sets = _minimal_pair_sets(scores.examples)
        groups: dict[tuple[str, int], int] = {}
        most = max(map(len, sets), default=1)
        self.table = np.zeros((len(sets), most), dtype=np.int64)  # item indices of each minimal pair, by cue
        self.traders = np.array([item for items in sets for item in items], dtype=np.int64)
        self.rank = np.array([rank for items in sets for rank in range(len(items))], dtype=np.int64)
        self.set = np.array([row for row, items in enumerate(sets) for _ in items], dtype=np.int64)
        for row, items in enumerate(sets):
            self.table[row, : len(items)] = items
        group_numbers = [groups.setdefault(each, len(groups)) for each in _trading_groups(scores.examples, sets)]
        self.group = np.array(group_numbers, dtype=np.int64)[self.set] if sets else np.zeros(0, np.int64)
        sizes = np.array([size for _, size in groups], dtype=np.int64).reshape(-1, 1)
        self.beyond = np.arange(self.table.shape[1]) >= sizes  # (groups, most): no such cue

        self.alone = np.setdiff1d(np.arange(len(scores.examples)), self.traders)
        together = _redrawn_together(scores.examples, self.alone.tolist())
        row_of = {item: row for row, item in enumerate(self.alone.tolist())}
        shape = (len(self.alone), self.gold.shape[1])
        self.closed = np.ones(shape, dtype=np.bool_)  # candidates that cannot become antecedents
        # Each item takes the shuffled ranks of the first item of its set, in `column`; ranks in `chosen` are right.
        self.first, self.column = np.zeros((len(self.alone), 1), dtype=np.int64), np.zeros(shape, dtype=np.int64)
        self.chosen = np.zeros(shape, dtype=np.bool_)
        for items in together:
            first = scores.examples[items[0]]
            antecedents = _open_antecedents(first)
            order = sorted(range(len(antecedents)), key=lambda place: not antecedents[place])
            for item in items:
                row, example = row_of[item], scores.examples[item]
                self.closed[row, _open(example)] = False
                self.first[row], self.column[row, _open(example)] = row_of[items[0]], _open(first)
                self.chosen[row, : len(order)] = np.array(_open_antecedents(example))[order]

    def draw(self, random: np.random.Generator, many: int) -> NDArray[np.bool_]:
        relabelled = np.broadcast_to(self.gold, (many, *self.gold.shape)).copy()
        if len(self.traders):
            keys = random.random((many, *self.beyond.shape)) + self.beyond
            source = self.table[self.set, np.argsort(keys, axis=2)[:, self.group, self.rank]]
            relabelled[:, self.traders] = self.gold[source]
        if len(self.alone):
            # Candidates are shuffled, with closed ones last, and those with the chosen ranks become the antecedents.
            keys = random.random((many, *self.closed.shape)) + self.closed
            ranks = np.argsort(np.argsort(keys, axis=2), axis=2)[:, self.first, self.column]
            rows = np.arange(len(self.alone))[:, None]
            relabelled[:, self.alone] = self.chosen[rows, ranks] & ~self.closed
        return relabelled


def _open(example: Example) -> list[int]:
    """Return the indices of the candidates that may become antecedents."""
    return sorted({*example.focal, *example.antecedents})


def _open_antecedents(example: Example) -> list[bool]:
    return [index in example.antecedents for index in _open(example)]


def _redrawn_together(examples: Sequence[Example], alone: Sequence[int]) -> list[list[int]]:
    """Divide item indices into sets that are relabelled alike: by group and number of candidates (`_open`)."""
    keys = ((examples[item].group or f"\0{item}", len(_open(examples[item]))) for item in alone)
    return [[alone[place] for place in places] for places in indices_by(keys).values()]


def _distinct_permutations(antecedents: Sequence[Sequence[bool]]) -> int:
    """Return the number of ways to relabel antecedents if candidates are permuted in the same way in all items."""
    alike = Counter(zip(*antecedents, strict=True))
    return math.factorial(len(antecedents[0])) // math.prod(map(math.factorial, alike.values()))


def _trading_groups(examples: Sequence[Example], sets: Sequence[Sequence[int]]) -> list[tuple[str, int]]:
    """Return each minimal pair's group and size; pairs of the same group and size are relabelled in the same way."""
    return [(examples[items[0]].group or f"\0{row}", len(items)) for row, items in enumerate(sets)]


def _minimal_pair_sets(examples: Sequence[Example]) -> list[list[int]]:
    """Return the item indices of each minimal pair whose items all have different antecedents, sorted by cue.

    Minimal pairs whose items differ in the number of candidates are left out.
    """
    return [
        sorted(items, key=lambda item: examples[item].factors.get("cue", ""))
        for items in items_of_minimal_pairs(examples)
        if len({examples[item].antecedents for item in items}) == len(items)
        and len({len(examples[item].candidates) for item in items}) == 1
    ]

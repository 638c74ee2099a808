"""Specificity: a head's attention weight from the pronoun to the antecedent, compared with that from other words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.results.scores import Groups, Head
from anaphora.analysis.results.typed_json import Interval
from anaphora.analysis.scores.cells import Cells, bootstrap_interval, cells, clusters, each_cell, rounded
from anaphora.analysis.scores.statistics import UNBOUNDED
from anaphora.data.example import Example

if TYPE_CHECKING:
    from anaphora.data.tokens.tokenizer import TokenizedText


@dataclass(frozen=True, kw_only=True)
class Specificity:
    """Weight on the antecedent in one head: from the pronoun, and the largest from any other word; means over items.

    Attributes:
        ratio: `pronoun_mass` / `best_other_mass`; None if `best_other_mass` is 0.
        ratio_interval: 95 % bootstrap interval of the ratio; None also if `pronoun_mass` is 0.
        difference: mean over items of the weight from the pronoun minus the largest weight from any other word.
        interval: 95 % bootstrap interval of the difference; None if there are too few clusters of items.
    """

    items: int
    pronoun_mass: float | None
    best_other_mass: float | None
    ratio: float | None
    difference: float | None
    interval: Interval | None
    ratio_interval: Interval | None = None


def query_masses(example: Example, tokens: TokenizedText, weights: NDArray[np.float32]) -> tuple[float, float]:
    """Return two weights on the antecedent: the weight from the pronoun, and the largest weight from any other word.

    `weights` is one head's attention map, (T, T); a word's row is the mean over its tokens. Special tokens and the
    antecedent's own tokens do not count as other words. The second weight is 0 if there is no other word.
    """
    gold = {
        token for index in example.antecedents for span in example.candidates[index] for token in tokens.covering(span)
    }
    pronoun = set(tokens.covering(example.pronoun))
    mass = weights[:, sorted(gold)].sum(axis=1, dtype=np.float64)
    words: dict[int, list[float]] = {}
    for token, word in enumerate(tokens.words):
        if word >= 0 and token not in gold and token not in pronoun:
            words.setdefault(word, []).append(float(mass[token]))
    others = [sum(of_word) / len(of_word) for of_word in words.values()]
    return float(mass[sorted(pronoun)].mean()), max(others, default=0.0)


def pronoun_specificity(
    examples: Sequence[Example],
    maps: Iterable[tuple[TokenizedText, NDArray[np.float32]]],
    head: Head,
    by: Cells = cells,
) -> Groups[Specificity]:
    """Compare a head's weight on the antecedent from the pronoun with the largest weight from any other word.

    `maps` holds the tokens and the attention maps (L, H, T, T) of each item; every item must have an antecedent.
    """
    of_items = [
        query_masses(example, tokens, weights[head.layer, head.head])
        for example, (tokens, weights) in zip(examples, maps, strict=True)
    ]
    masses = np.array(of_items).reshape(-1, 2)
    differences, labels = masses[:, 0] - masses[:, 1], clusters(examples)

    def cell(items: NDArray[np.bool_]) -> Specificity:
        pronoun, other = masses[items].mean(axis=0)
        return Specificity(
            items=int(items.sum()),
            pronoun_mass=rounded(pronoun),
            best_other_mass=rounded(other),
            ratio=rounded(pronoun / other) if other > 0 else None,
            difference=rounded(differences[items].mean()),
            interval=bootstrap_interval(differences[items], labels[items]),
            ratio_interval=_ratio_interval(masses[items], labels[items]),
        )

    return each_cell(examples, cell, by)


def _ratio_interval(masses: NDArray[np.float64], labels: NDArray[np.int64]) -> Interval | None:
    """Return the bootstrap interval of the ratio of the means of two columns, (N, 2); None if one of the means is 0.

    The logarithm of the ratio is linearised and bootstrapped, because the distribution of a ratio is skewed.
    """
    means = masses.mean(axis=0)
    if not means.all():
        return None
    shares = masses / means
    influence = np.log(means[0] / means[1]) + shares[:, 0] - shares[:, 1]
    ends = bootstrap_interval(influence, labels, UNBOUNDED)
    return None if ends is None else Interval(*(round(float(np.exp(end)), 6) for end in ends))

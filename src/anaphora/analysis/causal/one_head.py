"""Causal tests that edit the pronoun's attention rows in a single head.

The first test removes the same weight from the edge to the antecedent and, separately, from all other edges. The second
exchanges the weights on antecedent and distractor. The third computes how a knockout redistributes the weight. Axes are
N (items), Q (tokens of the pronoun) and T (tokens of a sentence).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.causal.edges import SentenceEdges
from anaphora.analysis.causal.knockout_and_ablation import CausalTests, KnockedOut
from anaphora.analysis.causal.subjects import Scores
from anaphora.analysis.maps.answers import Bools, Floats, shares_right
from anaphora.analysis.results.causal import AlignedPatching, HeadLevel, RemovedMass
from anaphora.analysis.scores.cells import rounded
from anaphora.base.translation import _

DOSES = (0.05, 0.1, 0.2)
"""Weights that are removed from the edge to the antecedent or from all other edges. Removing a whole edge costs more
accuracy if its weight is larger; removing equal weights shows which edge matters more per weight."""
KEYS = ("distractors", "cue", "pronoun", "special", "other_words")
"""Classes of tokens to which the softmax gives the weight that a knockout removes from the antecedent."""

Row = NDArray[np.float32]
"""Attention rows of the pronoun's tokens in one head: (Q, T)."""


def head_level(
    tests: CausalTests, zeroed: Mapping[str, KnockedOut], aligned: Callable[[Bools], AlignedPatching]
) -> Callable[[Bools], HeadLevel]:
    """Run the causal tests that edit only the pronoun's attention rows in the head under test.

    Args:
        zeroed: results of zeroing the values along the edge to the antecedent ("value_zeroing"), and along the
            pronoun's other edges ("value_zeroing_others").
        aligned: result of `aligned_patching`.

    Returns:
        Function from a mask of items, (N,), to the results for these items.
    """
    tests.progress(_("causal tests: one head, dose by dose"))
    doses = {mass: _dose(tests, mass) for mass in DOSES}
    exchangeable, exchanged = _exchange(tests)
    freed = _freed(tests)

    def cell(items: Bools) -> HeadLevel:
        patched, tested = aligned(items), items & exchangeable
        exchange_flips, exchange_interval = tests.mean(exchanged, tested)
        left = items & np.isfinite(freed["cue"])
        return HeadLevel(
            items=int(items.sum()),
            **_points_by_side(tests, zeroed["value_zeroing"].right, zeroed["value_zeroing_others"].right, items),
            pairs=patched.pairs,
            patch_flips=patched.head.flipped,
            patch_interval=patched.head.interval,
            exchange_items=int(tested.sum()),
            exchange_flips=exchange_flips,
            exchange_interval=exchange_interval,
            doses=tuple(
                RemovedMass(
                    mass=mass,
                    items=int((items & removable).sum()),
                    **_points_by_side(tests, antecedent, other_edges, items & removable),
                )
                for mass, (removable, antecedent, other_edges) in doses.items()
            ),
            freed_mass={name: rounded(shares[left].mean()) if left.any() else None for name, shares in freed.items()},
        )

    return cell


def _points_by_side(tests: CausalTests, antecedent: Floats, other_edges: Floats, items: Bools) -> dict[str, Any]:
    """Return the drops in task accuracy, in percentage points, after edits of the antecedent's edge and of others.

    `antecedent` and `other_edges` hold the correctness of the answers after the two edits, (N,) each. Drops are means
    over the items in a mask. Drops and intervals are keyed by the fields of `RemovedMass`.
    """
    points: dict[str, Any] = {}
    for side, right in (("antecedent", antecedent), ("other_edges", other_edges)):
        loss = tests.mean(100 * (tests.right - right), items, bounds=(-100, 100))
        points[f"{side}_points"], points[f"{side}_interval"] = loss
    return points


def _row(tests: CausalTests, sentence: SentenceEdges) -> Row:
    return np.asarray(sentence.rows[tests.head.layer, tests.head.head])


def _scores(tests: CausalTests, rows: Mapping[int, Row]) -> Scores:
    whole = {}
    for item, row in rows.items():
        whole[item] = tests.sentences[item].rows.copy()
        whole[item][tests.head.layer, tests.head.head] = row
    return tests.subject.patched([tests.head], whole) if whole else tests.before


def _dose(tests: CausalTests, mass: float) -> tuple[Bools, Floats, Floats]:
    """Remove the weight `mass` from the antecedent or, in a second test, from all other tokens, without rescaling.

    Returns:
        Three arrays (N,): mask of the tested items, in which the antecedent and the other tokens each have at least
        this weight; correctness after removal from the antecedent; correctness after removal from the other tokens.
    """
    lighter: dict[str, dict[int, Row]] = {"antecedent": {}, "other_edges": {}}
    for item, sentence in enumerate(tests.sentences):
        row = _row(tests, sentence)
        of_antecedent = np.zeros(row.shape[1], dtype=bool)
        of_antecedent[sentence.antecedents] = True
        on_each = {"antecedent": of_antecedent, "other_edges": ~of_antecedent}
        on_side = {name: float(row[:, keys].sum(axis=1).mean()) for name, keys in on_each.items()}
        if min(on_side.values()) < mass:
            continue
        for name, keys in on_each.items():
            lighter[name][item] = np.where(keys, row * np.float32(1 - mass / on_side[name]), row)
    right = {name: tests.is_right(_scores(tests, rows)) for name, rows in lighter.items()}
    return tests.mask(lighter["antecedent"]), right["antecedent"], right["other_edges"]


def _exchange(tests: CausalTests) -> tuple[Bools, Floats]:
    """Exchange the pronoun's weights on the antecedent and on the distractor with the largest weight.

    Only items that the model answers correctly and that have a distractor are tested. If pronoun, antecedent and
    distractor have one token each, this is path patching from the two candidates to the pronoun through this head: the
    effect is the same as if the head's value vectors of the two candidates were exchanged.

    Returns:
        Mask of the tested items, and whether the answer becomes the distractor (1 / k in a tie), (N,) each.
    """
    rows: dict[int, Row] = {}
    expected = np.zeros_like(tests.gold)
    for item, (sentence, example) in enumerate(zip(tests.sentences, tests.subject.examples, strict=True)):
        others = [number for number in range(len(sentence.mentions)) if number not in example.antecedents]
        rivals = [
            (sentence.mass(tests.head, keys), number, keys)
            for number, keys in zip(others, sentence.distractors, strict=True)
            if keys
        ]
        if tests.right[item] < 1 or not rivals:
            continue
        _, rival, keys = max(rivals)
        row = _row(tests, sentence)
        exchanged = row.copy()
        exchanged[:, sentence.antecedents] = row[:, keys].sum(axis=1, keepdims=True) / len(sentence.antecedents)
        exchanged[:, keys] = row[:, sentence.antecedents].sum(axis=1, keepdims=True) / len(keys)
        rows[item], expected[item, rival] = exchanged, True
    return np.asarray(expected.any(axis=1)), shares_right(_scores(tests, rows), expected)


def _freed(tests: CausalTests) -> dict[str, Floats]:
    """Return which share of the weight that a knockout removes from the antecedent goes to each class of tokens.

    The softmax distributes the weight in proportion to the remaining weights. The shares, (N,), are keyed by the class
    (`KEYS`) and NaN if no other token has weight.
    """
    shares = {name: np.full(len(tests.sentences), np.nan) for name in KEYS}
    for item, (sentence, tokens) in enumerate(zip(tests.sentences, tests.subject.tokens, strict=True)):
        weights = _row(tests, sentence).mean(axis=0).astype(np.float64)
        left = np.ones(len(weights), dtype=bool)
        left[sentence.antecedents] = False
        total = weights[left].sum()
        if total <= 0:
            continue
        part = np.full(len(weights), "other_words", dtype=object)
        part[[word < 0 for word in tokens.words]] = "special"
        part[sentence.cue] = "cue"
        part[[token for keys in sentence.distractors for token in keys]] = "distractors"
        part[sentence.pronoun] = "pronoun"
        for name in KEYS:
            shares[name][item] = weights[left & (part == name)].sum() / total
    return shares

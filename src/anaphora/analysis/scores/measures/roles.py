"""Roles of heads, by where the pronoun attends: to a fixed offset, special tokens, the cue or the antecedent.

Axes are N (items), L (layers), H (heads) and T (tokens).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.scores.cells import rounded
from anaphora.analysis.scores.heads import TIE, HeadScores, is_main
from anaphora.analysis.scores.quads import next_in_minimal_pair
from anaphora.data.example import Example, Span, overlapping

POSITIONAL_FROM = 0.9
"""Smallest share of items in which a positional head's largest weight is at one offset (Voita et al. 2019, section
5.1)."""
SPECIAL_FROM = 0.5
"""Smallest mean weight of a special-token head on special tokens."""
CUE_FROM = 0.5
"""Smallest share of items in which a cue head's largest weight is on a word of the cue."""
ANTECEDENT_FROM = 0.1
"""Smallest difference between the candidate accuracies of an antecedent head and of the best baseline."""

_TIED = -1


@dataclass(frozen=True, kw_only=True)
class PositionalShare:
    """Most frequent offset, in tokens, from the pronoun to the token with the head's largest weight.

    `share` is the share of items with this offset. The offset is None if the largest weight is tied in every item.
    """

    offset: int | None
    share: float | None


@dataclass(frozen=True, kw_only=True)
class AntecedentLead:
    """Candidate accuracy of a head minus the accuracy of the best baseline."""

    accuracy_over_best_baseline: float | None


@dataclass(frozen=True, kw_only=True)
class HeadRoles:
    """Roles of one head, such as "positional", and the measures that determine them; `head_roles` defines both."""

    layer: int
    head: int
    roles: tuple[str, ...]
    positional: PositionalShare
    special: float | None
    cue: float | None
    antecedent: AntecedentLead


def head_roles(
    scores: HeadScores, records: Sequence[AttentionRecord], baselines: Mapping[str, NDArray[np.floating]]
) -> tuple[HeadRoles, ...]:
    """Return the roles of every head, from the pronoun's attention rows.

    Args:
        records: attention records, of which only items of the main results (`Example.is_main`) count; the scores of
            item i were computed from `records[scores.kept[i]]`.
        baselines: correctness of each baseline by name, (N,); a baseline with NaN is left out.

    Returns:
        One `HeadRoles` for each head of a layer with attention, layer by layer. A head has each role whose value
        reaches its threshold ("roles"):

        - "positional": most frequent offset, in tokens, from the pronoun to the token with the largest weight, and its
          share of items. All tokens of the pronoun are at offset 0. Threshold 0.9.
        - "special": mean weight on special tokens such as [CLS]. Threshold 0.5.
        - "cue": share of items with the largest weight on a word of the cue (`cue_tokens`). Items without such words do
          not count; None if no item counts. Threshold 0.5.
        - "antecedent": candidate accuracy minus the best baseline's; None without baselines. Threshold 0.1.

        For "positional" and "cue", an item whose largest weight is tied counts as a miss.

    Raises:
        ValueError: there is no item of the main results.
    """
    main = np.flatnonzero(is_main(scores.examples))
    if not len(main):
        raise ValueError("scores must hold at least one main item")
    rows = [records[number] for number in scores.kept[main]]
    heaviest = np.stack([_argmax(record) for record in rows])  # (N, L, H)
    special = np.mean([record.weights[:, :, np.array(record.words) < 0].sum(axis=2) for record in rows], axis=0)
    offsets = np.stack([_offsets(record)[at] for record, at in zip(rows, heaviest, strict=True)])
    offsets = np.where(heaviest == _TIED, np.nan, offsets)
    cues = cue_tokens([row.example for row in rows], [row.spans for row in rows])
    cued = [(item, cue) for item, cue in enumerate(cues) if cue.any()]
    on_cue = [cue[heaviest[item]] & (heaviest[item] != _TIED) for item, cue in cued]
    cue_share: NDArray[np.float64] = np.mean(on_cue, axis=0) if on_cue else np.full(scores.shape, np.nan)
    best = max((float(right[main].mean()) for right in baselines.values() if not np.isnan(right).any()), default=np.nan)
    above = scores.candidate_accuracy[main].mean(axis=0, dtype=np.float64) - best
    return tuple(
        _role_entry(layer, head, offsets[:, layer, head], special[layer, head], float(cue_share[layer, head]), lead)
        for (layer, head), lead in np.ndenumerate(above)
        if layer in scores.attending_layers
    )


def _role_entry(
    layer: int, head: int, offsets: NDArray[np.float64], special: float, cue: float, above: float
) -> HeadRoles:
    values, counts = np.unique(offsets[~np.isnan(offsets)], return_counts=True)
    share = counts.max() / len(offsets) if len(counts) else 0.0
    # Comparisons with NaN, for what could not be measured, are false.
    roles = {
        "positional": share >= POSITIONAL_FROM,
        "special": special >= SPECIAL_FROM,
        "cue": cue >= CUE_FROM,
        "antecedent": above >= ANTECEDENT_FROM,
    }
    return HeadRoles(
        layer=layer,
        head=head,
        roles=tuple(name for name, plays in roles.items() if plays),
        positional=PositionalShare(offset=int(values[counts.argmax()]) if len(counts) else None, share=rounded(share)),
        special=rounded(special),
        cue=rounded(cue),
        antecedent=AntecedentLead(accuracy_over_best_baseline=rounded(above)),
    )


def cue_tokens(examples: Sequence[Example], spans: Sequence[Sequence[Span]]) -> list[NDArray[np.bool_]]:
    """Return a mask of the cue's tokens, (T,), for each item: the tokens that differ from the minimal pair's next item.

    Tokens of the pronoun and of candidates are left out. The mask is empty if the item has no minimal pair, or if the
    pronoun itself is the cue. `spans` holds the T tokens' character spans, (0, 0) for special tokens.
    """
    cues = [np.zeros(len(each), dtype=np.bool_) for each in spans]
    for item, other in next_in_minimal_pair(examples).items():
        cues[item] = _differing(examples[item], spans[item], examples[other], spans[other])
    return cues


def _differing(example: Example, spans: Sequence[Span], other: Example, its: Sequence[Span]) -> NDArray[np.bool_]:
    tokens = np.zeros(len(spans), dtype=np.bool_)
    start, end = example.pronoun
    if example.factors.get("cue", "").lower() == example.text[start:end].lower():
        return tokens  # the pronoun is the cue
    own = [example.text[left:right] for left, right in spans]
    others = [other.text[left:right] for left, right in its]
    for tag, first, last, _, _ in SequenceMatcher(None, own, others, autojunk=False).get_opcodes():
        tokens[first:last] |= tag in ("replace", "delete")
    for mention in example.spans:
        tokens[overlapping(spans, mention)] = False
    return tokens


def _argmax(record: AttentionRecord) -> NDArray[np.int64]:
    """Return the index of the token with the largest weight in each head's row, (L, H); -1 in a tie."""
    largest = record.weights.max(axis=2, keepdims=True)
    tied = (record.weights >= largest * np.float32(1 - TIE)).sum(axis=2)
    return np.where(tied == 1, record.weights.argmax(axis=2), _TIED)


def _offsets(record: AttentionRecord) -> NDArray[np.int64]:
    """Return each token's offset from the pronoun, (T,): positive after its last token, negative before its first."""
    own = overlapping(record.spans, record.example.pronoun)
    token = np.arange(len(record.spans))
    return np.asarray(np.maximum(token - own[-1], 0) + np.minimum(token - own[0], 0))

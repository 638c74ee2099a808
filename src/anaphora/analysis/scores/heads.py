"""Scores of every attention head from the pronoun's attention row of each item, and the selection of one head.

Scores follow Clark et al. 2019, section 4.3. Axes are N (items), L (layers), H (heads) and M (candidates of an item).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.maps.answers import Floats
from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.maps.words import attending_layers, token_shares
from anaphora.analysis.results.scores import Head
from anaphora.base.errors import UserError
from anaphora.base.translation import N_
from anaphora.data.example import Example
from anaphora.data.grouping import codes_of

TIE = 1e-6
"""Relative difference below which two weights count as tied, since rounding may make equal weights differ."""

MEASURES = (
    "candidate_accuracy",
    "focal_accuracy",
    "open_accuracy",
    "antecedent_mass",
    "lift",
    "share",
    "reciprocal_rank",
)

NO_ANTECEDENT = N_("no antecedent")
TOO_FEW_CANDIDATES = N_("fewer than two candidates")
NO_DISTRACTOR = N_("every candidate is an antecedent")
CANDIDATE_WITHOUT_TOKEN = N_("a candidate without a token")
CANDIDATE_IN_PRONOUN = N_("a candidate in a token of the pronoun")
DROP_REASONS = (NO_ANTECEDENT, TOO_FEW_CANDIDATES, NO_DISTRACTOR, CANDIDATE_WITHOUT_TOKEN, CANDIDATE_IN_PRONOUN)

_BATCH_WEIGHTS = 4_000_000  # number of attention weights that are concatenated at once: 16 MB


@dataclass(frozen=True, eq=False)
class HeadScores:
    """Scores of every head on every item, computed from the pronoun's attention row.

    Measures are (N, L, H) float32, NaN in layers without attention.

    Attributes:
        kept: index of each scored item among the records, (N,).
        attending_layers: indices of the layers with attention.
        candidate_accuracy: 1 if the strongest candidate is an antecedent; in a tie among k, 1 / k per tied antecedent.
        focal_accuracy: candidate accuracy if only the candidates that the cue distinguishes are compared.
        open_accuracy: 1 if the word with the largest weight, of all words except the pronoun, is in an antecedent.
        antecedent_mass: weight on all tokens of the antecedents, in [0, 1].
        lift: antecedent mass over the antecedents' share of the sentence's tokens; 1 for uniform attention.
        share: antecedent mass over the weight on all candidates; if both are 0, the item's value of `chance`.
        reciprocal_rank: 1 / rank of the strongest antecedent when it and the distractors are sorted by weight; for
            ties, the mean over all orders.
        candidate_mass: weight on each candidate, (N, L, H, M); 0 for absent candidates.
        present, gold: masks of the candidates that an item has, and of its antecedents, (N, M).
        dropped: number of items that could not be scored, by reason (`DROP_REASONS`).
    """

    examples: tuple[Example, ...]
    kept: NDArray[np.int64]
    attending_layers: tuple[int, ...]
    candidate_accuracy: NDArray[np.float32]
    focal_accuracy: NDArray[np.float32]
    open_accuracy: NDArray[np.float32]
    antecedent_mass: NDArray[np.float32]
    lift: NDArray[np.float32]
    share: NDArray[np.float32]
    reciprocal_rank: NDArray[np.float32]
    candidate_mass: NDArray[np.float32]
    present: NDArray[np.bool_]
    gold: NDArray[np.bool_]
    dropped: dict[str, int]

    @property
    def chance(self) -> Floats:
        """Return the share of each item's candidates that are antecedents: (N,)."""
        return np.asarray(self.gold.sum(axis=1) / np.maximum(self.present.sum(axis=1), 1))

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of layers and heads."""
        return self.candidate_mass.shape[1], self.candidate_mass.shape[2]

    def at(self, head: Head, measure: str) -> Floats:
        """Return the values of one of `MEASURES` in one head: (N,)."""
        return np.asarray(getattr(self, measure)[:, head.layer, head.head], dtype=np.float64)

    def select(self, items: NDArray[np.bool_] | NDArray[np.int64]) -> HeadScores:
        """Return the scores of the items selected by a mask or by indices; `dropped` is empty in the result."""
        numbers = np.flatnonzero(items) if items.dtype == np.bool_ else items
        arrays = {
            each.name: getattr(self, each.name)[numbers]
            for each in fields(self)
            if each.name not in ("examples", "dropped", "attending_layers")
        }
        return replace(self, examples=tuple(self.examples[number] for number in numbers), dropped={}, **arrays)


def score_records(records: Iterable[AttentionRecord]) -> HeadScores:
    """Score every head on every item that can be scored; count the others (`DROP_REASONS`) in `HeadScores.dropped`.

    Raises:
        UserError: there are no records, they differ in layers or heads, or an item's antecedents are not among the
            candidates that the cue distinguishes (`Example.focal`).
    """
    dropped: Counter[str] = Counter()
    parts: list[dict[str, NDArray[Any]]] = []
    examples: list[Example] = []
    kept: list[int] = []
    attending: set[int] = set()
    shape: tuple[int, ...] | None = None
    for first, batch in _batches(records):
        for record in batch:
            own = record.weights.shape[:2]
            shape = shape or own
            if own != shape:
                raise UserError(f"weights: one record has {own} layers and heads; expected {shape} as in the first")
            attending.update(attending_layers(record.weights))
        reasons = [reason_to_drop(record.example) for record in batch]
        dropped.update(reason for reason in reasons if reason is not None)
        numbers = [number for number, reason in enumerate(reasons) if reason is None]
        laid = _FlatRecords([batch[number] for number in numbers])
        readable = laid.covered & laid.apart
        if not readable.all():
            dropped.update(CANDIDATE_IN_PRONOUN if own else CANDIDATE_WITHOUT_TOKEN for own in laid.covered[~readable])
            numbers = [numbers[index] for index in np.flatnonzero(readable)]
            laid = _FlatRecords([batch[number] for number in numbers])
        if numbers:
            parts.append(_score_batch(laid))
            examples += [record.example for record in laid.records]
            kept += [first + number for number in numbers]
    if shape is None:
        raise UserError("records: there are none; expected at least one to score")
    measures = _concatenated(parts, shape)
    # If all weights are 0, as an attribution may be, every layer counts as having attention.
    layers = sorted(attending) or list(range(shape[0]))
    for name in MEASURES:
        measures[name][:, np.setdiff1d(np.arange(shape[0]), layers)] = np.nan
    return HeadScores(
        examples=tuple(examples),
        kept=np.array(kept, dtype=np.int64),
        attending_layers=tuple(layers),
        dropped=dict(dropped),
        **measures,
    )


def strongest_candidates(scores: HeadScores) -> NDArray[np.float32]:
    """Return 1 for the candidate with the largest weight in a head, 1 / k for k tied ones, else 0: (N, L, H, M)."""
    mass = np.moveaxis(scores.candidate_mass, 3, 1)
    return np.moveaxis(argmax_shares(mass, scores.present[:, :, None, None]), 1, 3)


def is_main(examples: Sequence[Example]) -> NDArray[np.bool_]:
    """Return a mask (N,) of the items on which the main results are computed (`Example.is_main`)."""
    return np.array([example.is_main for example in examples], dtype=np.bool_)


def macro_weights(examples: Sequence[Example]) -> Floats:
    """Return item weights, (N,), for a macro average over combinations of language, cue category and cue type."""
    cells = codes_of((each.language, each.factors.get("kind"), each.factors.get("type")) for each in examples)
    sizes = np.bincount(cells)
    return np.reciprocal(len(sizes) * sizes[cells], dtype=np.float64)


def choose_head(scores: HeadScores) -> Head:
    """Return the head with the highest candidate accuracy (`ranked_heads`); the choice biases this accuracy upwards.

    Raises:
        UserError: there is no item of the main results (`Example.is_main`).
    """
    return ranked_heads(scores)[0]


def ranked_heads(scores: HeadScores) -> list[Head]:
    """Return all heads of layers with attention, sorted by candidate accuracy; the best is first.

    Accuracies are macro averages (`macro_weights`) over the items of the main results (`Example.is_main`). Ties go to
    the head with more antecedent mass, then to the lower layer and head. Heads without weight on candidates come last.

    Raises:
        UserError: there is no such item.
    """
    main = scores.select(is_main(scores.examples))
    if not main.examples:
        out = ", ".join(f"{reason} ({count})" for reason, count in scores.dropped.items()) or "none"
        raise UserError(f"there is no item to choose a head on; expected one of stratum main; items left out: {out}")
    weights = macro_weights(main.examples)
    layers = list(scores.attending_layers)
    accuracy = np.einsum("n,nlh->lh", weights, main.candidate_accuracy[:, layers]).ravel()
    mass = np.einsum("n,nlh->lh", weights, main.antecedent_mass[:, layers]).ravel()
    order = np.argsort(-accuracy, kind="stable")
    rank = np.zeros(len(order), dtype=np.int64)
    rank[order[1:]] = np.cumsum(-np.diff(accuracy[order]) > 1e-9)
    silent = ~main.candidate_mass[:, layers].any(axis=(0, 3)).ravel()
    heads = [Head(layer, head) for layer in layers for head in range(scores.shape[1])]
    return [heads[place] for place in np.lexsort((-mass, rank, silent))]


def head_accuracy(scores: HeadScores) -> Floats:
    """Return each head's macro-averaged candidate accuracy in the main results, (L, H); NaN without attention."""
    main = scores.select(is_main(scores.examples))
    return np.asarray(np.einsum("n,nlh->lh", macro_weights(main.examples), main.candidate_accuracy))


def mean_chance(scores: HeadScores) -> float:
    """Return the accuracy of a random choice in the main results: the macro-averaged share of right candidates."""
    main = scores.select(is_main(scores.examples))
    return float(macro_weights(main.examples) @ main.chance)


def _batches(records: Iterable[AttentionRecord]) -> Iterator[tuple[int, list[AttentionRecord]]]:
    """Yield batches of records with about `_BATCH_WEIGHTS` weights, each with the index of its first record."""
    batch: list[AttentionRecord] = []
    held, first = 0, 0
    for record in records:
        batch.append(record)
        held += record.weights.size
        if held >= _BATCH_WEIGHTS:
            yield first, batch
            first += len(batch)
            batch, held = [], 0
    if batch:
        yield first, batch


def reason_to_drop(example: Example) -> str | None:
    """Return why an item cannot be scored, one of `DROP_REASONS`; None if it can."""
    if not example.antecedents:
        return NO_ANTECEDENT
    if len(example.candidates) < 2:
        return TOO_FEW_CANDIDATES
    if len(example.antecedents) == len(example.candidates):
        return NO_DISTRACTOR
    return None


class _FlatRecords:
    """Concatenated records: n items with K tokens and C candidates in total.

    Attributes:
        lengths: number of tokens of each item, (n,).
        spans, words, owner: character span (K, 2), word index or -1 (K,) and item index (K,) of each token.
        sizes: number of candidates of each item, (n,).
        mention_owner, slot: item index of each candidate, and its index among the item's candidates, (C,) each.
        of_pronoun: mask of the tokens that overlap their item's pronoun, (K,).
        covered: mask of the items in which every candidate has a token, (n,).
        apart: mask of the items in which no candidate shares a token with the pronoun, (n,).
    """

    def __init__(self, records: Sequence[AttentionRecord]) -> None:
        self.records = records
        examples = [record.example for record in records]
        self.lengths = np.array([len(record.spans) for record in records], dtype=np.int64)
        self.spans = _pairs(chain.from_iterable(record.spans for record in records))
        self.words = np.fromiter(chain.from_iterable(record.words for record in records), dtype=np.int64)
        self.owner = np.repeat(np.arange(len(records)), self.lengths)
        self.sizes = np.array([len(example.candidates) for example in examples], dtype=np.int64)
        self.mention_owner = np.repeat(np.arange(len(records)), self.sizes)
        self.slot = np.arange(len(self.mention_owner)) - np.repeat(np.cumsum(self.sizes) - self.sizes, self.sizes)

        mentions = [spans for example in examples for spans in example.candidates]
        number = np.repeat(np.arange(len(mentions)), np.array([len(spans) for spans in mentions], dtype=np.int64))
        item = self.mention_owner[number]
        starts = np.cumsum(self.lengths) - self.lengths
        spans = np.column_stack((_pairs(chain.from_iterable(mentions)), number))
        self.mention_tokens = token_shares(self.spans, starts[item], self.lengths[item], spans)
        bare = np.bincount(self.mention_tokens.mention, minlength=len(mentions)) == 0
        self.covered = np.bincount(self.mention_owner[bare], minlength=len(records)) == 0
        pronoun = _pairs(example.pronoun for example in examples)[self.owner]
        self.of_pronoun = (self.spans[:, 0] < pronoun[:, 1]) & (pronoun[:, 0] < self.spans[:, 1])
        in_both = self.mention_tokens.token[self.of_pronoun[self.mention_tokens.token]]
        self.apart = np.bincount(self.owner[in_both], minlength=len(records)) == 0


def _pairs(spans: Iterable[tuple[int, int]]) -> NDArray[np.int64]:
    return np.fromiter(chain.from_iterable(spans), dtype=np.int64).reshape(-1, 2)


def _score_batch(laid: _FlatRecords) -> dict[str, NDArray[Any]]:
    """Return the arrays of `HeadScores` for records that can be scored, with layers and heads as one axis, L * H."""
    records, mention_tokens = laid.records, laid.mention_tokens
    heads = records[0].weights.shape[0] * records[0].weights.shape[1]
    weights = np.concatenate([record.weights.reshape(heads, -1) for record in records], axis=1, dtype=np.float32)

    most = int(laid.sizes.max())
    present, gold, focal = (np.zeros((len(records), most), dtype=np.bool_) for _ in range(3))
    present[laid.mention_owner, laid.slot] = True
    for item, record in enumerate(records):
        gold[item, list(record.example.antecedents)] = True
        focal[item, _focal(record.example)] = True

    first = np.flatnonzero(np.diff(mention_tokens.mention, prepend=-1))
    shared = weights[:, mention_tokens.token] * mention_tokens.share.astype(np.float32)
    mass = np.zeros((len(records), most, heads), dtype=np.float32)
    mass[laid.mention_owner, laid.slot] = np.add.reduceat(shared, first, axis=1).T
    tokens = np.zeros((len(records), most))
    tokens[laid.mention_owner, laid.slot] = np.add.reduceat(mention_tokens.share, first)

    on_gold = (mass * gold[:, :, None]).sum(axis=1)  # (n, P)
    on_all = mass.sum(axis=1)
    even = (gold.sum(axis=1) / laid.sizes)[:, None]
    gold_share = (tokens * gold).sum(axis=1) / laid.lengths
    return {
        "candidate_accuracy": (argmax_shares(mass, present[:, :, None]) * gold[:, :, None]).sum(axis=1),
        "focal_accuracy": (argmax_shares(mass, focal[:, :, None]) * gold[:, :, None]).sum(axis=1),
        "open_accuracy": _open_accuracy(laid, weights, gold),
        "antecedent_mass": on_gold,
        "lift": on_gold / gold_share[:, None],
        "share": np.divide(on_gold, on_all, out=np.broadcast_to(even, on_all.shape).copy(), where=on_all > 0),
        "reciprocal_rank": _reciprocal_rank(mass, gold[:, :, None], present[:, :, None]),
        "candidate_mass": mass.transpose(0, 2, 1),
        "present": present,
        "gold": gold,
    }


def _focal(example: Example) -> list[int]:
    focal = list(example.focal)
    if not set(example.antecedents) & set(focal):
        raise UserError(
            f"factors.focal: {example.factors['focal']!r} holds no antecedent; "
            f"its antecedents: {', '.join(map(str, example.antecedents))} ({example.text!r})"
        )
    return focal


def argmax_shares(mass: NDArray[np.floating], allowed: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return 1 for the largest allowed entry along axis 1, 1 / k for each of k tied ones, and 0 for all others."""
    masked = np.where(allowed, mass, np.float32(-1))
    tied = allowed & (masked >= masked.max(axis=1, keepdims=True) * np.float32(1 - TIE))
    return np.asarray(tied / tied.sum(axis=1, keepdims=True, dtype=np.float32))


def _reciprocal_rank(
    mass: NDArray[np.float32], gold: NDArray[np.bool_], present: NDArray[np.bool_]
) -> NDArray[np.floating]:
    best = np.where(gold, mass, np.float32(-1)).max(axis=1, keepdims=True)
    distractor = present & ~gold
    above = (distractor & (mass * np.float32(1 - TIE) > best)).sum(axis=1)
    tied = (distractor & (mass >= best * np.float32(1 - TIE))).sum(axis=1) - above
    harmonic = np.concatenate(([0.0], np.cumsum(1 / np.arange(1, mass.shape[1] + 1))))
    # All ranks within the tie are equally likely: take the mean of 1 / rank.
    return np.asarray((harmonic[above + tied + 1] - harmonic[above]) / (tied + 1))


def _open_accuracy(laid: _FlatRecords, weights: NDArray[np.float32], gold: NDArray[np.bool_]) -> NDArray[np.floating]:
    """Return `HeadScores.open_accuracy`, (n, L * H), from weights, (L * H, K), and the mask of antecedents, (n, M)."""
    textual = np.flatnonzero(laid.words >= 0)
    owner, word = laid.owner[textual], laid.words[textual]
    starts = np.flatnonzero((np.diff(owner, prepend=-1) != 0) | (np.diff(word, prepend=-1) != 0))
    word_owner = owner[starts]

    own = np.logical_or.reduceat(laid.of_pronoun[textual], starts)
    hits = np.zeros(len(laid.words), dtype=np.bool_)
    hits[laid.mention_tokens.token[gold[laid.mention_owner, laid.slot][laid.mention_tokens.mention]]] = True
    hit = np.logical_or.reduceat(hits[textual], starts)

    mass = np.add.reduceat(weights[:, textual], starts, axis=1)  # (P, words)
    mass[:, own] = -1
    items = np.flatnonzero(np.diff(word_owner, prepend=-1))
    top = np.maximum.reduceat(mass, items, axis=1)
    tied = (mass >= top[:, word_owner] * np.float32(1 - TIE)) & ~own
    count = np.add.reduceat(tied, items, axis=1, dtype=np.float32)
    right = np.add.reduceat(tied & hit, items, axis=1, dtype=np.float32)
    return np.divide(right, count, out=np.zeros_like(count), where=count > 0).T


def _concatenated(parts: Sequence[dict[str, NDArray[Any]]], shape: tuple[int, ...]) -> dict[str, NDArray[Any]]:
    """Concatenate the batches' arrays, padded to the largest number of candidates, with separate axes L and H."""
    most = max((part["present"].shape[1] for part in parts), default=0)
    items = sum(len(part["present"]) for part in parts)
    joined: dict[str, NDArray[Any]] = {
        **{name: np.zeros((items, most), dtype=np.bool_) for name in ("present", "gold")},
        **{name: np.zeros((items, *shape), dtype=np.float32) for name in MEASURES},
        "candidate_mass": np.zeros((items, *shape, most), dtype=np.float32),
    }
    start = 0
    for part in parts:
        count, size = part["present"].shape
        rows = slice(start, start + count)
        for name, whole in joined.items():
            if name in MEASURES:
                whole[rows] = part[name].reshape(count, *shape)
            else:  # padded with 0 after the batch's candidates
                whole[rows, ..., :size] = part[name].reshape(count, *whole.shape[1:-1], size)
        start += count
    return joined

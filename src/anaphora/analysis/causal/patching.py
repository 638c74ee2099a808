"""Attention-pattern patching: the pronoun's attention rows are replaced by those of the minimal pair's other sentence.

The sentences of a minimal pair differ only in the cue. Axes are N (items), L (layers), H (heads), Q (tokens of the
pronoun) and T (tokens of a sentence).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.causal.knockout_and_ablation import CausalTests
from anaphora.analysis.maps.answers import Bools, Floats, shares_right
from anaphora.analysis.results.causal import AlignedPatching, Flipped, FlippedByCount, PatternPatching
from anaphora.analysis.results.scores import Head
from anaphora.analysis.scores.quads import next_in_minimal_pair
from anaphora.base.translation import _


def aligned_patching(tests: CausalTests) -> Callable[[Bools], AlignedPatching]:
    """Patch the pronoun's attention rows in the head under test, and in all heads of its layer.

    The sentences of a minimal pair may differ in length (`align_rows`). Items are tested if the sentences of their pair
    have different antecedents and the model answers both correctly.

    Returns:
        Function from a mask of items, (N,), to the share of tested items whose answer becomes that of the pair's other
        sentence.
    """
    tests.progress(_("causal tests: pattern patch"))
    minimal_pairs = next_in_minimal_pair(tests.subject.examples)
    fit = {item: other for item, other in minimal_pairs.items() if _have_different_correct_answers(tests, item, other)}
    rows = {}
    for item, other in fit.items():
        source, queries = tests.sentences[other].rows, len(tests.sentences[item].pronoun)
        if source.shape[2] != queries:  # the pronouns differ in token count: every token gets the mean row
            source = source.mean(axis=2, keepdims=True).repeat(queries, axis=2)
        rows[item] = align_rows(source, tests.subject.tokens[other].ids, tests.subject.tokens[item].ids)
    tested = tests.mask(fit)
    head, layer = (_flipped(tests, fit, rows, heads) for heads in ([tests.head], tests.heads_of_layer))

    def cell(items: Bools) -> AlignedPatching:
        pairs = items & tested
        return AlignedPatching(
            pairs=int(pairs.sum()), head=_flip_share(tests, head, pairs), layer=_flip_share(tests, layer, pairs)
        )

    return cell


def pattern_patching(
    tests: CausalTests, aligned: Callable[[Bools], AlignedPatching]
) -> Callable[[Bools], PatternPatching]:
    """Patch the pronoun's attention rows, but not the values, in the best k heads, the head under test, and its layer.

    Items are tested if the sentences of their minimal pair differ in one word only and have different antecedents, and
    the model answers both correctly.

    Args:
        aligned: result of `aligned_patching`.

    Returns:
        Function from a mask of items, (N,), to the share of tested items whose answer becomes that of the pair's other
        sentence.
    """
    minimal_pairs = next_in_minimal_pair(tests.subject.examples)
    fit = {item: other for item, other in minimal_pairs.items() if _differ_in_one_word(tests, item, other)}
    rows = {item: tests.sentences[other].rows for item, other in fit.items()}
    by_count = {count: _flipped(tests, fit, rows, tests.order[:count]) for count in tests.counts()} if fit else {}
    is_best = bool(fit) and tests.order[0] == tests.head
    head = by_count[1] if is_best else _flipped(tests, fit, rows, [tests.head])
    layer = _flipped(tests, fit, rows, tests.heads_of_layer)
    all_layers = by_count[max(by_count)] if by_count else head
    tested, skipped = tests.mask(fit), tests.mask(minimal_pairs.keys() - fit.keys())

    def cell(items: Bools) -> PatternPatching:
        pairs = items & tested
        return PatternPatching(
            pairs=int(pairs.sum()),
            skipped=int((items & skipped).sum()),
            head=_flip_share(tests, head, pairs),
            layer=_flip_share(tests, layer, pairs),
            cumulative=tuple(
                FlippedByCount(k=count, flipped=_flip_share(tests, flipped, pairs).flipped)
                for count, flipped in by_count.items()
            ),
            all_layers=_flip_share(tests, all_layers, pairs),
            aligned=aligned(items),
        )

    return cell


def _flipped(
    tests: CausalTests, partners: Mapping[int, int], rows: Mapping[int, NDArray[np.float32]], heads: Sequence[Head]
) -> Floats:
    """Return whether each answer, after patching, is that of the minimal pair's other sentence, (N,); 1 / k in a tie.

    `partners` has the index of the other sentence for each patched item, and `rows` the pronoun's new rows.
    """
    if not partners:
        return np.zeros(len(tests.right))
    expected = np.zeros_like(tests.gold)
    expected[list(partners), tests.answers[list(partners.values())]] = True
    return shares_right(tests.subject.patched(heads, rows), expected)


def _differ_in_one_word(tests: CausalTests, item: int, other: int) -> bool:
    """Return whether two items differ in one word only, have different antecedents, and are both answered correctly."""
    one, two = tests.subject.tokens[item], tests.subject.tokens[other]
    if len(one.ids) != len(two.ids) or tests.sentences[item].pronoun != tests.sentences[other].pronoun:
        return False
    changed = [token for token, (left, right) in enumerate(zip(one.ids, two.ids, strict=True)) if left != right]
    words = {(one.words[token], two.words[token]) for token in changed}
    return len(words) == 1 and _have_different_correct_answers(tests, item, other)


def _have_different_correct_answers(tests: CausalTests, item: int, other: int) -> bool:
    return bool(tests.right[item] == tests.right[other] == 1 and tests.answers[item] != tests.answers[other])


def align_rows(rows: NDArray[np.float32], source: Sequence[int], target: Sequence[int]) -> NDArray[np.float32]:
    """Map attention rows from the tokens of one sentence to those of another, which may differ in length.

    Common tokens keep their weight. Weight on a replaced span is distributed equally over its replacement; weight on a
    deleted span is distributed over the common tokens in proportion to their weights.

    Args:
        rows: (..., T), each row sums to 1.
        source, target: token ids of the two sentences, of length T and S.

    Returns:
        (..., S), each row sums to 1, unless it has weight on deleted tokens but none on common tokens.
    """
    laid = np.zeros((*rows.shape[:-1], len(target)), dtype=np.float64)
    kept = np.zeros(len(target), dtype=bool)
    deleted = np.zeros(rows.shape[:-1], dtype=np.float64)
    for kind, start, end, first, last in SequenceMatcher(None, source, target, autojunk=False).get_opcodes():
        if kind == "equal":
            laid[..., first:last] = rows[..., start:end]
            kept[first:last] = True
        elif last > first:
            laid[..., first:last] = rows[..., start:end].sum(axis=-1, keepdims=True, dtype=np.float64) / (last - first)
        else:
            deleted += rows[..., start:end].sum(axis=-1, dtype=np.float64)
    common = laid[..., kept].sum(axis=-1)
    share = np.divide(deleted, common, out=np.zeros_like(deleted), where=common > 0)
    laid[..., kept] *= 1 + share[..., None]
    return laid.astype(np.float32)


def _flip_share(tests: CausalTests, flipped: Floats, pairs: Bools) -> Flipped:
    value, interval = tests.mean(flipped, pairs)
    return Flipped(flipped=value, interval=interval)

"""Significance of a head against chance, on the reported items and on those on which heads are chosen."""

from __future__ import annotations

from dataclasses import dataclass

from anaphora.analysis.results.scores import Groups, Head
from anaphora.analysis.scores.cells import by_language_and_kind, claim_cells, rounded
from anaphora.analysis.scores.heads import HeadScores
from anaphora.analysis.scores.statistics import holm, permutation_p, permutation_p_max


@dataclass(frozen=True, kw_only=True)
class Significance:
    """The permutation p of the candidate accuracy, alone and after Holm's correction."""

    p: float | None
    p_holm: float | None


@dataclass(frozen=True, kw_only=True)
class HeadsOnDevelopment:
    """The p of every head on the development split, (L, H), corrected for being able to pick the best of all.

    None in layers without attention.
    """

    p: tuple[tuple[float | None, ...], ...]


def significance(scores: HeadScores, head: Head, draws: int = 2000, seed: int = 0) -> Groups[Significance]:
    """Return the permutation p-values of a head that was chosen on other items.

    Args:
        scores: of the split that is reported; main items count.
        head: the one that the development split chose. Chosen on these items, its p would mean nothing.
        draws: relabellings of the antecedents; no p is below 1 / (draws + 1).
        seed: of the draws.

    Returns:
        By language and kind of cue, corrected for all languages and kinds together.
    """
    claims = claim_cells(scores.examples)
    raw = [permutation_p(scores.select(items), head, draws, seed) for _, _, items in claims]
    rows = zip(claims, raw, holm(raw), strict=True)
    return by_language_and_kind(
        (language, kind, Significance(p=rounded(p), p_holm=rounded(corrected)))
        for (language, kind, _), p, corrected in rows
    )


def heads_on_development(development: HeadScores) -> HeadsOnDevelopment:
    """Return the p of every head on the split on which one of them was chosen, with 6 digits."""
    return HeadsOnDevelopment(p=tuple(tuple(map(rounded, row)) for row in permutation_p_max(development)))

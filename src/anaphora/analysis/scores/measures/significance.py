"""Significance of heads against chance, on the reported items and on the development split."""

from __future__ import annotations

from dataclasses import dataclass

from anaphora.analysis.results.scores import Groups, Head
from anaphora.analysis.scores.cells import by_language_and_kind, claim_cells, rounded
from anaphora.analysis.scores.heads import HeadScores
from anaphora.analysis.scores.statistics import holm, permutation_p, permutation_p_max


@dataclass(frozen=True, kw_only=True)
class Significance:
    """Permutation p-value of the candidate accuracy, without and with Holm's correction."""

    p: float | None
    p_holm: float | None


@dataclass(frozen=True, kw_only=True)
class HeadsOnDevelopment:
    """P-values of all heads on the development split, (L, H), corrected for the number of heads.

    None in layers without attention.
    """

    p: tuple[tuple[float | None, ...], ...]


def significance(scores: HeadScores, head: Head, draws: int = 2000, seed: int = 0) -> Groups[Significance]:
    """Return the permutation p-values of a head that was chosen on other items.

    Args:
        scores: scores on the reported split, of which only main items count.
        head: the head chosen on the development split; p-values are invalid for a head chosen on the same items.
        draws: number of relabellings of the antecedents; the smallest possible p-value is 1 / (draws + 1).
        seed: seed of the relabellings.

    Returns:
        P-values by language and kind of cue, corrected over all languages and kinds together.
    """
    claims = claim_cells(scores.examples)
    raw = [permutation_p(scores.select(items), head, draws, seed) for _, _, items in claims]
    rows = zip(claims, raw, holm(raw), strict=True)
    return by_language_and_kind(
        (language, kind, Significance(p=rounded(p), p_holm=rounded(corrected)))
        for (language, kind, _), p, corrected in rows
    )


def heads_on_development(development: HeadScores) -> HeadsOnDevelopment:
    """Return the corrected p-values of all heads on the development split, rounded to 6 decimal places."""
    return HeadsOnDevelopment(p=tuple(tuple(map(rounded, row)) for row in permutation_p_max(development)))

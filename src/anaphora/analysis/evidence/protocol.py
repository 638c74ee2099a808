"""The protocol of a report, with a digest to tell one from another, and how likely luck does as well as the head."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

from anaphora.analysis.evidence import plan as settings
from anaphora.analysis.evidence.verdict import FIXED
from anaphora.analysis.results.evidence import FixedProtocol
from anaphora.analysis.results.scores import Groups, Head, Significance
from anaphora.analysis.scores.cells import by_language_and_kind, claim_cells, rounded
from anaphora.analysis.scores.heads import HeadScores
from anaphora.analysis.scores.statistics import holm, permutation_p
from anaphora.settings.run import Config
from anaphora.settings.stored import to_plain

METRIC = "candidate_accuracy"
"""The headline: how often the antecedent is the strongest candidate."""
MAP = "raw"
"""Of raw attention weights; other maps stand beside the headline."""
DIRECTION = "pronoun_to_candidate"
"""In the pronoun's row; the other direction stands beside it."""


def protocol(fixed: settings.Protocol, split: str, config: Config | str) -> FixedProtocol:
    """The protocol of a report: metric, map and direction never vary.

    Args:
        fixed: alpha, as the settings say.
        split: the split that is reported.
        config: the settings of the run that is reported; of a model from elsewhere its name.

    Returns:
        The protocol. Its hash is the first 16 hexadecimal digits of the SHA-256 of all its parts, the verdict's rules
        and the run's settings as sorted JSON; where the run lies is left out, so that a copy of a run has the same. Two
        reports with one hash followed one protocol on one kind of run.
    """
    unhashed = FixedProtocol(metric=METRIC, map=MAP, direction=DIRECTION, split=split, alpha=fixed.alpha, hash="")
    parts = {name: value for name, value in vars(unhashed).items() if name != "hash"}
    run_settings: Any = config
    if isinstance(config, Config):
        run_settings = to_plain(replace(config, name=None, output="", resume=None, resume_data=None))
    written = json.dumps(
        {"protocol": parts, "rule": FIXED, "settings": run_settings}, sort_keys=True, ensure_ascii=False
    )
    return replace(unhashed, hash=hashlib.sha256(written.encode()).hexdigest()[:16])


def significance(scores: HeadScores, head: Head, draws: int = 2000, seed: int = 0) -> Groups[Significance]:
    """How often luck does as well as a head that was chosen on other items.

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

"""What is asked, with a digest to tell one protocol from another, and how likely the chosen head's hits are by luck."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from typing import Any

from anaphora.analysis.cells import claims, nested, rounded
from anaphora.analysis.scores import Head, HeadScores
from anaphora.analysis.settings import Protocol
from anaphora.analysis.statistics import holm, permutation_p
from anaphora.analysis.verdict import RULE
from anaphora.config import Config


def protocol(fixed: Protocol, split: str, config: Config | str) -> dict[str, Any]:
    """The protocol of a report.

    Args:
        fixed: the headline and alpha, as the settings say.
        split: the split that is reported.
        config: the settings of the run that is reported; of a model from elsewhere its name.

    Returns:
        {"metric", "map", "direction", "split", "alpha", "hash"}. The hash is the first 16 hexadecimal digits of the
        SHA-256 of all these, the verdict's rule and the run's settings as sorted JSON; where the run lies is left out,
        so that a copy of a run has the same. Two reports with one hash followed one protocol on one kind of run.
    """
    stated = {**asdict(fixed), "split": split}
    settings = config if isinstance(config, str) else asdict(replace(config, name=None, output="", resume=None))
    written = json.dumps({"protocol": stated, "rule": RULE, "settings": settings}, sort_keys=True, ensure_ascii=False)
    names = ("metric", "map", "direction", "split", "alpha")
    return {**{name: stated[name] for name in names}, "hash": hashlib.sha256(written.encode()).hexdigest()[:16]}


def significance(scores: HeadScores, head: Head, draws: int = 2000, seed: int = 0) -> dict[str, Any]:
    """How often luck does as well as a head that was chosen on other items.

    Args:
        scores: of the split that is reported; main items count.
        head: the one that the development split chose. Chosen on these items, its p would mean nothing.
        draws: relabellings of the antecedents; no p is below 1 / (draws + 1).
        seed: of the draws.

    Returns:
        {language: {kind: {"p", "p_holm"}}}: the one-sided permutation p of the candidate accuracy, and the same after
        Holm's correction for all languages and kinds together.
    """
    asked = claims(scores.examples)
    raw = [permutation_p(scores.select(items), head, draws, seed) for _, _, items in asked]
    rows = zip(asked, raw, holm(raw), strict=True)
    return nested(
        (language, kind, {"p": rounded(p), "p_holm": rounded(corrected)}) for (language, kind, _), p, corrected in rows
    )

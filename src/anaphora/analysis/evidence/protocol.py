"""The protocol of a report, with a digest to tell one from another."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

from anaphora.analysis.evidence import plan as settings
from anaphora.analysis.evidence.evidence import FixedProtocol
from anaphora.analysis.evidence.verdict import FIXED
from anaphora.settings.run import Config, MovedData
from anaphora.settings.stored import to_plain

METRIC = "candidate_accuracy"
"""The headline: how often the antecedent is the strongest candidate."""
MAP = "raw"
"""Of raw attention weights; other maps stand beside the headline."""
DIRECTION = "pronoun_to_candidate"
"""In the pronoun's row; the other direction stands beside it."""


def protocol(fixed: settings.Protocol, split: str, config: Config | str) -> FixedProtocol:
    """Return the protocol of a report: metric, map and direction never vary.

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
        run_settings = to_plain(replace(config, name=None, output="", resume=None, resume_data=MovedData()))
    written = json.dumps(
        {"protocol": parts, "rule": FIXED, "settings": run_settings}, sort_keys=True, ensure_ascii=False
    )
    return replace(unhashed, hash=hashlib.sha256(written.encode()).hexdigest()[:16])

"""The protocol of a report, with a hash that identifies it."""

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
"""The main measure: how often the antecedent is the strongest candidate."""
MAP = "raw"
"""The map of the main measure: raw attention weights. Other maps are reported separately."""
DIRECTION = "pronoun_to_candidate"
"""The direction of the main measure: the pronoun's row. The other direction is reported separately."""


def protocol(fixed: settings.Protocol, split: str, config: Config | str) -> FixedProtocol:
    """Return the protocol of a report; metric, map and direction are constants.

    The hash is the first 16 hexadecimal digits of the SHA-256 of the protocol, the verdict's rules and the run's
    settings as sorted JSON. Paths are left out, so that a copy of a run has the same hash.

    Args:
        fixed: settings of the protocol.
        split: the reported split.
        config: settings of the run, or the name of a model from another library.
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

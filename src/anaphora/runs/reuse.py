"""Whether two runs have the same settings."""

from __future__ import annotations

from dataclasses import replace

from anaphora.settings.run import Config
from anaphora.settings.training import DECIDE_RESULTS


def same_settings(stored: Config, wanted: Config) -> bool:
    """Whether two runs have the same settings, where they go and on what they run aside.

    A run whose file names no precision was trained with the default of its device, as which it is read.
    """
    here = wanted.trainer
    if any(getattr(stored.trainer, name) != getattr(here, name) for name in DECIDE_RESULTS):
        return False
    return replace(stored, name=None, output="", trainer=here, objective=wanted.objective) == replace(
        wanted, name=None, output=""
    )

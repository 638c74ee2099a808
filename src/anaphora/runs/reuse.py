"""Whether two runs have the same settings."""

from __future__ import annotations

from dataclasses import replace

from anaphora.settings.run import Config


def same_settings(stored: Config, wanted: Config) -> bool:
    """Whether two runs have the same settings, where they go and on what they run aside."""
    here = wanted.trainer
    if (stored.trainer.limit_steps, stored.trainer.limit_items) != (here.limit_steps, here.limit_items):
        return False
    return replace(stored, name=None, output="", trainer=here, objective=wanted.objective) == replace(
        wanted, name=None, output=""
    )

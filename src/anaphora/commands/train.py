"""Train an encoder and leave its run directory."""

from __future__ import annotations

from anaphora.settings.compose import sweep_overrides
from anaphora.settings.run import Config
from anaphora.training import run


def train(config: Config) -> None:
    """Train; in a sweep, what sets this job apart from the others goes into its default name."""
    run.train(config, sweep_overrides())

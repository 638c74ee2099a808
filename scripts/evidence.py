"""Train a run's controls and measure them: python scripts/evidence.py run=outputs/demo.

A finished control is re-used, an unfinished one resumed; `make evidence` calls this.
"""

from __future__ import annotations

import hydra
from omegaconf import DictConfig

from anaphora.analysis.settings import Evidence
from anaphora.command import guarded, launch
from anaphora.config import resolve


@hydra.main(version_base="1.3", config_path="../configs", config_name="evidence")
@guarded
def main(composed: DictConfig) -> None:
    """Hand the run over."""
    asked = resolve(composed, Evidence)

    from anaphora.evidence import train_controls

    train_controls(asked)


if __name__ == "__main__":
    launch(main)

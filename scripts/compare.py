"""Put several scored runs side by side: python scripts/compare.py runs=[outputs/a,outputs/b]."""

from __future__ import annotations

import hydra
from omegaconf import DictConfig

from anaphora.analysis.settings import Comparison
from anaphora.command import guarded, launch
from anaphora.config import resolve


@hydra.main(version_base="1.3", config_path="../configs", config_name="compare")
@guarded
def main(composed: DictConfig) -> None:
    """Read the runs' metrics, print and keep the table."""
    asked = resolve(composed, Comparison)

    from anaphora.workflow import compare

    compare(asked)


if __name__ == "__main__":
    launch(main)

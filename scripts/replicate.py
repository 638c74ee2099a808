"""Attention maps against ablation importance, Abnar and Zuidema 2020, table 1: python scripts/replicate.py.

Finished seeds in the output directory are used again.
"""

from __future__ import annotations

import hydra
from omegaconf import DictConfig

from anaphora.command import guarded, launch
from anaphora.config import resolve
from anaphora.replication.settings import Replication


@hydra.main(version_base="1.3", config_path="../configs", config_name="replicate")
@guarded
def main(composed: DictConfig) -> None:
    """Check the settings and hand them over."""
    chosen = resolve(composed, Replication)

    from anaphora.replication.run import replicate

    replicate(chosen)


if __name__ == "__main__":
    launch(main)

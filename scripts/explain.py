"""Walk through attention step by step: python scripts/explain.py example=list.

A sentence of a trained run is asked with text="..." run=outputs/demo, one's own numbers with matrices=FILE.
"""

from __future__ import annotations

import hydra
from omegaconf import DictConfig

from anaphora.command import guarded, launch
from anaphora.config import resolve
from anaphora.explain.settings import Explanation


@hydra.main(version_base="1.3", config_path="../configs", config_name="explain")
@guarded
def main(composed: DictConfig) -> None:
    """Check the settings and hand them over."""
    asked = resolve(composed, Explanation)

    from anaphora.explain.run import explain

    explain(asked)


if __name__ == "__main__":
    launch(main)

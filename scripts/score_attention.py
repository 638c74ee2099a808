"""Score every head against the antecedents: python scripts/score_attention.py run=outputs/demo."""

from __future__ import annotations

import hydra
from omegaconf import DictConfig

from anaphora.analysis.settings import Analysis
from anaphora.command import guarded, launch
from anaphora.config import resolve


@hydra.main(version_base="1.3", config_path="../configs", config_name="analysis")
@guarded
def main(composed: DictConfig) -> None:
    """Hand the question over."""
    asked = resolve(composed, Analysis)

    from anaphora.workflow import score_heads

    score_heads(asked)


if __name__ == "__main__":
    launch(main)

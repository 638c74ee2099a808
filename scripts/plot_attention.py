"""Draw a run's figures, or one sentence: python scripts/plot_attention.py run=outputs/demo text='...' pronoun=it."""

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

    from anaphora.workflow import plot

    plot(asked)


if __name__ == "__main__":
    launch(main)

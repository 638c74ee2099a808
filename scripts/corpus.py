"""Count a corpus and measure every shortcut on it: python scripts/corpus.py data=controlled."""

from __future__ import annotations

import hydra
from omegaconf import DictConfig

from anaphora.analysis.settings import Description
from anaphora.command import guarded, launch
from anaphora.config import resolve


@hydra.main(version_base="1.3", config_path="../configs", config_name="corpus")
@guarded
def main(composed: DictConfig) -> None:
    """Hand the corpus over."""
    asked = resolve(composed, Description)

    from anaphora.workflow import describe

    describe(asked)


if __name__ == "__main__":
    launch(main)

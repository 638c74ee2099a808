"""Label the texts of a split by runs and by linear models: python scripts/labels.py runs=[outputs/sentiment]."""

from __future__ import annotations

import hydra
from omegaconf import DictConfig

from anaphora.analysis.settings import LabelTable
from anaphora.command import guarded, launch
from anaphora.config import resolve


@hydra.main(version_base="1.3", config_path="../configs", config_name="labels")
@guarded
def main(composed: DictConfig) -> None:
    """Hand the question over."""
    asked = resolve(composed, LabelTable)

    from anaphora.labels import label

    label(asked)


if __name__ == "__main__":
    launch(main)

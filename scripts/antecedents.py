"""Heads as antecedent selectors, Clark et al. 2019, table 2: python scripts/antecedents.py run=outputs/demo."""

from __future__ import annotations

import hydra
from omegaconf import DictConfig

from anaphora.analysis.settings import AntecedentSelection
from anaphora.command import guarded, launch
from anaphora.config import resolve


@hydra.main(version_base="1.3", config_path="../configs", config_name="antecedents")
@guarded
def main(composed: DictConfig) -> None:
    """Hand the question over."""
    asked = resolve(composed, AntecedentSelection)

    from anaphora.antecedents import select_antecedents

    select_antecedents(asked)


if __name__ == "__main__":
    launch(main)

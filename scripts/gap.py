"""F1 of name decisions on GAP: python scripts/gap.py runs=[outputs/gap] data.path=gap-coreference."""

from __future__ import annotations

import hydra
from omegaconf import DictConfig

from anaphora.analysis.settings import NameDecisions
from anaphora.command import guarded, launch
from anaphora.config import resolve


@hydra.main(version_base="1.3", config_path="../configs", config_name="gap")
@guarded
def main(composed: DictConfig) -> None:
    """Hand the question over."""
    asked = resolve(composed, NameDecisions)

    from anaphora.name_decisions import decide

    decide(asked)


if __name__ == "__main__":
    launch(main)

"""Write a run's encoder for transformers: python scripts/export.py run=outputs/mine output=exported."""

from __future__ import annotations

import hydra
from omegaconf import DictConfig

from anaphora.analysis.settings import Export
from anaphora.command import guarded, launch
from anaphora.config import resolve


@hydra.main(version_base="1.3", config_path="../configs", config_name="export")
@guarded
def main(composed: DictConfig) -> None:
    """Hand the run over."""
    asked = resolve(composed, Export)

    from anaphora.export import export

    print(f"transformers loads {export(asked)}")


if __name__ == "__main__":
    launch(main)

"""Put the folds of a corpus together: python scripts/cross_validate.py runs=[outputs/fold_0,outputs/fold_1]."""

from __future__ import annotations

import hydra
from omegaconf import DictConfig

from anaphora.analysis.settings import CrossValidation
from anaphora.command import guarded, launch
from anaphora.config import resolve


@hydra.main(version_base="1.3", config_path="../configs", config_name="cross_validate")
@guarded
def main(composed: DictConfig) -> None:
    """Answer every fold by the run that has not seen it, and print the table."""
    asked = resolve(composed, CrossValidation)

    from anaphora.cross_validation import cross_validate

    cross_validate(asked)


if __name__ == "__main__":
    launch(main)

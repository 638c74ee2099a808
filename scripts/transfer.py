"""Ask runs about another corpus than their own.

python scripts/transfer.py runs=[outputs/dpr_0] data=knowref data.path=knowref_test.json
"""

from __future__ import annotations

import hydra
from omegaconf import DictConfig

from anaphora.analysis.settings import Transfer
from anaphora.command import guarded, launch
from anaphora.config import resolve


@hydra.main(version_base="1.3", config_path="../configs", config_name="transfer")
@guarded
def main(composed: DictConfig) -> None:
    """Hand the question over."""
    asked = resolve(composed, Transfer)

    from anaphora.transfer import transfer

    transfer(asked)


if __name__ == "__main__":
    launch(main)

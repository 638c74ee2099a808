"""Train an encoder: python scripts/train.py experiment=demo seed=3"""

from __future__ import annotations

import hydra
from omegaconf import DictConfig

from anaphora.command import guarded, launch
from anaphora.config import Config, resolve


@hydra.main(version_base="1.3", config_path="../configs", config_name="train")
@guarded
def main(composed: DictConfig) -> None:
    config = resolve(composed, Config)  # a wrong setting stops here, before torch is imported

    from anaphora.training.run import train

    train(config)


if __name__ == "__main__":
    launch(main)

"""Train an encoder: python scripts/train.py experiment=demo seed=3."""

from __future__ import annotations

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from anaphora.command import guarded, launch
from anaphora.config import Config, resolve
from anaphora.start import settle


@hydra.main(version_base="1.3", config_path="../configs", config_name="train")
@guarded
def main(composed: DictConfig) -> None:
    """Check the settings and hand them over."""
    config = settle(resolve(composed, Config))  # a wrong setting stops here, before torch is imported

    from anaphora.training.run import train

    job = HydraConfig.get()
    train(config, job.job.override_dirname if job.mode is RunMode.MULTIRUN else "")


if __name__ == "__main__":
    launch(main)

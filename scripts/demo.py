"""Train, extract, score and plot on the built-in corpus: python scripts/demo.py.

A finished run is re-used, an unfinished one resumed; `make demo` calls this.
"""

from __future__ import annotations

import hydra
from omegaconf import DictConfig

from anaphora.command import guarded, launch
from anaphora.config import Config, resolve
from anaphora.start import settle


@hydra.main(version_base="1.3", config_path="../configs", config_name="demo")
@guarded
def main(composed: DictConfig) -> None:
    """Run the demonstration."""
    config = settle(resolve(composed, Config))

    from anaphora.demonstration import demonstrate

    demonstrate(config)


if __name__ == "__main__":
    launch(main)

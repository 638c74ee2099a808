"""Measure speed against Hugging Face's BertModel: python scripts/benchmark.py what=extraction sizes=[m]."""

from __future__ import annotations

import hydra
from omegaconf import DictConfig

from anaphora.benchmark.settings import Benchmark
from anaphora.command import guarded, launch
from anaphora.config import resolve


@hydra.main(version_base="1.3", config_path="../configs", config_name="benchmark")
@guarded
def main(composed: DictConfig) -> None:
    """Check the settings and hand them over."""
    settings = resolve(composed, Benchmark)  # a wrong setting stops here, before torch is imported

    from anaphora.benchmark.run import show

    show(settings)


if __name__ == "__main__":
    launch(main)

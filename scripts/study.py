"""Train and measure the cells of a study, and write its page: python scripts/study.py study=emergence_first.

Finished runs are used again, unfinished ones resumed.
"""

from __future__ import annotations

import hydra
from omegaconf import DictConfig

from anaphora.command import config_folder, guarded, launch
from anaphora.config import resolve
from anaphora.studies.settings import Plan


@hydra.main(version_base="1.3", config_path="../configs", config_name="study")
@guarded
def main(composed: DictConfig) -> None:
    """Check the plan and hand it over."""
    plan = resolve(composed, Plan)
    folder = config_folder()

    from anaphora.studies.run import run_study

    run_study(plan, folder)


if __name__ == "__main__":
    launch(main)

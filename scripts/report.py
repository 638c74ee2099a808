"""The evidence on a run as one offline page: python scripts/report.py run=outputs/demo.

What was measured before is read from metrics.json; trained controls are shown once scripts/evidence.py has made them.
"""

from __future__ import annotations

import hydra
from omegaconf import DictConfig

from anaphora.analysis.settings import Report
from anaphora.command import guarded, launch
from anaphora.config import resolve


@hydra.main(version_base="1.3", config_path="../configs", config_name="report")
@guarded
def main(composed: DictConfig) -> None:
    """Hand the runs over."""
    asked = resolve(composed, Report)

    from anaphora.evidence import report

    report(asked)


if __name__ == "__main__":
    launch(main)

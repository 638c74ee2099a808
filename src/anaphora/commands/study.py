"""Train and measure the cells of a study, and write its page."""

from __future__ import annotations

from anaphora.settings.commands.study import StudyPlan
from anaphora.settings.compose import config_folder
from anaphora.studies.run import run_study


def study(plan: StudyPlan) -> None:
    """Compose the jobs from the configuration of the command that is running, and work through them."""
    run_study(plan, config_folder())

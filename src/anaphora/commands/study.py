"""Train and measure the models of a study, and write an HTML page with the results.

Example: anaphora study study=emergence_small
"""

from __future__ import annotations

from anaphora.base.errors import FailedRunsError, counted
from anaphora.settings.compose import config_folder
from anaphora.studies.plan import StudyPlan


def study(plan: StudyPlan) -> None:
    """Run the jobs of a study and write an HTML page with the results.

    The settings of each cell (a training configuration, run with every seed) are composed from configuration files and
    `plan`.

    Raises:
        FailedRunsError: a run failed. If `plan.only` names cells, failed runs of other cells do not count. The error is
            raised after the page is written.
        UserError: `run_study` fails.
    """
    from anaphora.studies.run import run_study

    summary = run_study(plan, config_folder())
    cells = [cell for cell in summary.cells if not plan.only or cell.name in plan.only]
    failures = [
        f"{cell.name}, seed {run.seed} ({run.error})" for cell in cells for run in cell.runs if run.status == "failed"
    ]
    if failures:
        count = sum(len(cell.runs) for cell in cells)
        raise FailedRunsError(f"{len(failures)} of {counted(count, 'run')} failed: {'; '.join(failures)}")

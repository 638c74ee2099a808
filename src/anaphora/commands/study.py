"""Train and measure the models of a study, and write its page.

Example: anaphora study study=emergence_small
"""

from __future__ import annotations

from anaphora.base.errors import FailedRunsError
from anaphora.settings.compose import config_folder
from anaphora.studies.plan import StudyPlan


def study(plan: StudyPlan) -> None:
    """Run the jobs of a study and write its page.

    The settings of each cell (a training configuration, run with every seed) are composed from the files in the
    command's configuration folder and the overrides in `plan`.

    Raises:
        FailedRunsError: a run failed; if `plan.only` is set, only the runs of these cells count. The error is
            raised after the page is written.
        UserError: as in `run_study`.
    """
    from anaphora.studies.run import run_study

    summary = run_study(plan, config_folder())
    cells = [cell for cell in summary.cells if not plan.only or cell.name in plan.only]
    failures = [
        f"{cell.name}, seed {run.seed} ({run.error})" for cell in cells for run in cell.runs if run.status == "failed"
    ]
    if failures:
        count = sum(len(cell.runs) for cell in cells)
        raise FailedRunsError(f"{len(failures)} of {count} runs failed: {'; '.join(failures)}")

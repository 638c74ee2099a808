"""Train an encoder and write its run directory.

Example: anaphora train experiment=compositions seed=3
"""

from __future__ import annotations

from dataclasses import replace

from anaphora.runs.processes import started_processes
from anaphora.settings.compose import is_sweep_job, job_name, job_overrides
from anaphora.settings.run import Config


def train(config: Config) -> float | None:
    """Train an encoder and print the path of its run directory.

    In a job of a sweep, no path is printed, a finished run is not trained again, and an unfinished one is resumed; the
    run's objective, which the sampler minimises, is returned.

    Raises:
        UserError: the training fails. In a job of a sweep, the error is also raised if several processes were started,
            if the objective is not measured, or if `finish_training` fails.
    """
    from anaphora.base.console import console, say
    from anaphora.training import run
    from anaphora.training.reuse import finish_training, objective

    if started_processes().rank == 0 and config.resume is None and config.chooses_on_its_fold:
        say(
            "data.folds with validation.keep=best: the weights are chosen on the held-out fold, so "
            "anaphora cross_validate will not take this run; with validation.keep=last it does"
        )
    if not is_sweep_job():
        directory = run.train(config)
        if started_processes().rank == 0:
            console.print(str(directory), soft_wrap=True)
        return None
    started_processes().check_single("a job of a sweep")
    config.check_objective()
    named = replace(config, name=config.name or job_name(job_overrides()))
    return objective(
        finish_training(named, "give the jobs of a sweep no name=, or a different one each"), config.objective
    )

"""Train an encoder and leave its run directory."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from anaphora.runs.directory import training_record
from anaphora.runs.processes import started_processes
from anaphora.settings.compose import is_sweep_job, job_name, job_overrides
from anaphora.settings.run import Config
from anaphora.training import run
from anaphora.training.reuse import finish_training


def train(config: Config) -> float:
    """Train; a job of a sweep is re-used or resumed where its run is there already.

    Returns:
        The run's objective, which the sampler of a sweep minimises.
    """
    processes = started_processes()
    if not is_sweep_job():
        directory = run.train(config).directory
        return math.nan if processes.rank else objective(directory, config.objective)  # the first one has the files
    processes.check_single("a job of a sweep")
    named = replace(config, name=config.name or job_name(job_overrides()))
    return objective(finish_training(named, "give the jobs of a sweep no name=, or one each"), config.objective)


def objective(directory: Path, name: str) -> float:
    """What training reached, the lower the better: of the validation whose weights are kept, its loss or its error.

    Args:
        directory: of a finished run.
        name: validation_loss, or best_head for 1 less the candidate accuracy of the best head.
    """
    record = training_record(directory)
    kept = record["validations"][record["best_validation"]]
    if name == "best_head":
        return 1.0 - float(kept.get("validation/best_head", float("nan")))
    return float(kept.get("validation/loss", float("nan")))

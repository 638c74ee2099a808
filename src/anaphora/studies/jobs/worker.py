"""Execution of one run of a study, in this process or in its own: `python -m anaphora.studies.jobs.worker`.

The worker process reads its job from standard input and exits as soon as the input closes, which means that its parent
has ended. Files are written atomically, so none is left incomplete.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback
from dataclasses import asdict, replace
from pathlib import Path
from typing import TextIO

from anaphora.base.errors import UserError, one_line
from anaphora.base.files import write_json
from anaphora.runs.directory import RunFiles, locked_run
from anaphora.settings.run import Config
from anaphora.settings.stored import from_plain
from anaphora.studies.measures import measure_run, measure_settings
from anaphora.studies.records import FAILURE_FILE, Query
from anaphora.training.reuse import load_or_train


def train_and_measure(config: Config, query: Query, train: bool) -> None:
    """Train a run if necessary and measure it; an error is stored in the run's `FAILURE_FILE` instead of raised.

    Args:
        config: settings of the run; `output` and `name` give its directory.
        query: measures to take.
        train: whether to train an unfinished run; if not, an unfinished run is skipped.
    """
    assert config.name is not None
    directory = Path(config.output) / config.name
    if not train and not RunFiles(directory).weights.exists():
        return
    failure = directory / FAILURE_FILE
    failure.unlink(missing_ok=True)  # of the last attempt
    try:
        if query.of_runs:
            run = load_or_train(config, "choose another output= or name=", report=lambda _: None)
            with locked_run(directory):
                measure_run(run, query)
        else:
            with locked_run(directory):
                measure_settings(config, directory, query)
    except Exception as error:  # a failed run does not stop the study
        if not isinstance(error, UserError):
            traceback.print_exc()
        write_json(failure, {"error": one_line(error)})


def encode_job(config: Config, query: Query, train: bool, threads: int) -> str:
    """Encode a job for another process or machine as one line of JSON; progress bars are turned off."""
    config = replace(config, trainer=replace(config.trainer, progress=False))
    plain = {"settings": asdict(config), "query": asdict(query), "train": train, "threads": threads}
    return json.dumps(plain) + "\n"


def run_encoded(encoded: str) -> None:
    """Run a job from `encode_job` in this process, with the job's number of threads."""
    import torch

    content = json.loads(encoded)
    torch.set_num_threads(content["threads"])
    query = content["query"]
    measures = Query(tuple(query["measures"]), query["split"], query["items"])
    train_and_measure(from_plain(content["settings"], "job"), measures, content["train"])


def _exit_when_closed(stream: TextIO) -> None:
    stream.read()
    os._exit(1)


if __name__ == "__main__":
    job = sys.stdin.readline()
    threading.Thread(target=_exit_when_closed, args=(sys.stdin,), daemon=True).start()
    run_encoded(job)

"""One run of a study, in this process or, as `python -m anaphora.studies.worker`, in one of its own.

The process is told over standard input what to do, and ends at once when that closes: whoever started it is gone, and
what it has written is whole.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

from anaphora.checkpoint import Layout
from anaphora.config import Config, dumps, one_line, read
from anaphora.errors import UserError
from anaphora.files import write_json
from anaphora.studies.measures import FAILURE, Asked, measure, measure_settings
from anaphora.workflow import trained


def work(config: Config, asked: Asked, train: bool) -> None:
    """Train a run if need be and measure it; what goes wrong is written down beside it and raised no further.

    Args:
        config: with the name of the run's directory.
        asked: what is measured.
        train: whether an unfinished run may be trained; where not, nothing is done with it.
    """
    assert config.name is not None
    directory = Path(config.output) / config.name
    if not train and not Layout(directory).weights.exists():
        return
    failure = directory / FAILURE
    try:
        if asked.of_runs:
            measure(trained(config, "choose another output= or name=", say=lambda _: None), asked)
        else:
            measure_settings(config, directory, asked)
    except Exception as error:  # a run that fails is a result; the others go on
        if not isinstance(error, UserError):
            traceback.print_exc()
        write_json(failure, {"error": one_line(error)})
    else:
        failure.unlink(missing_ok=True)


def order(config: Config, asked: Asked, train: bool, threads: int) -> str:
    """What a process is told: one line of JSON."""
    plain = {"settings": dumps(config), "asked": asdict(asked), "train": train, "threads": threads}
    return json.dumps(plain) + "\n"


def obey(told: TextIO) -> None:
    """Do what one line of JSON says, and end this process when nobody is there to tell more."""
    import torch

    content = json.loads(told.readline())
    threading.Thread(target=_end_with, args=(told,), daemon=True).start()
    torch.set_num_threads(content["threads"])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.yaml"
        path.write_text(content["settings"], encoding="utf-8")
        config = read(path)
    asked = content["asked"]
    work(config, Asked(tuple(asked["measures"]), asked["split"], asked["items"]), content["train"])


def _end_with(told: TextIO) -> None:
    told.read()
    os._exit(1)


if __name__ == "__main__":
    obey(sys.stdin)

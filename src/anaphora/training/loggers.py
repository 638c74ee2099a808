"""Lightning loggers of a run, one for each name in `trainer.loggers`."""

from __future__ import annotations

import csv
import importlib.util
import os
import uuid
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from pytorch_lightning import loggers as loggers_of_lightning
from pytorch_lightning.loggers import Logger

from anaphora.base.errors import UserError, one_line, pip_install
from anaphora.base.files import read_json, write_csv, write_json
from anaphora.runs.directory import RunFiles
from anaphora.training.tensorboard.board import RunTensorBoardLogger
from anaphora.training.tensorboard.layout import FINAL_METRICS

SERVICES = ("wandb", "mlflow")
"""Loggers that need a package of the same name."""
SERVICE_FILE = "services.json"
"""File in `curves/` with the run's id at each service, needed to continue the curves of a resumed run there."""
PROJECT = "anaphora"


def check_loggers(names: Sequence[str]) -> None:
    """Check that the packages of the loggers in `SERVICES` are installed.

    Raises:
        UserError: a package is missing.
    """
    for name in names:
        if name in SERVICES and importlib.util.find_spec(name) is None:
            raise UserError(f"trainer.loggers ({name!r}) needs a package: {pip_install(name)}")


def build_loggers(layout: RunFiles, names: Sequence[str], resumed: bool) -> list[Logger]:
    """Build the loggers of a run; the loggers of a resumed run continue its curves at the checkpoint.

    W&B and MLflow keep the points that an interrupted run logged after its checkpoint; the run's ids at both are
    written to `SERVICE_FILE`. The environment variables of these services, such as WANDB_MODE and MLFLOW_TRACKING_URI,
    determine where curves are stored; by default, MLflow's database is in the parent directory of the run.

    Raises:
        UserError: a file with the curves or the ids of a resumed run is damaged.
    """
    resumed_at = checkpoint_step(layout) if resumed else None
    loggers: list[Logger] = []
    for name in names:
        match name:
            case "tensorboard":
                loggers.append(RunTensorBoardLogger(layout.directory, resumed_at))
            case "csv":
                loggers.append(RunCSVLogger(layout.directory, resumed_at))
            case "wandb":
                loggers.append(_wandb_logger(layout, resumed))
            case "mlflow":
                loggers.append(_mlflow_logger(layout, resumed))
    return loggers


def _wandb_logger(layout: RunFiles, resumed: bool) -> Logger:
    identity = (_service_ids(layout) if resumed else {}).get("wandb") or uuid.uuid4().hex[:8]
    _keep_service_id(layout, "wandb", identity)
    return loggers_of_lightning.WandbLogger(
        name=layout.directory.name,
        save_dir=layout.directory,
        project=os.environ.get("WANDB_PROJECT", PROJECT),
        id=identity,
        resume="allow",
    )


def _mlflow_logger(layout: RunFiles, resumed: bool) -> Logger:
    logger = loggers_of_lightning.MLFlowLogger(
        experiment_name=os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT),
        run_name=layout.directory.name,
        run_id=(_service_ids(layout) if resumed else {}).get("mlflow"),
        tracking_uri=os.environ.get("MLFLOW_TRACKING_URI", f"sqlite:///{layout.directory.parent.absolute()}/mlflow.db"),
    )
    identity = logger.run_id
    assert identity is not None
    _keep_service_id(layout, "mlflow", identity)
    return logger


def _service_ids(layout: RunFiles) -> dict[str, str]:
    """Return the run's id at each service, empty if the file is missing.

    Raises:
        UserError: the file is damaged.
    """
    path = layout.directory / "curves" / SERVICE_FILE
    try:
        return dict(read_json(path, {str: str}, "delete it, and the curves begin again at the service"))
    except FileNotFoundError:
        return {}


def _keep_service_id(layout: RunFiles, service: str, identity: str) -> None:
    write_json(layout.directory / "curves" / SERVICE_FILE, {**_service_ids(layout), service: identity})


class RunCSVLogger(Logger):
    """Logger that writes every metric to the run's `curves/metrics.csv`, under the TensorBoard tags.

    Unlike Lightning's logger, it writes the file atomically, at each validation. There is a row for the first step,
    every ten steps and each validation, and a last one for the final metrics. A resumed run keeps the rows up to its
    checkpoint, without the final metrics.
    """

    def __init__(self, directory: Path, resumed_at: int | None) -> None:
        super().__init__()
        self._path = curves_file(directory)
        self._rows: list[dict[str, float]] = []
        if resumed_at is not None and self._path.exists():
            for step, numbers in read_curves(self._path):
                kept = {tag: value for tag, value in numbers.items() if tag not in FINAL_METRICS}
                if kept and step <= resumed_at:
                    self._rows.append({"step": step, **kept})

    @property
    def name(self) -> str:
        return ""

    @property
    def version(self) -> str:
        return ""

    def log_hyperparams(self, params: dict[str, Any] | Namespace, *_: Any, **__: Any) -> None:
        """Do nothing: the settings are in config.yaml."""

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        self._rows.append({"step": step or 0, **{tag: float(value) for tag, value in metrics.items()}})

    def save(self) -> None:
        if self._rows:
            write_csv(self._path, self._rows)

    def finalize(self, status: str) -> None:
        self.save()


def curves_file(directory: Path) -> Path:
    """Return the path of the CSV file with a run's curves."""
    return directory / "curves" / "metrics.csv"


def read_curves(path: Path) -> list[tuple[int, dict[str, float]]]:
    """Return the step and the values by tag of every row.

    Raises:
        UserError: the file is damaged.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = [dict(row) for row in csv.DictReader(file, strict=True)]
        return [(int(row.pop("step")), {tag: float(value) for tag, value in row.items() if value}) for row in rows]
    except (csv.Error, KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{path}: damaged ({one_line(error)[:200]}); delete it and the curves will begin where the run continues"
        ) from None


def checkpoint_step(layout: RunFiles) -> int:
    """Return the number of steps completed at a run's checkpoint; 0 without a checkpoint."""
    if not layout.last_checkpoint.exists():
        return 0
    return int(torch.load(layout.last_checkpoint, map_location="cpu", weights_only=True, mmap=True)["global_step"])

"""Lightning loggers of a run: TensorBoard, CSV, W&B and MLflow, as listed in `trainer.loggers`.

The TensorBoard logger writes to the run's directory from a separate thread.
"""

from __future__ import annotations

import csv
import importlib.util
import os
import threading
import uuid
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from pytorch_lightning import loggers as loggers_of_lightning
from pytorch_lightning.loggers import Logger, TensorBoardLogger
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2
from tensorboard.plugins.text.plugin_data_pb2 import TextPluginData

from anaphora.base.errors import UserError, one_line, pip_install
from anaphora.base.files import read_json, write_csv, write_json
from anaphora.runs.directory import RunFiles
from anaphora.training.tensorboard.layout import FINAL_METRICS

if TYPE_CHECKING:
    from anaphora.training.tensorboard.pictures import PngImage


SERVICES = ("wandb", "mlflow")
"""Loggers that need a package of the same name."""
SERVICE_FILE = "services.json"
"""File in `curves/` with the run's id at each service, needed to continue the curves of a resumed run there."""
PROJECT = "anaphora"


def check_loggers(names: Sequence[str]) -> None:
    """Check that the packages of the loggers in `SERVICES` are installed; raise UserError otherwise."""
    for name in names:
        if name in SERVICES and importlib.util.find_spec(name) is None:
            raise UserError(f"trainer.loggers ({name!r}) needs a package: {pip_install(name)}")


def build_loggers(layout: RunFiles, names: Sequence[str], resumed: bool) -> list[Logger]:
    """Build the loggers of a run.

    The curves of a resumed run continue at the checkpoint, but W&B and MLflow also retain the points logged between the
    checkpoint and the interruption. Both assign an id to the run, which is written to `SERVICE_FILE`. Their environment
    variables, such as WANDB_MODE and MLFLOW_TRACKING_URI, determine where curves are stored; by default, MLflow's
    database is in the parent directory of the run.

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
    project = os.environ.get("WANDB_PROJECT", PROJECT)
    return loggers_of_lightning.WandbLogger(
        name=layout.directory.name, save_dir=layout.directory, project=project, id=identity, resume="allow"
    )


def _mlflow_logger(layout: RunFiles, resumed: bool) -> Logger:
    logger = loggers_of_lightning.MLFlowLogger(
        experiment_name=os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT),
        run_name=layout.directory.name,
        run_id=(_service_ids(layout) if resumed else {}).get("mlflow"),
        tracking_uri=os.environ.get("MLFLOW_TRACKING_URI", f"sqlite:///{layout.directory.parent.absolute()}/mlflow.db"),
    )
    assert logger.run_id is not None
    _keep_service_id(layout, "mlflow", logger.run_id)
    return logger


def _service_ids(layout: RunFiles) -> dict[str, str]:
    path = layout.directory / "curves" / SERVICE_FILE
    try:
        return dict(read_json(path, {str: str}, "delete it, and the curves begin again at the service"))
    except FileNotFoundError:
        return {}


def _keep_service_id(layout: RunFiles, service: str, identity: str) -> None:
    write_json(layout.directory / "curves" / SERVICE_FILE, {**_service_ids(layout), service: identity})


class RunCSVLogger(Logger):
    """Logger that writes every metric to the run's `curves/metrics.csv`, with TensorBoard tags as columns.

    Unlike Lightning's logger, it rewrites the whole file atomically, at each validation. There is a row for the first
    step, for every tenth step, for each validation and for the final metrics. When a run is resumed, the rows up to the
    checkpoint are kept, without the final metrics.
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
    """Return the training step of every row of a CSV file with curves, and the values by tag.

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


@contextmanager
def quiet_writer_thread() -> Iterator[None]:
    """Suppress, in the `with` block, the output of threads that end with an OSError.

    TensorBoard raises the error of its writer thread again in the main thread.
    """
    before = threading.excepthook

    def hook(failed: threading.ExceptHookArgs) -> None:
        if not isinstance(failed.exc_value, OSError):
            before(failed)

    threading.excepthook = hook
    try:
        yield
    finally:
        threading.excepthook = before


class RunTensorBoardLogger(TensorBoardLogger):
    """Logger with an event file in the run's directory; the step of a point is the number of completed training steps.

    `resumed_at` is the step of a resumed run's checkpoint; TensorBoard drops later points. None for a new run.
    """

    def __init__(self, directory: Path, resumed_at: int | None) -> None:
        # A new run has nothing to keep; a resumed one keeps what it wrote up to its checkpoint.
        first_void = None if resumed_at is None else resumed_at + 1 if resumed_at else 0
        super().__init__(directory, name="", version="", default_hp_metric=False, purge_step=first_void)

    def save(self) -> None:
        """Flush the event file; hparams.yaml is not needed, because config.yaml has the settings."""
        self.experiment.flush()

    def finalize(self, status: str) -> None:
        """Write the remaining events; if training succeeded, mark the run on the tab "HParams" as finished."""
        if status == "success":
            end = plugin_data_pb2.SessionEndInfo(status=api_pb2.STATUS_SUCCESS)
            self._add_hparams(metadata.SESSION_END_INFO_TAG, plugin_data_pb2.HParamsPluginData(session_end_info=end))
        super().finalize(status)

    def log_hyperparams(
        self, params: dict[str, Any] | Namespace, metrics: dict[str, Any] | None = None, step: int | None = None
    ) -> None:
        """Write the settings (strings and numbers) and the names in `FINAL_METRICS` to the tab "HParams"."""
        infos = []
        start = plugin_data_pb2.SessionStartInfo()
        for name, value in (vars(params) if isinstance(params, Namespace) else params).items():
            if isinstance(value, str):
                start.hparams[name].string_value = value
                infos.append(api_pb2.HParamInfo(name=name, type=api_pb2.DATA_TYPE_STRING))
            else:
                start.hparams[name].number_value = value
                infos.append(api_pb2.HParamInfo(name=name, type=api_pb2.DATA_TYPE_FLOAT64))
        columns = [
            api_pb2.MetricInfo(name=api_pb2.MetricName(tag=tag), display_name=name)
            for tag, name in FINAL_METRICS.items()
        ]
        experiment = api_pb2.Experiment(hparam_infos=infos, metric_infos=columns)
        self._add_hparams(metadata.EXPERIMENT_TAG, plugin_data_pb2.HParamsPluginData(experiment=experiment))
        self._add_hparams(metadata.SESSION_START_INFO_TAG, plugin_data_pb2.HParamsPluginData(session_start_info=start))

    def add_image(self, tag: str, image: PngImage, step: int) -> None:
        """Add an image under a tag, at a training step."""
        summary = Summary.Image(height=image.height, width=image.width, colorspace=3, encoded_image_string=image.png)
        self._add(Summary.Value(tag=tag, image=summary), step)

    def add_text(self, tag: str, markdown: str, step: int) -> None:
        """Add text in Markdown; plain text must be escaped by `escape_markdown` first."""
        # The writer's own `add_text` appends "/text_summary" to the tag.
        plugin = SummaryMetadata.PluginData(plugin_name="text", content=TextPluginData(version=0).SerializeToString())
        tensor = TensorProto(
            dtype="DT_STRING",
            string_val=[markdown.encode()],
            tensor_shape=TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)]),
        )
        self._add(Summary.Value(tag=tag, tensor=tensor, metadata=SummaryMetadata(plugin_data=plugin)), step)

    def add_layout(self, categories: Mapping[str, Mapping[str, Sequence[str]]]) -> None:
        """Set the charts of the tab "Custom Scalars": for each category and title, regular expressions of tags."""
        self.experiment.add_custom_scalars(
            {
                category: {title: ["Multiline", list(tags)] for title, tags in charts.items()}
                for category, charts in categories.items()
            }
        )

    def _add_hparams(self, tag: str, content: plugin_data_pb2.HParamsPluginData) -> None:
        content.version = metadata.PLUGIN_DATA_VERSION
        plugin = SummaryMetadata.PluginData(plugin_name=metadata.PLUGIN_NAME, content=content.SerializeToString())
        self._add(Summary.Value(tag=tag, metadata=SummaryMetadata(plugin_data=plugin)), 0)

    def _add(self, value: Summary.Value, step: int) -> None:
        self.experiment.file_writer.add_summary(Summary(value=[value]), step)

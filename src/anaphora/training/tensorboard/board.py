"""Lightning logger for TensorBoard: scalars, images, text, custom charts and HParams.

A single writer in a separate thread writes all of these to the run's directory.
"""

from __future__ import annotations

import threading
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytorch_lightning.loggers import TensorBoardLogger
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2
from tensorboard.plugins.text.plugin_data_pb2 import TextPluginData

from anaphora.training.tensorboard.layout import FINAL_METRICS

if TYPE_CHECKING:
    from anaphora.training.tensorboard.pictures import PngImage


@contextmanager
def quiet_writer_thread() -> Iterator[None]:
    """Silence OSError in threads, such as TensorBoard's writer, whose error is raised in the main thread too."""
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
    """Logger with an event file in the run's directory; steps count completed training steps.

    Args:
        directory: directory of the run.
        resumed_at: number of steps completed when the run resumes, after which TensorBoard drops the points of the
            interrupted process; None for a new run.
    """

    def __init__(self, directory: Path, resumed_at: int | None) -> None:
        # A new run has nothing to keep; a resumed one keeps what it wrote up to its checkpoint.
        first_void = None if resumed_at is None else resumed_at + 1 if resumed_at else 0
        super().__init__(directory, name="", version="", default_hp_metric=False, purge_step=first_void)

    def save(self) -> None:
        """Flush the event file; hparams.yaml is not needed, because config.yaml has the settings."""
        self.experiment.flush()

    def finalize(self, status: str) -> None:
        """Write the remaining events, and the end of the session if it was successful."""
        if status == "success":
            end = plugin_data_pb2.SessionEndInfo(status=api_pb2.STATUS_SUCCESS)
            self._add_hparams(metadata.SESSION_END_INFO_TAG, plugin_data_pb2.HParamsPluginData(session_end_info=end))
        super().finalize(status)

    def log_hyperparams(
        self, params: dict[str, Any] | Namespace, metrics: dict[str, Any] | None = None, step: int | None = None
    ) -> None:
        """Write the settings as strings and numbers, and the columns of `FINAL_METRICS`, to the tab "HParams"."""
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
        """Add an image at one step of its tag."""
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
        """Set the charts of the tab "Custom Scalars": category -> title -> regular expressions of tags."""
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

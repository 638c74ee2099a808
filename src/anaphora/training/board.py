"""TensorBoard's event file of a run: numbers, pictures, text, the layout of its charts and the settings to compare by.

Events are written by TensorBoard's own writer, in a thread of its own, so that tags are as they are named here.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.custom_scalar.metadata import CONFIG_SUMMARY_TAG
from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2
from tensorboard.plugins.text.plugin_data_pb2 import TextPluginData
from tensorboard.summary.writer.event_file_writer import EventFileWriter

if TYPE_CHECKING:
    from anaphora.report.probe_pictures import Picture


class Board:
    """An event file in a run's directory; steps are training steps done.

    Args:
        directory: the run.
        resumed_at: steps done where the run goes on. What an interrupted process wrote beyond them is told to be void.
            None for a new run.
    """

    def __init__(self, directory: Path, resumed_at: int | None) -> None:
        self._writer = EventFileWriter(str(directory))
        if resumed_at is not None:
            # A run that begins anew has nothing to keep; one that goes on keeps what it wrote at its checkpoint.
            void = resumed_at + 1 if resumed_at else 0
            self._writer.add_event(Event(step=void, session_log=SessionLog(status=SessionLog.START)))

    def numbers(self, values: Mapping[str, float], step: int) -> None:
        """One point of each curve."""
        self._add([Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()], step)

    def picture(self, tag: str, picture: Picture, step: int) -> None:
        """One place of a picture's slider."""
        drawn = Summary.Image(
            height=picture.height, width=picture.width, colorspace=3, encoded_image_string=picture.png
        )
        self._add([Summary.Value(tag=tag, image=drawn)], step)

    def text(self, tag: str, markdown: str, step: int) -> None:
        """A text in Markdown; what is not meant as such goes through `literal` before."""
        plugin = SummaryMetadata.PluginData(plugin_name="text", content=TextPluginData(version=0).SerializeToString())
        tensor = TensorProto(
            dtype="DT_STRING",
            string_val=[markdown.encode()],
            tensor_shape=TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)]),
        )
        self._add([Summary.Value(tag=tag, tensor=tensor, metadata=SummaryMetadata(plugin_data=plugin))], step)

    def layout(self, categories: Mapping[str, Mapping[str, Sequence[str]]]) -> None:
        """The charts of the tab "Custom Scalars": category -> title -> regular expressions of the tags it shows."""
        drawn = layout_pb2.Layout(
            category=[
                layout_pb2.Category(
                    title=category,
                    chart=[
                        layout_pb2.Chart(title=title, multiline=layout_pb2.MultilineChartContent(tag=tags))
                        for title, tags in charts.items()
                    ],
                )
                for category, charts in categories.items()
            ]
        )
        tensor = TensorProto(dtype="DT_STRING", string_val=[drawn.SerializeToString()], tensor_shape=TensorShapeProto())
        plugin = SummaryMetadata.PluginData(plugin_name="custom_scalars")
        made = Summary.Value(tag=CONFIG_SUMMARY_TAG, tensor=tensor, metadata=SummaryMetadata(plugin_data=plugin))
        self._add([made], 0)

    def settings(self, values: Mapping[str, str | float], measures: Mapping[str, str]) -> None:
        """What the tab "HParams" shows: settings by name, and the measures, tag -> the name of its column."""
        infos = []
        start = plugin_data_pb2.SessionStartInfo()
        for name, value in values.items():
            if isinstance(value, str):
                start.hparams[name].string_value = value
                infos.append(api_pb2.HParamInfo(name=name, type=api_pb2.DATA_TYPE_STRING))
            else:
                start.hparams[name].number_value = value
                infos.append(api_pb2.HParamInfo(name=name, type=api_pb2.DATA_TYPE_FLOAT64))
        columns = [
            api_pb2.MetricInfo(name=api_pb2.MetricName(tag=tag), display_name=name) for tag, name in measures.items()
        ]
        experiment = api_pb2.Experiment(hparam_infos=infos, metric_infos=columns)
        self._hparams(metadata.EXPERIMENT_TAG, plugin_data_pb2.HParamsPluginData(experiment=experiment))
        self._hparams(metadata.SESSION_START_INFO_TAG, plugin_data_pb2.HParamsPluginData(session_start_info=start))

    def succeeded(self) -> None:
        """Say that training has ended as it should."""
        end = plugin_data_pb2.SessionEndInfo(status=api_pb2.STATUS_SUCCESS)
        self._hparams(metadata.SESSION_END_INFO_TAG, plugin_data_pb2.HParamsPluginData(session_end_info=end))

    def flush(self) -> None:
        """Let the browser see what has been written."""
        self._writer.flush()

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()

    def _hparams(self, tag: str, content: plugin_data_pb2.HParamsPluginData) -> None:
        content.version = metadata.PLUGIN_DATA_VERSION
        plugin = SummaryMetadata.PluginData(plugin_name=metadata.PLUGIN_NAME, content=content.SerializeToString())
        self._add([Summary.Value(tag=tag, metadata=SummaryMetadata(plugin_data=plugin))], 0)

    def _add(self, values: list[Summary.Value], step: int) -> None:
        self._writer.add_event(Event(step=step, wall_time=time.time(), summary=Summary(value=values)))

"""The pronouns' attention rows as Parquet."""

from __future__ import annotations

from anaphora.analysis.maps.capture import capture
from anaphora.analysis.maps.rows import write_attention_rows
from anaphora.base.console import console
from anaphora.commands.shared import held_output, sentence_of
from anaphora.runs.directory import load
from anaphora.runs.items import encode, evaluation_splits
from anaphora.settings.commands.analysis import Analysis


def extract(settings: Analysis) -> None:
    """Write the pronouns' rows of every layer and head as Parquet."""
    run = load(settings.run, settings.trainer)
    with held_output(settings.output, run.directory / "attention") as folder:
        if settings.text is not None:
            examples, name = [sentence_of(settings)], "sentence"
        else:
            material = evaluation_splits(run, settings.split, settings.data, settings.items)
            examples, name = material.measured, material.split
        captured = capture(run.model, encode(run, examples), run.config.batching, run.config.task.prediction)
        path = folder / f"{name}.parquet"
        write_attention_rows(path, captured.records)
    layers, heads, _ = captured.records[0].weights.shape
    console.print(f"{len(captured.records)} items x {layers} layers x {heads} heads: {path}", soft_wrap=True)

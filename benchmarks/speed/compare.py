"""Comparison of speed, with one table for each distribution of sentence lengths and each model size."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from anaphora.base.device import torch_device
from anaphora.base.files import check_writable, write_json
from anaphora.base.hub import import_transformers
from anaphora.runs.machine import Machine
from anaphora.settings.arguments import CONFIGS
from anaphora.settings.compose import compose_run
from anaphora.training.items import prepare_examples
from benchmarks.speed import extraction, pretraining, step, training
from benchmarks.speed.sentences import VOCABULARY, draw_lengths, generate_sentences
from benchmarks.speed.settings import Benchmark, parse_size
from benchmarks.speed.stopwatch import measure_interleaved, meter_of
from benchmarks.speed.table import BenchmarkTable

STEP_EXPERIMENT = "compositions"
"""Experiment of the demo, whose training step `what=step` measures."""
_CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}


def run_benchmark(settings: Benchmark) -> None:
    """Run the benchmark, print each table when it is complete, and write the results to `output`.

    Raises:
        UserError: transformers is not installed.
    """
    if settings.output is not None:
        check_writable(Path(settings.output))
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    about = environment_info(settings)
    print_environment(about)
    tables = []
    for table in measure_tables(settings):
        print_rates(table)
        tables.append(table.to_dict())
    if settings.output is not None:
        write_json(Path(settings.output), {**about, "tables": tables})


def print_environment(about: Mapping[str, Any]) -> None:
    """Print the result of `environment_info` without the settings."""
    _wide_console().print(", ".join(f"{name} {value}" for name, value in about.items() if name != "settings"))


def print_rates(table: BenchmarkTable) -> None:
    """Print a table of rates."""
    _wide_console().print(table.terminal_table())


def _wide_console() -> Console:
    """Return a console that is wide enough for the tables, also if the output is not a terminal."""
    return Console(width=max(120, Console().width), markup=False)


def measure_tables(settings: Benchmark) -> Iterator[BenchmarkTable]:
    """Yield the tables of the benchmark, each after its measurement.

    Raises:
        UserError: a corpus cannot be read.
    """
    if settings.what == "pretraining":
        yield from _pretraining(settings)
        return
    if settings.what == "step":
        yield _step_table(settings)
        return
    device = torch_device(settings.trainer.device)
    for mix in settings.lengths:
        draw = np.random.default_rng(settings.seed)
        data = generate_sentences(draw_lengths(mix, settings.sentences, draw), draw)
        for name in settings.sizes:
            torch.manual_seed(settings.seed)
            if settings.what == "training":
                unit = rate("real tokens", settings)
                variants = training.variants(
                    parse_size(name), data, settings.batch_sentences, settings.steps, settings.seed, device
                )
            else:
                unit = rate("sentences", settings)
                variants = extraction.variants(parse_size(name), data, settings.batch_sentences, device)
            yield BenchmarkTable(
                title=f"{settings.what}, size {name}, lengths {mix}",
                unit=unit,
                lengths=data.ids.lengths.tolist(),
                rows=measure_interleaved(variants, settings.repeats, _CLOCKS[settings.clock], meter_of(device)),
            )


def rate(what: str, settings: Benchmark) -> str:
    """Return the unit of the rates, such as "sentences a second"."""
    return f"{what} a second" if settings.clock == "wall" else f"{what} a processor second"


def _step_table(settings: Benchmark) -> BenchmarkTable:
    device = torch_device(settings.trainer.device)
    items = (f"data.train_items={settings.sentences}", "data.test_items=100")  # what trains is measured
    overrides = [f"experiment={STEP_EXPERIMENT}", f"seed={settings.seed}", *items]
    config = compose_run(CONFIGS, overrides, "what=step")
    data = prepare_examples(config, None)
    return BenchmarkTable(
        title=f"a training step of experiment={STEP_EXPERIMENT}, all included, and {step.PRODUCT_IN_WORDS}",
        unit=rate("million floating-point operations in products", settings),
        lengths=data.training.ids.lengths.tolist(),
        rows=measure_interleaved(
            step.variants(data, settings.steps, device), settings.repeats, _CLOCKS[settings.clock], meter_of(device)
        ),
    )


def _pretraining(settings: Benchmark) -> Iterator[BenchmarkTable]:
    device = torch_device(settings.trainer.device)
    for kind in settings.texts:
        data = pretraining.text_chunks(settings.data, kind, settings.sentences, settings.seed)
        for name in settings.sizes:
            torch.manual_seed(settings.seed)
            yield BenchmarkTable(
                title=f"pretraining, size {name}, {kind} of {settings.data.kind}, {data.vocabulary} tokens known",
                unit=rate("real tokens", settings),
                lengths=data.ids.lengths.tolist(),
                rows=measure_interleaved(
                    pretraining.variants(parse_size(name), data, settings.batch_sentences, device),
                    settings.repeats,
                    _CLOCKS[settings.clock],
                    meter_of(device),
                ),
            )


def environment_info(settings: Benchmark) -> dict[str, Any]:
    """Return the machine, the library versions and the settings, for the interpretation of the results."""
    machine = Machine.present()
    return {
        "processor": machine.processor,
        "cores": machine.cores,
        "threads": torch.get_num_threads(),
        "device": _device_name(torch_device(settings.trainer.device)),
        "load before": machine.load,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": str(import_transformers("bench").__version__),
        "vocabulary": VOCABULARY,
        "settings": asdict(settings),
    }


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type

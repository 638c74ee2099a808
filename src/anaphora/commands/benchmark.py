"""The whole comparison: sentences of each length mix, models of each size, one table for each pair."""

from __future__ import annotations

import os
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
from anaphora.benchmark import extraction, pretraining, step, training
from anaphora.benchmark.sentences import VOCABULARY, draw_lengths, generate_sentences
from anaphora.benchmark.stopwatch import measure_interleaved, meter_of
from anaphora.benchmark.table import BenchmarkTable
from anaphora.report.terminal import in_language_of_messages
from anaphora.report.wording import phrase
from anaphora.settings.commands.benchmark import Benchmark, parse_size
from anaphora.settings.compose import compose_run, config_folder
from anaphora.training.items import prepare_examples

STEP_EXPERIMENT = "compositions"
"""The demo's: `what=step` measures its training step."""
_CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}


def run_benchmark(settings: Benchmark) -> None:
    """Measure, print each table when it is ready, and write the numbers to `output`.

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


@in_language_of_messages
def print_environment(about: Mapping[str, Any]) -> None:
    """Print what `environment_info` gives, without the settings."""
    values = {name.replace(" ", "_"): value for name, value in about.items() if name != "settings"}
    _wide_console().print(phrase("benchmark", "environment", **values))


@in_language_of_messages
def print_rates(table: BenchmarkTable) -> None:
    """Print a table of rates."""
    _wide_console().print(table.terminal_table())


def _wide_console() -> Console:
    """No figure is cut where the output is no terminal."""
    return Console(width=max(120, Console().width), markup=False)


def measure_tables(settings: Benchmark) -> Iterator[BenchmarkTable]:
    """Measure, one table after the other.

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
                unit = f"tokens_{settings.clock}"
                variants = training.variants(
                    parse_size(name), data, settings.batch_sentences, settings.steps, settings.seed, device
                )
            else:
                unit = f"sentences_{settings.clock}"
                variants = extraction.variants(parse_size(name), data, settings.batch_sentences, device)
            yield BenchmarkTable(
                work=settings.what,
                about={"size": name, "lengths": mix},
                unit=unit,
                lengths=data.ids.lengths.tolist(),
                rows=measure_interleaved(variants, settings.repeats, _CLOCKS[settings.clock], meter_of(device)),
            )


def _step_table(settings: Benchmark) -> BenchmarkTable:
    device = torch_device(settings.trainer.device)
    items = (f"data.train_items={settings.sentences}", "data.test_items=100")  # what trains is measured
    overrides = [f"experiment={STEP_EXPERIMENT}", f"seed={settings.seed}", *items]
    config = compose_run(config_folder(), overrides, "what=step")
    data = prepare_examples(config, None)
    return BenchmarkTable(
        work="step",
        about={"experiment": STEP_EXPERIMENT},
        unit=f"operations_{settings.clock}",
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
                work=f"pretraining_{kind}",
                about={"size": name, "data": settings.data.kind, "tokens": data.vocabulary},
                unit=f"tokens_{settings.clock}",
                lengths=data.ids.lengths.tolist(),
                rows=measure_interleaved(
                    pretraining.variants(parse_size(name), data, settings.batch_sentences, device),
                    settings.repeats,
                    _CLOCKS[settings.clock],
                    meter_of(device),
                ),
            )


def environment_info(settings: Benchmark) -> dict[str, Any]:
    """The machine, the versions and the settings: without them a number means nothing."""
    return {
        "processor": _processor_name(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "device": _device_name(torch_device(settings.trainer.device)),
        "load before": _load_average(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": str(import_transformers("bench").__version__),
        "vocabulary": VOCABULARY,
        "settings": asdict(settings),
    }


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def _load_average() -> float | None:
    """How many processes wanted a core in the last minute; the numbers of a busy machine are unreliable."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def _processor_name() -> str:
    about = Path("/proc/cpuinfo")  # Linux alone; elsewhere the platform knows
    lines = about.read_text(encoding="utf-8").splitlines() if about.exists() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()

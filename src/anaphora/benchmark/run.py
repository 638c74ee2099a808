"""The whole comparison: sentences of each length mix, models of each size, one table for each pair."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from anaphora.benchmark import extraction, pretraining, training
from anaphora.benchmark.models import transformers
from anaphora.benchmark.sentences import VOCABULARY, invent, lengths_of
from anaphora.benchmark.settings import Benchmark, size_of
from anaphora.benchmark.stopwatch import meter_of, take_turns
from anaphora.benchmark.table import Table
from anaphora.files import write_json
from anaphora.place import device_of

_CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}


def show(chosen: Benchmark) -> None:
    """Measure, print each table as it is there, and write the figures where `output` says.

    Raises:
        UserError: transformers is not installed.
    """
    if chosen.threads is not None:
        torch.set_num_threads(chosen.threads)
    console = Console(width=max(120, Console().width))  # no figure is cut where the output is no terminal
    about = circumstances(chosen)
    console.print(", ".join(f"{name} {value}" for name, value in about.items() if name != "settings"))
    tables = []
    for table in benchmark(chosen):
        console.print(table.shown())
        tables.append(table.plain())
    if chosen.output is not None:
        write_json(Path(chosen.output), {**about, "tables": tables})


def benchmark(chosen: Benchmark) -> Iterator[Table]:
    """Measure, one table after the other.

    Raises:
        UserError: a corpus cannot be read.
    """
    if chosen.what == "pretraining":
        yield from _pretraining(chosen)
        return
    device = device_of(chosen.trainer.device)
    for mix in chosen.lengths:
        draw = np.random.default_rng(chosen.seed)
        data = invent(lengths_of(mix, chosen.sentences, draw), draw)
        for name in chosen.sizes:
            torch.manual_seed(chosen.seed)
            if chosen.what == "training":
                unit = f"real tokens a {_second(chosen)}"
                ways = training.ways(size_of(name), data, chosen.batch_sentences, chosen.steps, chosen.seed, device)
            else:
                unit = f"sentences a {_second(chosen)}"
                ways = extraction.ways(size_of(name), data, chosen.batch_sentences, device)
            yield Table(
                title=f"{chosen.what}, size {name}, lengths {mix}",
                unit=unit,
                lengths=data.ids.lengths.tolist(),
                rows=take_turns(ways, chosen.repeats, _CLOCKS[chosen.clock], meter_of(device)),
            )


def _pretraining(chosen: Benchmark) -> Iterator[Table]:
    device = device_of(chosen.trainer.device)
    for kind in chosen.texts:
        data = pretraining.pieces(chosen.data, kind, chosen.sentences, chosen.seed)
        for name in chosen.sizes:
            torch.manual_seed(chosen.seed)
            yield Table(
                title=f"pretraining, size {name}, {kind} of {chosen.data.kind}, {data.vocabulary} tokens known",
                unit=f"real tokens a {_second(chosen)}",
                lengths=data.ids.lengths.tolist(),
                rows=take_turns(
                    pretraining.ways(size_of(name), data, chosen.batch_sentences, device),
                    chosen.repeats,
                    _CLOCKS[chosen.clock],
                    meter_of(device),
                ),
            )


def _second(chosen: Benchmark) -> str:
    return "second" if chosen.clock == "wall" else "processor second"


def circumstances(chosen: Benchmark) -> dict[str, Any]:
    """What a figure means nothing without: the machine, the versions and the settings."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "device": _name_of(device_of(chosen.trainer.device)),
        "load before": _load(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": str(transformers().__version__),
        "vocabulary": VOCABULARY,
        "settings": asdict(chosen),
    }


def _name_of(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def _load() -> float | None:
    """How many processes wanted a core in the last minute; the figures of a busy machine say little."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def _processor() -> str:
    about = Path("/proc/cpuinfo")  # Linux alone; elsewhere the platform knows
    lines = about.read_text(encoding="utf-8").splitlines() if about.exists() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()

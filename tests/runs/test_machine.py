"""Tests of the description of the training machine, and of warnings about slow parts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from anaphora.runs import machine as module
from anaphora.runs.machine import Machine, keep_few_kernels, slow_settings, wait_briefly
from anaphora.settings.run import Config
from anaphora.training.run import train

IDLE = Machine(processor="any", kernel="any", cores=4, load=0.0)
BUSY = Machine(processor="any", kernel="any", cores=4, load=10.0)


def test_an_idle_machine_has_nothing_to_say() -> None:
    assert slow_settings(IDLE, threads=4, precision="32", weights=1000) == []


def test_a_busy_machine_is_named_with_how_much_longer_a_training_takes() -> None:
    [line] = slow_settings(BUSY, threads=2, precision="32", weights=1000)
    assert "load 10.0 on 4 cores" in line and "about 3.0 times" in line


def test_what_is_busy_on_cores_that_this_process_may_not_use_is_no_load(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Machine.present().load == 0.0  # as the tests have it
    monkeypatch.setattr("os.cpu_count", lambda: 10_000)
    assert Machine.present().load is None


def test_a_machine_that_does_not_know_its_load_counts_as_idle() -> None:
    assert Machine(processor="any", kernel="any", cores=4, load=None).slowdown(4) == 1.0


@pytest.mark.parametrize(("factor", "lines"), [(1.0, 0), (20.0, 1)])
def test_slow_products_in_bfloat16_are_named(factor: float, lines: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "bfloat16_slowdown", lambda: factor)
    said = slow_settings(IDLE, threads=1, precision="bf16-mixed", weights=1000)
    assert [f"{factor:.0f} times" in line and "trainer.precision=32" in line for line in said] == [True] * lines
    assert slow_settings(IDLE, threads=1, precision="32", weights=1000) == []


def test_a_model_that_is_larger_than_the_free_memory_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "free_memory", lambda: 16_000_000)
    assert slow_settings(IDLE, threads=1, precision="32", weights=1_000_000) == []
    [line] = slow_settings(IDLE, threads=1, precision="32", weights=100_000_000)
    assert "about 1.6 GB" in line and "0.0 GB are free" in line


@pytest.mark.parametrize(
    ("policy", "spins", "expected"),
    [(None, None, ("PASSIVE", "1000")), (None, "5", ("PASSIVE", "5")), ("ACTIVE", None, ("ACTIVE", None))],
)
def test_threads_wait_briefly_unless_the_environment_says_otherwise(
    monkeypatch: pytest.MonkeyPatch, policy: str | None, spins: str | None, expected: tuple[str, str | None]
) -> None:
    for name, value in (("OMP_WAIT_POLICY", policy), ("GOMP_SPINCOUNT", spins)):
        monkeypatch.setenv(name, value or "")
        if value is None:
            monkeypatch.delenv(name)
    wait_briefly()
    assert (os.environ["OMP_WAIT_POLICY"], os.environ.get("GOMP_SPINCOUNT")) == expected


def test_few_kernels_are_kept_unless_the_environment_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    newer, older, torchs = "ONEDNN_PRIMITIVE_CACHE_CAPACITY", "DNNL_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"
    for name in (newer, older, torchs):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    keep_few_kernels()
    assert os.environ[newer] == os.environ[torchs] == "64" and older not in os.environ
    monkeypatch.setenv(newer, "512")
    keep_few_kernels()
    assert os.environ[newer] == "512"
    monkeypatch.delenv(newer)
    monkeypatch.setenv(older, "4096")
    keep_few_kernels()
    assert newer not in os.environ


@pytest.mark.parametrize(("command", "kernels"), [("train", "64"), ("controls", "64"), ("explain", "None")])
def test_a_command_sets_how_threads_wait_and_how_many_kernels_stay(command: str, kernels: str) -> None:
    """Both are set before torch is loaded; only commands that train keep few kernels."""
    script = (
        f"import os, sys, anaphora.cli as cli; sys.argv = ['', '--help']; cli.run_command({command!r}); "
        "print('torch' in sys.modules, os.environ['OMP_WAIT_POLICY'], os.environ['GOMP_SPINCOUNT'], "
        "os.environ.get('ONEDNN_PRIMITIVE_CACHE_CAPACITY'), os.environ.get('LRU_CACHE_CAPACITY'))"
    )
    capacity = re.compile("OMP_WAIT_POLICY|GOMP_SPINCOUNT|.*CACHE_CAPACITY")
    environment = {name: value for name, value in os.environ.items() if not capacity.fullmatch(name)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.splitlines()[-1] == f"False PASSIVE 1000 {kernels} {kernels}"


def test_a_run_records_its_machine(tiny: Callable[..., Config], tmp_path: Path) -> None:
    directory = train(tiny(tmp_path))
    recorded = json.loads((directory / "training.json").read_text(encoding="utf-8"))["machine"]
    present = Machine.present()
    assert (recorded["processor"], recorded["kernel"]) == (present.processor, present.kernel)
    assert recorded["cores"] == present.cores and set(recorded) == {"processor", "kernel", "cores", "load"}


def test_the_time_of_attention_grows_with_the_square_of_the_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_seconds", lambda _kind: 2 * 256**3 / 1e9 * torch.get_num_threads())  # 1e9 a second
    assert module.attention_seconds([1000], layers=2, width=125) == pytest.approx(1)
    assert module.attention_seconds([2000, 1000], layers=2, width=125) == pytest.approx(5)

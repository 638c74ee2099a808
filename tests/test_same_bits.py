"""Tests that the environment of a command does not change its output files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from trials import difference, state

from conftest import TINY

COMMANDS = f"""
import sys
from anaphora.cli import main
small = ["data.train_items=120", "data.test_items=40", "optimizer.steps=3", "validation.every=3"]
for arguments in (["train", "name=run", *{TINY}, *small], ["score", "run=outputs/run", "untrained=1"]):
    sys.argv = ["anaphora", *arguments]
    main()
"""
SURROUNDINGS = (
    {"PYTHONHASHSEED": "1", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "TZ": "UTC"},
    {"PYTHONHASHSEED": "2", "LC_ALL": "C.UTF-8", "LANG": "tr_TR.UTF-8", "TZ": "Asia/Kathmandu"},
)


def test_order_of_hashes_locale_time_zone_and_folder_change_no_bit(tmp_path: Path) -> None:
    processes = []
    for number, variables in enumerate(SURROUNDINGS):
        folder = tmp_path / f"folder {number}"
        folder.mkdir()
        environment = {**os.environ, **variables, "PYTHONPATH": os.pathsep.join(sys.path)}
        environment |= {"ANAPHORA_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
        processes.append(
            subprocess.Popen(
                [sys.executable, "-c", COMMANDS], cwd=folder, env=environment, stderr=subprocess.PIPE, text=True
            )
        )
    for process in processes:
        _, problem = process.communicate(timeout=600)
        assert process.returncode == 0, problem
    first, second = (state(tmp_path / f"folder {number}") for number in range(2))
    assert "outputs/run/model.safetensors" in first and "outputs/run/metrics.json" in first
    assert difference(first, second) == []

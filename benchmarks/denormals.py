"""Measure the cost of denormal numbers in training: python -m benchmarks.denormals RUN STEPS.

RUN is an interrupted run. Copies of it are trained for STEPS further steps, alternately with denormal numbers and with
denormals flushed to zero, each in its own process. The table shows the steps per second, and the last line whether the
weights of all copies are bit-identical. OMP_NUM_THREADS sets the number of threads.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

REPEATS = 3
WAYS = ("denormal numbers", "zeros")
STEP = """
import sys, time
import torch
import pytorch_lightning as lightning
from anaphora.training import run as training

folder, steps, denormal = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "denormal numbers"
torch.set_flush_denormal(not denormal)
torch.set_flush_denormal = lambda mode: True
begun = torch.load(folder + "/checkpoints/last.ckpt", weights_only=True, map_location="cpu")["global_step"]
made = lightning.Trainer.__init__
times = []

class Clock(lightning.Callback):
    def on_train_batch_start(self, *_):
        times.append(time.perf_counter())

def shorter(self, *arguments, **named):
    made(self, *arguments, **{**named, "max_steps": begun + steps, "callbacks": [*named["callbacks"], Clock()]})

lightning.Trainer.__init__ = shorter
from anaphora.settings.compose import compose_run
from anaphora.settings.arguments import CONFIGS
training.train(compose_run(CONFIGS, [f"resume='{folder}'", "trainer.progress=false"], folder))
print((len(times) - 1) / (times[-1] - times[0]))
"""


def main() -> None:
    """Run the benchmark and print the results."""
    run, steps = Path(sys.argv[1]), sys.argv[2]
    rates: dict[str, list[float]] = {way: [] for way in WAYS}
    weights = set()
    for _ in range(REPEATS):
        for way in WAYS:
            with tempfile.TemporaryDirectory() as folder:
                copy = shutil.copytree(run, Path(folder) / run.name)
                call = [sys.executable, "-c", STEP, str(copy), steps, way]
                done = subprocess.run(call, capture_output=True, text=True, env=os.environ)
                if done.returncode:
                    sys.exit(done.stderr)
                rates[way].append(float(done.stdout.splitlines()[-1]))
                weights.add(hashlib.sha256((copy / "model.safetensors").read_bytes()).hexdigest())
    for way, measured in rates.items():
        spread = f"({min(measured):.1f} to {max(measured):.1f})"
        sys.stdout.write(f"{way}: {median(measured):.1f} steps a second {spread}\n")
    sys.stdout.write(f"the weights are {'the same' if len(weights) == 1 else 'not the same'} bit for bit\n")


if __name__ == "__main__":
    main()

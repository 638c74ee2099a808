#!/usr/bin/env bash
# What one would guess: torch.set_flush_denormal(True) makes torch count denormal numbers as zero from then on, in every
# operation of the process; it returns True, and its documentation names no thread. Found in torch 2.13.0: if torch has
# computed anything in parallel before, the setting reaches the calling thread alone. One and the same product of one
# tensor is then zero in its first half, which the calling thread computes, and denormal in its second, so a setting
# made for speed or for equal results slows and splits them instead. The same call before the first operation in
# parallel reaches all threads.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 numpy 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/halves.py" <<'PYTHON'
import sys

import torch

SIZE = 1_000_000
torch.set_num_threads(2)
if sys.argv[1] == "early":
    assert torch.set_flush_denormal(True)
numbers = torch.full((SIZE,), 2e-38)  # large enough for two threads; the second one starts here
if sys.argv[1] == "late":
    assert torch.set_flush_denormal(True)
is_zero = numbers * 0.1 == 0
print(torch.__version__, sys.argv[1], "- zeros:", int(is_zero.sum()), "of", SIZE, "- first and last:", *is_zero[[0, -1]].tolist())
expected = {"early": SIZE, "late": SIZE // 2}[sys.argv[1]]
assert int(is_zero.sum()) == expected and bool(is_zero[0]), "the behaviour has changed"
PYTHON
OMP_NUM_THREADS=2 "$folder/venv/bin/python" "$folder/halves.py" early
OMP_NUM_THREADS=2 "$folder/venv/bin/python" "$folder/halves.py" late

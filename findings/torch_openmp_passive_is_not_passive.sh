#!/usr/bin/env bash
# What one would guess: the OpenMP runtime inside torch's Linux package reports whether waiting threads spin. Asked with
# OMP_DISPLAY_ENV, it says OMP_WAIT_POLICY = 'PASSIVE' if the variable is not set, so setting it to PASSIVE changes
# nothing. Found in torch 2.13.0: without the variable, the report is PASSIVE and threads spin 300,000 times before they
# sleep; with it, the report is the same and they never spin (a training with small matrices on two idle cores became a
# third slower). A number of spins given together with PASSIVE is honoured. The timings are printed and not checked, since
# they depend on what else the machine does.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/products.py" <<'PYTHON'
import time

import torch

torch.set_num_threads(2)
left, right = torch.randn(1400, 128), torch.randn(128, 128)
for _ in range(200):
    left @ right
start = time.perf_counter()
for _ in range(3000):
    left @ right
print(f"torch {torch.__version__}: {(time.perf_counter() - start) / 3:.3f} ms for a product of 1,400 x 128 by 128 x 128")
PYTHON

check() { # check VARIABLES POLICY SPINS
  echo "== $1"
  # shellcheck disable=SC2086
  env -u OMP_WAIT_POLICY -u GOMP_SPINCOUNT $1 OMP_DISPLAY_ENV=VERBOSE "$folder/venv/bin/python" "$folder/products.py" >"$folder/out" 2>&1
  grep -E "OMP_WAIT_POLICY|GOMP_SPINCOUNT|^torch" "$folder/out"
  grep -q "OMP_WAIT_POLICY = '$2'" "$folder/out" && grep -q "GOMP_SPINCOUNT = '$3'" "$folder/out" || {
    echo "the behaviour has changed"
    exit 1
  }
}

check "UNSET=1" PASSIVE 300000
check "OMP_WAIT_POLICY=PASSIVE" PASSIVE 0
check "OMP_WAIT_POLICY=PASSIVE GOMP_SPINCOUNT=1000" PASSIVE 1000

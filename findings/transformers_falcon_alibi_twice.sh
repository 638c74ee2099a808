#!/usr/bin/env bash
# What one would guess: the two implementations of attention of one model, "eager" and "sdpa", compute the same up to
# rounding, so maps read in eager mode are those that the model used with "sdpa", its default. Found in transformers
# 5.23.0: a Falcon with ALiBi positions adds its bias for distance twice in eager mode, once with the mask and once to
# the scores. So eager mode is another model, with outputs a tenth apart, and no warning says so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 transformers==5.23.0 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/twice.py" <<'PYTHON'
import math
import sys

import torch
import transformers
from transformers import FalconConfig, FalconModel

WIDTH, HEADS = 32, 4
ids = torch.arange(3, 15)[None]
transformers.logging.set_verbosity_error()


def opened(implementation):
    return FalconModel.from_pretrained(sys.argv[1], attn_implementation=implementation).eval()


def apart():
    states = [opened(implementation)(ids).last_hidden_state for implementation in ("eager", "sdpa")]
    return float((states[0] - states[1]).abs().max())


with torch.no_grad():
    difference = {}
    for alibi in (False, True):
        torch.manual_seed(0)
        model = FalconModel(FalconConfig(vocab_size=20, hidden_size=WIDTH, num_attention_heads=HEADS, num_hidden_layers=1, alibi=alibi))
        model.save_pretrained(sys.argv[1])
        difference[alibi] = apart()
    # Without queries and keys the bias alone decides: neighbours in a row are exp(slope / sqrt(features)) apart.
    model.h[0].self_attention.query_key_value.weight[: WIDTH + WIDTH // HEADS] = 0
    model.save_pretrained(sys.argv[1])
    rows = opened("eager")(ids, output_attentions=True).attentions[0][0, :, -1].double()
    slopes = 2.0 ** (-8 / HEADS * torch.arange(1, HEADS + 1))
    times = (rows[:, 1:] / rows[:, :-1]).log().mean(-1) / (slopes / math.sqrt(WIDTH / HEADS))

print("transformers", transformers.__version__, "torch", torch.__version__)
print("largest difference of eager and sdpa, rotary:", difference[False])
print("largest difference of eager and sdpa, ALiBi: ", difference[True])
print("how often eager counts the bias, head by head:", [round(value, 2) for value in times.tolist()])
assert difference[False] < 1e-5 < 0.05 < difference[True], "the behaviour has changed"
assert all(abs(value - 2) < 0.05 for value in times.tolist()), "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/twice.py" "$folder/model" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}

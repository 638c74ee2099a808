#!/usr/bin/env bash
# What one would guess: the implementation of attention is a matter of speed, so a decoder that is causal with "eager"
# and "sdpa" is causal with "flex_attention" too. Found in transformers 5.23.0: Doge leaves the causal mask out if it
# comes as a block mask, which is the form that "flex_attention" asks for. So every token attends to all later ones, the
# outputs are those of another model, and no warning says so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 transformers==5.23.0 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/future.py" <<'PYTHON'
import os

os.environ["TORCHDYNAMO_DISABLE"] = "1"  # the same operations without a compiler

import torch
import transformers
from transformers import DogeConfig, DogeModel

SIZE = {"vocab_size": 64, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4}
ids = torch.arange(3, 27)[None]
changed = ids.clone()
changed[0, -1] = 40
transformers.logging.set_verbosity_error()
torch.manual_seed(0)
weights = DogeModel(DogeConfig(**SIZE)).state_dict()
print("transformers", transformers.__version__, "torch", torch.__version__)
reach = {}
with torch.no_grad():
    for implementation in ("eager", "sdpa", "flex_attention"):
        model = DogeModel._from_config(DogeConfig(**SIZE), attn_implementation=implementation).eval()
        model.load_state_dict(weights)
        assert model.config._attn_implementation == implementation
        states = [model(tokens).last_hidden_state[:, :-1] for tokens in (ids, changed)]
        reach[implementation] = float((states[0] - states[1]).abs().max())
        print(implementation, "- largest change of earlier tokens if the last token is another one:", reach[implementation])
assert reach["eager"] == reach["sdpa"] == 0 and reach["flex_attention"] > 0.1, "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/future.py" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}

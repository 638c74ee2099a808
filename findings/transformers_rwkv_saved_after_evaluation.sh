#!/usr/bin/env bash
# What one would guess: evaluating a model does not change it, so a model that is saved after an evaluation gives the
# outputs of the evaluation when it is loaded. Found in transformers 5.23.0: the first pass of RWKV outside training
# divides some of its weights by powers of two, in place, against overflow; save_pretrained writes the divided weights,
# and the loaded model divides them once more. So the same lines, "evaluate" and "save" in turn, give another model,
# with outputs far away, and no warning. A pass in training mode multiplies them back.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 transformers==5.23.0 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/saved.py" <<'PYTHON'
import sys

import torch
import transformers
from transformers import RwkvConfig, RwkvModel

transformers.logging.set_verbosity_error()
torch.manual_seed(0)
ids = torch.arange(3, 11)[None]
model = RwkvModel(
    RwkvConfig(vocab_size=20, hidden_size=32, attention_hidden_size=32, num_hidden_layers=8, rescale_every=2, use_cache=False)
).eval()


def saved(name):
    model.save_pretrained(f"{sys.argv[1]}/{name}")
    return RwkvModel.from_pretrained(f"{sys.argv[1]}/{name}").eval()


with torch.no_grad():
    before = saved("before")
    states = model(ids).last_hidden_state
    after = saved("after")
    model.train()(ids)
    restored = saved("restored")
    difference = {
        name: float((loaded(ids).last_hidden_state - states).abs().max())
        for name, loaded in (("before", before), ("after", after), ("restored", restored))
    }

print("transformers", transformers.__version__, "torch", torch.__version__)
print("largest state of the model:", round(float(states.abs().max()), 2))
for name, value in difference.items():
    print(f"largest difference of the model saved {name}:", round(value, 6))
assert difference["before"] < 1e-5 and difference["restored"] < 1e-5 and difference["after"] > 0.1, "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/saved.py" "$folder/model" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}

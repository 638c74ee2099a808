#!/usr/bin/env bash
# What one would guess: relative positions belong to attention, so every layer of T5 has its own or can use what it is
# given, and a T5 without its first layer, or with its layers in another order, is worse but still reads its words in
# order; if it could not, it would raise an error. Found in transformers 5.23.0: only the first layer holds the table of
# positions, computes the bias, and hands it on. A layer that comes first and has no table hands on zeros, which the layer
# with the table takes for the bias. So without layer 0, as a student of every second layer (1 and 3), or with the last
# layer put first, the encoder reads a bag of words in all its layers: words in another order get the same states, to
# 0.00001, where the whole encoder is 1.5 away. Without layer 1, positions stay. mT5 and LongT5 do the same; UMT5, with a
# table in each layer, does not. No warning or line in the log says so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 transformers==5.23.0 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/order.py" <<'PYTHON'
import logging
import warnings

import torch
import transformers
from transformers import LongT5Config, LongT5EncoderModel, MT5Config, MT5EncoderModel
from transformers import T5Config, T5EncoderModel, UMT5Config, UMT5EncoderModel

SIZE = {"vocab_size": 64, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 4, "num_heads": 4}
KEPT = {
    "all four layers": [0, 1, 2, 3],
    "without layer 1": [0, 2, 3],
    "without layer 0": [1, 2, 3],
    "every second layer": [1, 3],
    "last layer first": [3, 0, 1, 2],
}
FAMILIES = {
    "T5": (T5EncoderModel, T5Config),
    "mT5": (MT5EncoderModel, MT5Config),
    "LongT5": (LongT5EncoderModel, LongT5Config),
    "UMT5": (UMT5EncoderModel, UMT5Config),
}
ids = torch.arange(3, 15)[None]
order = torch.tensor([4, 9, 0, 11, 2, 7, 5, 1, 10, 3, 8, 6])
lines, moved = [], {}


class Keep(logging.Handler):
    def emit(self, record):
        lines.append(record.getMessage())


def distance(family, kept):
    torch.manual_seed(0)
    kind, config = family
    model = kind(config(**SIZE)).eval()
    for name, weight in model.named_parameters():
        if "relative_attention_bias" in name:
            torch.nn.init.normal_(weight)
    model.encoder.block = torch.nn.ModuleList(model.encoder.block[layer] for layer in kept)
    with torch.no_grad():
        states, others = model(ids).last_hidden_state, model(ids[:, order]).last_hidden_state
    return float((states[:, order] - others).abs().max())


transformers.logging.set_verbosity_warning()
transformers.logging.add_handler(Keep())
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    for family in FAMILIES:
        for case, kept in KEPT.items():
            moved[family, case] = distance(FAMILIES[family], kept)
print("transformers", transformers.__version__, "torch", torch.__version__)
print("how far the states of words move if the words come in another order:")
for (family, case), value in moved.items():
    print(f"  {family}, {case}: {value:.6f}")
print("warnings:", [str(warning.message) for warning in warned], "lines in the log:", lines)
for (family, case), value in moved.items():
    ordered = family == "UMT5" or case in ("all four layers", "without layer 1")
    assert value > 0.5 if ordered else value < 1e-5, f"the behaviour has changed: {family}, {case}"
assert not warned and not lines, "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/order.py" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}

#!/usr/bin/env bash
# What one would guess: if config.json names one rotary base, rope_theta, and nothing else about rotation, all layers
# turn by it, as in Llama, Mistral and OLMo 2; that OLMo 3 with scaling scales only its layers with full attention is
# another matter. Found in transformers 5.23.0 with torch 2.13.0: in OLMo 3, the base is taken out of config.json for
# the layers with full attention, and the others, three of four, find it gone and turn by 500000. A model that
# transformers 4 made and trained with its own default, 10000, is loaded with every weight in place and attends
# otherwise from the first layer on. save_pretrained then writes both bases, so that the mistake stays. A config.json
# with rope_parameters for each kind of layer is read as it is. No warning says so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 transformers==5.23.0 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/bases.py" <<'PYTHON'
import json
import logging
import sys
import warnings
from pathlib import Path

import torch
import transformers
from transformers import AutoConfig, AutoModel, Olmo3Config, Olmo3Model

KINDS, BASE = ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"], 10_000.0
SIZE = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 64}
SIZE |= {"num_key_value_heads": 4, "sliding_window": 64, "pad_token_id": 0, "initializer_range": 0.3}
SIZE |= {"bos_token_id": 2, "eos_token_id": 3}
print("transformers", transformers.__version__, "torch", torch.__version__)
said = []
handler = logging.Handler()
handler.emit = said.append
logging.getLogger("transformers").addHandler(handler)


def bases(**by_kind):
    return {kind: {"rope_type": "default", "rope_theta": base} for kind, base in by_kind.items()}


with warnings.catch_warnings(record=True) as warned, torch.no_grad():
    warnings.simplefilter("always")
    torch.manual_seed(0)
    right = bases(sliding_attention=BASE, full_attention=BASE)
    trained = Olmo3Model._from_config(Olmo3Config(**SIZE, layer_types=KINDS, rope_parameters=right)).eval()
    path = Path(sys.argv[1]) / "model"
    trained.save_pretrained(path)
    config = json.loads((path / "config.json").read_text(encoding="utf-8"))
    del config["rope_parameters"]
    old_form = {**config, "rope_theta": BASE, "rope_scaling": None}  # as transformers 4 writes it
    (path / "config.json").write_text(json.dumps(old_form), encoding="utf-8")
    model, report = AutoModel.from_pretrained(path, output_loading_info=True)
    model.eval()
    used = {kind: one["rope_theta"] for kind, one in model.config.rope_parameters.items()}
    print("rope_theta in config.json:", BASE, "in the model:", used)
    print("weights that are missing or unread:", sum(len(report[key]) for key in ("missing_keys", "unexpected_keys")))
    ids = torch.arange(1, 33)[None]
    states = [one(ids, output_hidden_states=True).hidden_states for one in (trained, model)]
    moved = [float((one - other).abs().max()) for one, other in zip(*states, strict=True)]
    print("largest change of a state after each layer:", [round(one, 3) for one in moved])
    as_found = bases(sliding_attention=500_000.0, full_attention=BASE)
    other = Olmo3Model._from_config(Olmo3Config(**SIZE, layer_types=KINDS, rope_parameters=as_found)).eval()
    other.load_state_dict(trained.state_dict())
    is_same = torch.equal(other(ids)[0], model(ids)[0])
    print("states are those of the bases 500000 and 10000:", is_same)
    model.save_pretrained(path)
    again = json.loads((path / "config.json").read_text(encoding="utf-8"))["rope_parameters"]
    for family in ("llama", "mistral", "olmo2"):
        config = AutoConfig.for_model(family, **SIZE, rope_theta=BASE)
        print(family, config.rope_parameters["rope_theta"])
        assert config.rope_parameters["rope_theta"] == BASE, "the behaviour has changed"
print("warnings and lines in the log:", len(warned) + len(said))
assert used == {"sliding_attention": 500_000.0, "full_attention": BASE}, "the behaviour has changed"
assert again == as_found, "the behaviour has changed"
assert not report["missing_keys"] and not report["unexpected_keys"] and is_same, "the behaviour has changed"
assert moved[0] == 0 and min(moved[1:]) > 0.1, "the behaviour has changed"
assert not warned and not said, "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/bases.py" "$folder" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}

#!/usr/bin/env bash
# What one would guess: a model silences the heads that head_mask names, as in published code for pruning heads, or,
# since the argument is gone, raises a TypeError like any function with an argument that it does not know. Found in
# transformers 5.23.0: forward takes any keyword and drops it. With all heads masked, BERT and others give the same
# output bit for bit, so a study of heads concludes that none of them matters. A misspelt attention_mask is dropped too,
# and padding is read as text. Neither a warning nor a line in the log says so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 transformers==5.23.0 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/heads.py" <<'PYTHON'
import inspect
import logging
import warnings

import torch
import transformers
from transformers import AlbertConfig, AlbertModel, BertConfig, BertModel, DistilBertConfig, DistilBertModel
from transformers import ElectraConfig, ElectraModel, GPT2Config, GPT2Model, RobertaConfig, RobertaModel

LAYERS, HEADS = 2, 4
SIZE = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": 64}
KINDS = {
    BertModel: BertConfig,
    RobertaModel: RobertaConfig,
    AlbertModel: AlbertConfig,
    ElectraModel: ElectraConfig,
    DistilBertModel: DistilBertConfig,
    GPT2Model: GPT2Config,
}
ids = torch.arange(3, 15)[None]
no_head, half = torch.zeros(LAYERS, HEADS), (torch.arange(12) >= 6).long()[None]
print("transformers", transformers.__version__, "torch", torch.__version__)
said = []
handler = logging.Handler()
handler.emit = said.append
models = {}
for kind, configuration in KINDS.items():
    torch.manual_seed(0)
    models[kind] = kind._from_config(configuration(**SIZE, initializer_range=0.3), attn_implementation="eager").eval()
logging.getLogger("transformers").addHandler(handler)
with torch.no_grad(), warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    for kind, model in models.items():
        plain = model(ids)[0]
        all_masked, misspelt = model(ids, head_mask=no_head)[0], model(ids, attn_mask=half)[0]
        spelt = model(ids, attention_mask=half)[0]
        named = "head_mask" in inspect.signature(kind.forward).parameters
        print(f"{kind.__name__}: forward names head_mask: {named}; largest change by head_mask of zeros", end=" ")
        print(f"{float((all_masked - plain).abs().max())}, by attn_mask {float((misspelt - plain).abs().max())},", end=" ")
        print(f"by attention_mask {float((spelt - plain).abs().max()):.3f}")
        assert torch.equal(all_masked, plain) and torch.equal(misspelt, plain), "the behaviour has changed"
        assert (spelt - plain).abs().max() > 0.01 and not named, "the behaviour has changed"
    bert = models[BertModel]
    plain = bert(ids)[0]
    for layer in bert.encoder.layer:
        layer.attention.output.dense.weight.zero_()  # what head_mask of zeros meant: no head reaches the states
    change = float((bert(ids)[0] - plain).abs().max())
print("BertModel: largest change if its heads are silenced in the weights:", round(change, 3))
print("warnings and lines in the log:", len(warned) + len(said))
assert change > 0.1 and not warned and not said, "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/heads.py" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}

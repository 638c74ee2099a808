#!/usr/bin/env bash
# What one would guess: "attentions" of a model's output are the weights after the softmax, as the docstring of the
# output says, so that a row adds up to one and a padded token gets nothing. Found in transformers 5.23.0: SqueezeBERT
# returns the scores before the softmax under this name. They have both signs, so a heat map of them looks plausible,
# and an average over heads or a share of attention is computed without an error.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 transformers==5.23.0 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/scores.py" <<'PYTHON'
import torch
import transformers
from transformers import BertConfig, BertModel, SqueezeBertConfig, SqueezeBertModel
from transformers.modeling_outputs import BaseModelOutputWithPooling

SIZE = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32}
ONE_GROUP = {f"{part}_groups": 1 for part in ("q", "k", "v", "post_attention", "intermediate", "output")}
ids = torch.arange(3, 15)[None]
transformers.logging.set_verbosity_error()
print("transformers", transformers.__version__, "torch", torch.__version__)
print("documented as weights after the softmax:", "after the attention softmax" in BaseModelOutputWithPooling.__doc__)
torch.manual_seed(0)
models = {
    "BERT": BertModel._from_config(BertConfig(**SIZE, initializer_range=0.5), attn_implementation="eager"),
    "SqueezeBERT": SqueezeBertModel(SqueezeBertConfig(**SIZE, **ONE_GROUP, embedding_size=32, initializer_range=0.5)),
}
first = {}
with torch.no_grad():
    for name, model in models.items():
        first[name] = model.eval()(ids, output_attentions=True).attentions[0].double()
        sums = first[name].sum(-1)
        print(name, "- smallest value:", float(first[name].min()), "row sums from", float(sums.min()), "to", float(sums.max()))
embeddings = models["SqueezeBERT"].embeddings(ids)
with torch.no_grad():
    layer = models["SqueezeBERT"].encoder.layers[0].attention
    query, key = (part(embeddings.transpose(1, 2)).view(1, 4, 8, -1) for part in (layer.query, layer.key))
    scores = (query.transpose(-1, -2) @ key / 8**0.5).double()
print("largest difference from query times key:", float((scores - first["SqueezeBERT"]).abs().max()))
assert (first["BERT"].sum(-1) - 1).abs().max() < 1e-5, "the behaviour has changed"
assert first["SqueezeBERT"].min() < -1 and (scores - first["SqueezeBERT"]).abs().max() < 1e-4, "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/scores.py" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}

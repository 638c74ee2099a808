#!/usr/bin/env bash
# What one would guess: an attention mask hides padding, so an encoder gives a sentence the same states alone and padded
# to the length of a longer one. Found in transformers 5.23.0: the convolution of ConvBERT, which runs beside attention,
# does not see the mask. It mixes the states of padded tokens into the last tokens of the sentence, and from there they
# spread, so that a sentence's states and attention depend on the length of the others in its batch.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 transformers==5.23.0 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/padding.py" <<'PYTHON'
import torch
import transformers
from transformers import BertConfig, BertModel, ConvBertConfig, ConvBertModel

SIZE = {"vocab_size": 64, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
alone = torch.arange(3, 11)[None]
padded = torch.cat([alone, torch.zeros(1, 8, dtype=torch.long)], dim=1)
transformers.logging.set_verbosity_error()
print("transformers", transformers.__version__, "torch", torch.__version__)
torch.manual_seed(0)
models = {
    "BERT": BertModel(BertConfig(**SIZE, initializer_range=0.2)),
    "ConvBERT": ConvBertModel(ConvBertConfig(**SIZE, embedding_size=64, initializer_range=0.2)),
}
apart = {}
with torch.no_grad():
    for name, model in models.items():
        first = model.eval()(alone).last_hidden_state[0]
        second = model(padded, attention_mask=(padded != 0).long()).last_hidden_state[0, : alone.shape[1]]
        apart[name] = (first - second).abs().amax(-1)
        print(name, "- standard deviation of the states:", round(float(first.std()), 2))
        print("largest change of each token by padding:", [round(value, 3) for value in apart[name].tolist()])
assert apart["BERT"].max() < 1e-4, "the behaviour has changed"
assert apart["ConvBERT"].min() > 0.05, "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/padding.py" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}

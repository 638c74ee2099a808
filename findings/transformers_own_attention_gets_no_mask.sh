#!/usr/bin/env bash
# What one would guess: a function that is registered with AttentionInterface, to record or to change attention, takes
# the place of the library's and gets the same arguments, so the library's own eager function under another name gives
# the same model. Found in transformers 5.23.0: the mask is made by name too, and for a name that AttentionMaskInterface
# does not know, none is made, and the function gets None. So some of BERT's tokens give padding 0.95 of their weight,
# and some of Llama's give later tokens all of it; the states of Llama with sdpa under another name change too. The rows
# of the maps add up to one, so they look sound, and neither a warning nor a line in the log says so. With eager_mask
# registered under the same name, the model is the same again.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 transformers==5.23.0 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/own.py" <<'PYTHON'
import logging
import warnings

import torch
import transformers
from transformers import AttentionInterface, AttentionMaskInterface, BertConfig, BertModel, LlamaConfig, LlamaModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import eager_mask
from transformers.models.bert import modeling_bert
from transformers.models.llama import modeling_llama

TOKENS, PADDED = 12, 4
SIZE = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
SIZE |= {"intermediate_size": 64, "initializer_range": 0.3}
torch.set_num_threads(1)
ids = torch.arange(3, 3 + TOKENS)[None]
padding_right, padding_left = torch.ones_like(ids), torch.ones_like(ids)
padding_right[0, -PADDED:] = 0
padding_left[0, :PADDED] = 0
said = []
handler = logging.Handler(logging.WARNING)
handler.emit = said.append
logging.getLogger("transformers").addHandler(handler)


def run(model, name, mask):
    model.set_attn_implementation(name)
    output = model(ids, attention_mask=mask, output_attentions=name.endswith("eager"))
    return output.last_hidden_state[mask.bool()], output.attentions


def compared(kind, configuration, library, function, mask):
    """Compare a model with the same whose attention function has another name."""
    name = f"own {kind.__name__} {library}"
    torch.manual_seed(0)
    model = kind(configuration).eval()
    states, _ = run(model, library, mask)
    AttentionInterface.register(name, function)
    own, maps = run(model, name, mask)
    found = {"difference of the states": own - states}
    if library == "eager":
        weights = torch.stack(maps)
        found["difference of the row sums from 1"] = weights.sum(-1) - 1
        found["share of padding in a row"] = (weights * (mask == 0)).sum(-1)
        found["share of later tokens in a row"] = weights.triu(1).sum(-1)  # BERT may attend to them
    AttentionMaskInterface.register(name, eager_mask)
    found["difference with eager_mask registered"] = run(model, name, mask)[0] - states
    found = {key: round(float(value.abs().max()), 5) for key, value in found.items()}
    print(f"{kind.__name__}, {library} under another name, largest:", found)
    return found


print("transformers", transformers.__version__, "torch", torch.__version__)
with torch.no_grad(), warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    found = [
        compared(BertModel, BertConfig(**SIZE), "eager", modeling_bert.eager_attention_forward, padding_right),
        compared(LlamaModel, LlamaConfig(**SIZE), "eager", modeling_llama.eager_attention_forward, padding_right),
        compared(LlamaModel, LlamaConfig(**SIZE), "sdpa", sdpa_attention_forward, padding_left),
    ]
print("warnings and lines in the log:", len(warned) + len(said))
for one in found:
    assert one["difference of the states"] > 0.1, "the behaviour has changed"
    assert one["difference with eager_mask registered"] < 1e-4, "the behaviour has changed"
for one in found[:2]:
    assert one["difference of the row sums from 1"] < 1e-4 and one["share of padding in a row"] > 0.5, "the behaviour has changed"
assert found[1]["share of later tokens in a row"] > 0.9 and not warned and not said, "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/own.py" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}

#!/usr/bin/env bash
# What one would guess: a boolean attention mask with one entry for each pair of tokens is read alike by "eager" and
# "sdpa", or one of them refuses it, so an edge that is knocked out this way is gone from the maps too, which only
# "eager" returns. Found in transformers 5.23.0: "sdpa" hides what is False; "eager" adds the mask to the scores as 0
# and 1. The hidden token keeps a share of every row, a decoder sees all later tokens, and no warning says so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 transformers==5.23.0 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/edges.py" <<'PYTHON'
import torch
import transformers
from transformers import BertConfig, BertModel, LlamaConfig, LlamaModel

SIZE = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
TOKENS, HIDDEN = 12, 5
ids = torch.arange(3, 3 + TOKENS)[None]
changed = ids.clone()
changed[0, -1] = 40
keep = torch.ones(1, 1, TOKENS, TOKENS, dtype=torch.bool)
keep[..., HIDDEN] = False
earlier = keep.new_ones(1, 1, TOKENS, TOKENS).tril()
transformers.logging.set_verbosity_error()
print("transformers", transformers.__version__, "torch", torch.__version__)


def opened(kind, configuration, implementation):
    torch.manual_seed(0)
    return kind._from_config(configuration(**SIZE, initializer_range=0.3), attn_implementation=implementation).eval()


error, future = {}, {}
with torch.no_grad():
    for implementation in ("sdpa", "eager"):
        bert = opened(BertModel, BertConfig, implementation)
        llama = opened(LlamaModel, LlamaConfig, implementation)
        right = bert(ids, attention_mask=keep[:, 0, 0].long()).last_hidden_state
        error[implementation] = float((bert(ids, attention_mask=keep).last_hidden_state - right).abs().max())
        states = [llama(tokens, attention_mask=earlier).last_hidden_state[:, :-1] for tokens in (ids, changed)]
        future[implementation] = float((states[0] - states[1]).abs().max())
        print(implementation, "- BERT, one token hidden: largest difference from the mask for padding:", error[implementation])
        print(implementation, "- Llama: largest change of earlier tokens if the last token is another one:", future[implementation])
    first = bert(ids, attention_mask=keep, output_attentions=True).attentions[0]
    plain = bert(ids, output_attentions=True).attentions[0]
    added = (plain.log() + keep.float()).softmax(-1)
share = first[..., HIDDEN].mean()
print("eager - mean weight on the hidden token:", float(share), "without a mask:", float(plain[..., HIDDEN].mean()))
print("eager - largest difference from weights whose scores got 0 or 1 added:", float((first - added).abs().max()))
assert error["sdpa"] < 1e-5 and future["sdpa"] < 1e-5, "the behaviour has changed"
assert error["eager"] > 0.1 and future["eager"] > 0.1 and share > 0.01, "the behaviour has changed"
assert (first - added).abs().max() < 1e-5, "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/edges.py" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}

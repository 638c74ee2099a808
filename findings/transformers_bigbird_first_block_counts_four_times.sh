#!/usr/bin/env bash
# What one would guess: in BigBird's sparse attention a token sees its window, the first and the last block and a few
# random blocks, each of them once, in evaluation as in training, and the returned maps are the weights that were used.
# Found in transformers 5.23.0: in evaluation no block is random; the first block takes the places of the random ones, so
# with three of them, the default, its tokens count four times. With equal scores, a token in the middle of the text
# gives the first block 0.5 of its weight instead of 0.125. The returned map shows 0.125, so that its rows add up to
# 0.625; in training they add up to 1. No line in the log says so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 transformers==5.23.0 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/blocks.py" <<'PYTHON'
import logging

import torch
import transformers
from transformers import BigBirdConfig, BigBirdModel

BLOCK, BLOCKS, MIDDLE = 8, 12, 6
TOKENS = BLOCK * BLOCKS
said, mixed = [], []
torch.manual_seed(0)
configuration = BigBirdConfig(
    vocab_size=80,
    hidden_size=TOKENS,
    num_hidden_layers=1,
    num_attention_heads=1,
    intermediate_size=32,
    block_size=BLOCK,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
model = BigBirdModel(configuration)
attention = model.encoder.layer[0].attention.self
# Without queries all scores are equal. One-hot states make the mixture of the values the weights that were used.
attention.register_forward_pre_hook(lambda module, arguments: (torch.eye(TOKENS)[None], *arguments[1:]))
attention.register_forward_hook(lambda module, arguments, output: mixed.append(output[0][0]))
handler = logging.Handler()
handler.emit = said.append
logging.getLogger("transformers").addHandler(handler)
ids = torch.randint(3, 64, (1, TOKENS))
weights = {}
with torch.no_grad():
    for part in (attention.query.weight, attention.query.bias, attention.value.bias):
        part.zero_()
    attention.value.weight.copy_(torch.eye(TOKENS))
    for mode in ("training", "evaluation"):
        maps = model.train(mode == "training")(ids, output_attentions=True).attentions[0][0, 0]
        weights[mode] = [one[MIDDLE * BLOCK].view(BLOCKS, BLOCK).sum(-1) for one in (mixed[-1], maps)]

print("transformers", transformers.__version__, "torch", torch.__version__, "random blocks", configuration.num_random_blocks)
for mode, (used, shown) in weights.items():
    print(f"{mode}: weight of each block for a token of block {MIDDLE}, used:", [round(value, 3) for value in used.tolist()])
    print(f"{mode}: in the returned map:", [round(value, 3) for value in shown.tolist()], "sum", round(float(shown.sum()), 3))
print("lines in the log:", len(said))
once = torch.zeros(BLOCKS)
once[[0, MIDDLE - 1, MIDDLE, MIDDLE + 1, BLOCKS - 1]] = 1 / 8
four_times = once.clone()
four_times[0] = 4 / 8
assert torch.allclose(weights["training"][0], weights["training"][1]), "the behaviour has changed"
assert int((weights["training"][0] > 0.12).sum()) == 8 and abs(weights["training"][0][0] - 1 / 8) < 1e-5, "the behaviour has changed"
assert torch.allclose(weights["evaluation"][0], four_times), "the behaviour has changed"
assert torch.allclose(weights["evaluation"][1], once) and not said, "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/blocks.py" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}

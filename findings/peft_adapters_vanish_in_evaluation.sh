#!/usr/bin/env bash
# What one would guess: an adapter that LoRA has trained inside torch's own nn.TransformerEncoder works in evaluation as
# it does in training, so that without dropout model.eval() changes no answer; and "all-linear" adapts attention too.
# Found in peft 0.21.2 with torch 2.13.0: in evaluation, the encoder takes its fast path, which reads the weights of the
# linear layers and never calls them. An adapted layer gives it the frozen weights, so all adapters are left out, to the
# last bit and without a warning: 100 % of the answers are right in training mode, 37.5 % in evaluation mode, as with
# the adapters switched off, and 100 % once they are merged. The output layer of attention is never called in training
# either, so its adapters stay at zero.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 transformers==5.23.0 peft==0.21.2 \
  2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/adapters.py" <<'PYTHON'
import peft
import torch
from torch import nn

TEXTS, TOKENS, WIDTH = 256, 8, 32
torch.manual_seed(0)
texts = torch.randn(TEXTS, TOKENS, WIDTH)
answers = (texts[:, 0, 0] > texts[:, 1, 0]).long()
layer = nn.TransformerEncoderLayer(WIDTH, nhead=4, dim_feedforward=64, dropout=0.0, batch_first=True)
encoder = nn.TransformerEncoder(layer, num_layers=2)
model = peft.get_peft_model(encoder, peft.LoraConfig(r=8, target_modules="all-linear"))
optimizer = torch.optim.Adam([weight for weight in model.parameters() if weight.requires_grad], lr=0.01)
right = {}


def answered(name, asked):
    with torch.no_grad():
        states = asked(texts)
    right[name] = float((states[:, 0, :2].argmax(-1) == answers).float().mean())
    print(f"right answers {name}: {right[name]:.3f}")
    return states


print("peft", peft.__version__, "torch", torch.__version__)
for _ in range(150):
    optimizer.zero_grad()
    nn.functional.cross_entropy(3 * model(texts)[:, 0, :2], answers).backward()
    optimizer.step()
trained = answered("in training mode", model.train())
evaluated = answered("in evaluation mode", model.eval())
with model.disable_adapter():
    switched_off = answered("in evaluation mode, adapters switched off", model)
largest = {name: float(weight.detach().abs().max()) for name, weight in model.named_parameters() if "lora_B" in name}
attention = [value for name, value in largest.items() if "out_proj" in name]
others = [value for name, value in largest.items() if "out_proj" not in name]
merged = answered("in evaluation mode, adapters merged", model.merge_and_unload().eval())
print("largest weight of the trained half of the adapters: in attention", max(attention), "elsewhere", max(others))
assert torch.equal(evaluated, switched_off), "the behaviour has changed"
assert right["in training mode"] > 0.95 and right["in evaluation mode"] < 0.7, "the behaviour has changed"
assert (merged - trained).abs().max() < 1e-3, "the behaviour has changed"
assert len(attention) == 2 and max(attention) == 0 and min(others) > 0.01, "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/adapters.py" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}

#!/usr/bin/env bash
# What one would guess: autocast chooses the type that a layer computes in, and the layer reads its weights at each
# call, so a head whose output weights are set to zero is knocked out from the next pass on, wherever the block of
# autocast begins. Found in torch 2.13.0: autocast keeps the bfloat16 copy that it makes of a weight until the block
# ends, even if the weight changes meanwhile. A loop over heads inside one block finds an effect of exactly 0 for each
# of the 8 heads, where a block for each pass finds 0.3 to 0.6. So it is with torch.no_grad() and without;
# torch.inference_mode() and cache_enabled=False give the right effects. A training inside one block learns little: the
# loss ends at 1.4 instead of 0.004. No warning says so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/block.py" <<'PYTHON'
import contextlib
import warnings

import torch
from torch import nn

LAYERS, HEADS, WIDTH, TEXTS, TOKENS, STEPS = 2, 4, 32, 64, 8, 100
SIZE = WIDTH // HEADS
modes = {"no_grad": torch.no_grad, "gradients": torch.enable_grad, "inference_mode": torch.inference_mode}
torch.set_num_threads(1)
torch.manual_seed(0)
texts, answers = torch.randn(TEXTS, TOKENS, WIDTH), torch.randint(0, 4, (TEXTS,))


def cast(**options):
    return torch.autocast("cpu", dtype=torch.bfloat16, **options)


def made():
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, dim_feedforward=64, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)


def effects(model, around, each):
    with around:
        found = []
        for layer in model.layers:
            weight = layer.self_attn.out_proj.weight.data
            for head in range(HEADS):
                part = weight[:, head * SIZE : (head + 1) * SIZE]
                states = []
                for factor in (1, 0):
                    before = part.clone()
                    part.mul_(factor)
                    with each():
                        states.append(model(texts).float())
                    part.copy_(before)
                found.append(round(float((states[0] - states[1]).detach().abs().max()), 3))
        return found


def losses(around, each):
    model, found = made(), []
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    with around:
        for _ in range(STEPS):
            with each():
                loss = nn.functional.cross_entropy(model(texts)[:, 0, :4].float(), answers)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(round(float(loss.detach()), 3))
    return found


print("torch", torch.__version__)
warnings.simplefilter("error")
same, apart, uncached = {}, {}, {}
for name, mode in modes.items():
    with mode():
        model = made().eval()
        same[name] = effects(model, cast(), contextlib.nullcontext)
        apart[name] = effects(model, contextlib.nullcontext(), cast)
        uncached[name] = effects(model, cast(cache_enabled=False), contextlib.nullcontext)
    print(f"{name}: effects of the heads, one block {same[name]}, a block for each pass {apart[name]},", end=" ")
    print("one block with cache_enabled=False equal to it:", uncached[name] == apart[name])
inside, outside = losses(cast(), contextlib.nullcontext), losses(contextlib.nullcontext(), cast)
print("loss of a training, first and last step: one block", inside[:: STEPS - 1], "a block for each pass", outside[:: STEPS - 1])
for name in modes:
    assert uncached[name] == apart[name] and min(apart[name]) > 0.1, "the behaviour has changed"
    assert same[name] == (apart[name] if name == "inference_mode" else [0.0] * LAYERS * HEADS), "the behaviour has changed"
assert inside[0] == outside[0] and inside[-1] > 1 and outside[-1] < 0.1, "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/block.py" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}

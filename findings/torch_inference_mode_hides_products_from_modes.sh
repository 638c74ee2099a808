#!/usr/bin/env bash
# What one would guess: torch.inference_mode() is a faster torch.no_grad(), so a dispatch mode that sees every operation
# in the one sees the same operations in the other. Found in torch 2.13.0: without gradients, a linear layer, "@" and a
# softmax reach the mode as "addmm", "bmm" and "_softmax"; in inference mode they come undivided, as "linear", "matmul"
# and "softmax". A mode that knocks out a head by its softmax then changes nothing: the effect of each of the 8 heads is
# exactly 0 instead of 0.17 to 0.32, and a mode that counts products finds none. A mode that calls function.decompose
# first gives the right effects, as torch's own FlopCounterMode counts the right number. No warning says so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/modes.py" <<'PYTHON'
import warnings
from collections import Counter

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

LAYERS, HEADS, WIDTH = 2, 4, 32
SIZE = WIDTH // HEADS


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.parts, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, states):
        parts = self.parts(self.norm(states)).chunk(3, dim=-1)
        query, key, value = (part.unflatten(-1, (HEADS, SIZE)).transpose(1, 2) for part in parts)
        weights = torch.softmax(query @ key.transpose(2, 3) / SIZE**0.5, dim=-1)
        return states + self.out((weights @ value).transpose(1, 2).flatten(2))


class Knockout(TorchDispatchMode):
    def __init__(self, layer, head, divides=False):
        super().__init__()
        self.layer, self.head, self.divides, self.seen = layer, head, divides, Counter()

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        if self.divides:
            with self:
                result = function.decompose(*arguments, **(options or {}))
            if result is not NotImplemented:
                return result
        name = function.overloadpacket.__name__
        self.seen[name] += 1
        result = function(*arguments, **(options or {}))
        if name == "_softmax" and self.seen[name] == self.layer + 1:
            result[:, self.head] = 0
        return result


def effects(divides):
    states, found = model(texts), []
    for layer in range(LAYERS):
        for head in range(HEADS):
            with Knockout(layer, head, divides) as mode:
                found.append(round(float((model(texts) - states).abs().max()), 3))
    products = {name: mode.seen[name] for name in ("linear", "matmul", "softmax", "addmm", "bmm", "_softmax")}
    with FlopCounterMode(display=False) as counter:
        model(texts)
    return found, products, counter.get_total_flops()


print("torch", torch.__version__)
warnings.simplefilter("error")
torch.set_num_threads(1)
torch.manual_seed(0)
model, texts = nn.Sequential(*(Attention() for _ in range(LAYERS))).eval(), torch.randn(2, 6, WIDTH)
found = {}
for kind in (torch.no_grad, torch.inference_mode):
    for divides in (False, True):
        with kind():
            found[kind, divides] = effects(divides)
        name = f"{kind.__name__}{', with decompose' * divides}"
        print(f"{name}: effects of the heads {found[kind, divides][0]}, operations {found[kind, divides][1]}")
print("operations by FlopCounterMode:", [one[2] for one in found.values()])
right = found[torch.no_grad, False]
assert min(right[0]) > 0.05 and right[1]["_softmax"] == LAYERS, "the behaviour has changed"
assert found[torch.no_grad, True] == found[torch.inference_mode, True] == right, "the behaviour has changed"
hidden = found[torch.inference_mode, False]
assert hidden[0] == [0.0] * LAYERS * HEADS and hidden[2] == right[2], "the behaviour has changed"
assert not hidden[1]["_softmax"] + hidden[1]["bmm"] + hidden[1]["addmm"], "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/modes.py" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}

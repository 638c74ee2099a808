#!/usr/bin/env bash
# What one would guess: momentum carries a weight on for a while once its gradient is 0, and fades, with 0.95 by half in
# 14 steps; so an adapter of one language that a gate switches off stays about where it was trained, with Muon as with
# SGD and AdamW. Found in torch 2.13.0: Muon makes the momentum orthogonal in each step, which gives it nearly its full
# size again even when it has shrunk to a norm of 1e-8. Without weight decay, SGD and AdamW walk on for less than 20
# times the length of their first step without a gradient, and the adapter is as good as before. Muon walks about 350
# times that length, in as many steps of at least half that length, while the other language is trained: the adapter's
# loss rises from 0.016 to 0.131. With a gradient of None, as for a module that is not called, the adapter stays with
# each optimizer. No warning says so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6 \
  2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/walk.py" <<'PYTHON'
import warnings

import torch
from torch.optim import SGD, AdamW, Muon

TEXTS, WIDTH, FIRST, SECOND = 64, 32, 600, 600  # steps of the first language, then of the second
OPTIMIZERS = {
    "SGD": lambda weights: SGD(weights, lr=1.0, momentum=0.95),
    "AdamW": lambda weights: AdamW(weights, lr=0.003, weight_decay=0),
    "Muon": lambda weights: Muon(weights, lr=0.003, weight_decay=0, momentum=0.95),
}


def train(build, gated):
    """Return the first adapter's loss before and after the second language, its steps' lengths and its momentum."""
    torch.manual_seed(0)
    texts, targets = torch.randn(TEXTS, WIDTH), torch.randn(2, WIDTH, WIDTH) / WIDTH**0.5
    adapters = torch.nn.ModuleList(torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in targets)
    optimizer, weight, lengths = build(adapters.parameters()), adapters[0].weight, []
    norms = []

    def loss(language):
        if gated:  # all adapters are called, and those of other languages are multiplied by 0
            output = sum(gate * adapter(texts) for gate, adapter in zip(torch.eye(2)[language], adapters))
        else:
            output = adapters[language](texts)
        return (output - texts @ targets[language].T).square().mean()

    for step in range(FIRST + SECOND):
        language = int(step >= FIRST)
        if step == FIRST:
            before = loss(0).item()
        optimizer.zero_grad()
        loss(language).backward()
        start = weight.detach().clone()
        optimizer.step()
        if language:
            assert weight.grad is None or not weight.grad.any()
            lengths.append(float((weight - start).detach().norm()))
            norms.append(float(optimizer.state[weight].get("momentum_buffer", torch.zeros(())).norm()))
    return before, loss(0).item(), lengths, norms


print("torch", torch.__version__)
walk, full, rise, share, norm = {}, {}, {}, {}, {}
with warnings.catch_warnings():
    warnings.simplefilter("error")
    for name, build in OPTIMIZERS.items():
        before, after, lengths, norms = train(build, gated=True)
        walk[name], rise[name] = sum(lengths) / lengths[0], after - before
        full[name] = sum(length > lengths[0] / 2 for length in lengths)
        print(f"{name}: loss {before:.6f}, after the other language {after:.6f};", end=" ")
        print(f"way {walk[name]:.0f} times its first step, {full[name]} steps of at least half its length")
        share[name], norm[name] = lengths[300] / lengths[0], norms[300]
        print(f"  after 300 steps: length {share[name]:.2f} of the first, norm of the momentum {norm[name]:.1e}")
        before, after, lengths, _ = train(build, gated=False)
        print(f"  without a gate (gradient None): loss {before:.6f}, then {after:.6f}, way {sum(lengths)}")
        assert before == after and not any(lengths), "the behaviour has changed"
for name in ("SGD", "AdamW"):
    assert walk[name] < 20 and full[name] < 20 and rise[name] < 1e-5, "the behaviour has changed"
assert walk["Muon"] > 300 and full["Muon"] > 300 and rise["Muon"] > 0.08, "the behaviour has changed"
assert share["Muon"] > 0.6 and norm["Muon"] < 2e-8, "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/walk.py" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}

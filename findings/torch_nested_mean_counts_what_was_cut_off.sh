#!/usr/bin/env bash
# What one would guess: torch.nested.narrow makes a jagged tensor of the part of each row that it is given, so it turns
# the losses of a padded batch into those of its words, and from there on padding is gone. Found in torch 2.13.0:
# "unbind" and "numel" show the words alone, and a mean of each sentence raises an error, since it is not supported
# "with holes". The mean of all words raises none and is that of the padded batch. If each of 13 words has a loss of 1
# and each of 11 padded tokens one of 9, the sum is 112 instead of 13, the largest loss 9, and the mean 4.67 instead of
# 1. Each padded token gets the same gradient as a word, so a training fits the padding, and this gradient is that of
# another number: a thirteenth, while the mean divides by 24. A jagged tensor made of the cut rows gives 1, and so does
# contiguous(), but without gradients. No warning says so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6 \
  2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/padding.py" <<'PYTHON'
import warnings

import torch

LENGTHS, WORD, PADDING = torch.tensor([4, 6, 3]), 1.0, 9.0
losses = torch.full((3, 8), PADDING)
for row, length in zip(losses, LENGTHS):
    row[:length] = WORD
padded, words = losses.numel(), int(LENGTHS.sum())


def gradient(reduce):
    leaf = losses.clone().requires_grad_()
    reduce(leaf).backward()
    return sorted(set(leaf.grad.flatten().tolist()))


def narrowed(batch):
    return torch.nested.narrow(batch, 1, 0, LENGTHS, layout=torch.jagged)


def cut(batch):
    return torch.nested.as_nested_tensor([row[:length] for row, length in zip(batch, LENGTHS)], layout=torch.jagged)


print("torch", torch.__version__)
with warnings.catch_warnings():
    warnings.simplefilter("error")
    jagged = narrowed(losses)
    print("narrow keeps", [row.tolist() for row in jagged.unbind()], "numel", jagged.numel())
    print(f"sum {jagged.sum():.2f} mean {jagged.mean():.2f} largest {jagged.amax():.2f}")
    print(f"mean of the rows cut first {cut(losses).mean():.2f}, after contiguous() {jagged.contiguous().mean():.2f}")
    gradients = {way.__name__: gradient(lambda batch: way(batch).mean()) for way in (narrowed, cut)}
    print("gradients of the mean:", gradients, "a thirteenth:", 1 / words)
    refused = {}
    for name, call in {
        "mean of each sentence": lambda: jagged.mean(1),
        "gradient through contiguous()": lambda: gradient(lambda batch: narrowed(batch).contiguous().mean()),
    }.items():
        try:
            call()
        except RuntimeError as error:
            refused[name] = str(error)
print("errors:", refused)
kept = [row.tolist() for row in jagged.unbind()]
assert kept == [[WORD] * length for length in LENGTHS.tolist()] and jagged.numel() == words, "the behaviour has changed"
assert len(refused) == 2 and "with holes" in refused["mean of each sentence"], "the behaviour has changed"
assert float(jagged.sum()) == float(losses.sum()) == 112, "the behaviour has changed"
assert float(jagged.amax()) == PADDING, "the behaviour has changed"
assert abs(float(jagged.mean()) - 112 / padded) < 1e-5, "the behaviour has changed"
assert float(cut(losses).mean()) == float(jagged.contiguous().mean()) == WORD, "the behaviour has changed"
(everywhere,) = gradients["narrowed"]  # one number for words and padding
assert abs(everywhere - 1 / words) < 1e-6 and gradients["cut"][0] == 0, "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/padding.py" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}

#!/usr/bin/env bash
# What one would guess: a float mask of nn.TransformerEncoder is added to the scores of attention, in evaluation as in
# training, so a bias that grows with distance, as in ALiBi, or that is learnt for each distance works in both. Found in
# torch 2.13.0: with model.eval() and without gradients, the encoder takes its fast path, which makes the mask boolean:
# every value but 0 hides its token. With such a bias, each token sees itself alone, to the last bit as with a boolean
# mask of all others. A model that repeats the word two places before is right in 100 % of the places in training mode
# and in 11 % in evaluation mode, where chance is 12.5 %; in evaluation mode with gradients, or after
# torch.backends.mha.set_fastpath_enabled(False), it is right again. A bias without a 0 makes all outputs NaN. A soft
# bias on padding hides it. nn.MultiheadAttention adds the mask in both modes. No warning says so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/bias.py" <<'PYTHON'
import warnings

import torch
from torch import nn

WORDS, TOKENS, WIDTH, HEADS = 8, 10, 32, 4
torch.set_num_threads(1)
torch.manual_seed(0)
distance = (torch.arange(TOKENS)[:, None] - torch.arange(TOKENS)[None]).abs().float()
slopes = 2.0 ** -torch.arange(1, HEADS + 1)
alibi = -slopes[:, None, None] * distance
texts = torch.randint(0, WORDS, (64, TOKENS), generator=torch.Generator().manual_seed(1))


class Reader(nn.Module):
    """Encoder without positions but the bias, which is learnt for each distance and head and is 0 for the own place."""

    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(HEADS, 2 * TOKENS - 1))
        self.words = nn.Embedding(WORDS, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.answer = nn.Linear(WIDTH, WORDS)

    def forward(self, ids):
        places = torch.arange(TOKENS)
        apart = places[None] - places[:, None]
        bias = self.bias[:, apart + TOKENS - 1] * (apart != 0)
        return self.answer(self.encoder(self.words(ids), mask=bias.repeat(len(ids), 1, 1)))


def both(module, *tensors, **settings):
    """Outputs in training and in evaluation mode, without gradients."""
    with torch.no_grad():
        return [module.train(mode)(*tensors, **settings) for mode in (True, False)]


def apart(first, second):
    return float((first - second).abs().max())


print("torch", torch.__version__)
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 64, dropout=0.0, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2)
    states = torch.randn(3, TOKENS, WIDTH)
    masks = {
        "no mask": None,
        "boolean, at most 2 away": distance > 2,
        "0 and -inf, at most 2 away": torch.zeros(TOKENS, TOKENS).masked_fill(distance > 2, float("-inf")),
        "-0.1 for each place": -0.1 * distance,
        "slopes of ALiBi": alibi.repeat(3, 1, 1),
    }
    alone = both(encoder, states, mask=distance > 0)[1]
    for name, mask in masks.items():
        training, evaluation = both(encoder, states, mask=mask)
        encoder.eval()
        gap, with_gradients = apart(training, evaluation), apart(training, encoder(states, mask=mask).detach())
        same = torch.equal(evaluation, alone)
        print(f"{name}: evaluation is {gap:.6f} from training, {with_gradients:.6f} with gradients;", end=" ")
        print("equal to attention to oneself alone:", same)
        soft = name in ("-0.1 for each place", "slopes of ALiBi")
        assert with_gradients < 1e-4 and same == soft and (gap > 0.1) == soft, "the behaviour has changed"
        assert soft or gap < 1e-4, "the behaviour has changed"
    training, evaluation = both(encoder, states, mask=1 - 0.1 * distance.clamp(max=9))
    empty = [bool(one.isnan().all()) for one in (training, evaluation)]
    print("a bias without a 0: outputs are NaN in training and evaluation:", *empty)
    assert empty == [False, True], "the behaviour has changed"
    attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
    training, evaluation = both(attention, states, states, states, attn_mask=alibi.repeat(3, 1, 1))
    print(f"nn.MultiheadAttention, slopes of ALiBi: evaluation is {apart(training[0], evaluation[0]):.6f} from training")
    assert apart(training[0], evaluation[0]) < 1e-4, "the behaviour has changed"
print("warnings:", len(warned))
assert not warned, "the behaviour has changed"
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # padding has a warning of its own, about nested tensors
    soft = torch.zeros(3, TOKENS)
    soft[1:, -3:] = -1.0
    training, evaluation = both(encoder, states, src_key_padding_mask=soft)
    hidden = both(encoder, states, src_key_padding_mask=soft < 0)[1]
gaps = apart(training[1:, :-3], evaluation[1:, :-3]), apart(hidden[:, :-3], evaluation[:, :-3])
print(f"padding with a bias of -1: evaluation is {gaps[0]:.6f} from training, {gaps[1]:.6f} from hidden padding")
assert gaps[0] > 0.1 and gaps[1] == 0, "the behaviour has changed"

torch.manual_seed(0)
model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
generator = torch.Generator().manual_seed(2)
for _ in range(600):
    batch = torch.randint(0, WORDS, (64, TOKENS), generator=generator)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(batch)[:, 2:].transpose(1, 2), batch[:, :-2]).backward()
    optimizer.step()


def right(logits):
    return float((logits[:, 2:].argmax(-1) == texts[:, :-2]).float().mean())


first, second = (right(logits) for logits in both(model, texts))
third = right(model.eval()(texts).detach())
torch.backends.mha.set_fastpath_enabled(False)
fourth = right(both(model, texts)[1])
print(f"right answers: training {first:.3f}, evaluation {second:.3f}, evaluation with gradients {third:.3f},", end=" ")
print(f"evaluation without the fast path {fourth:.3f}; by chance {1 / WORDS}")
assert first == third == fourth and first > 0.95 and second < 0.3, "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/bias.py" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}

#!/usr/bin/env bash
# What one would guess: a model may draw random numbers in a training step but sets no seed, so a loop that draws its
# sentences with NumPy, seeded once, gets new ones at each step. Found in transformers 5.23.0: in training, each layer of
# BigBird with sparse attention sets the seed of NumPy's global generator to the number of the layer, so every step
# leaves the generator in one and the same state. From the second step on, the same sentences are drawn: 20 steps that
# draw 4 of 64 sentences each see 7 different ones, but 49 with full attention. Whatever seed the user set, numbers drawn
# after a step are the same, by scipy and pandas too, so that repeated runs look as if the seed made no difference. No
# warning or line in the log says so. In evaluation mode, nothing is seeded.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 transformers==5.23.0 numpy==2.4.6 \
  scipy==1.17.1 pandas==3.1.1 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/draws.py" <<'PYTHON'
import logging
import warnings

import numpy as np
import pandas as pd
import torch
import transformers
from scipy.stats import norm
from transformers import BigBirdConfig, BigBirdModel

SENTENCES, TOKENS, STEPS, BATCH = 64, 80, 20, 4
SIZE = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
SPARSE = {"block_size": 8, "num_random_blocks": 2, "max_position_embeddings": 256, "sep_token_id": 2}
print("transformers", transformers.__version__, "numpy", np.__version__)
said = []
handler = logging.Handler()
handler.emit = said.append
logging.getLogger("transformers").addHandler(handler)
torch.set_num_threads(1)
torch.manual_seed(0)
texts = torch.randint(3, SIZE["vocab_size"], (SENTENCES, TOKENS))
rows = pd.DataFrame({"sentence": range(SENTENCES)})


def train(kind, seed, training=True):
    torch.manual_seed(0)
    model = BigBirdModel(BigBirdConfig(**SIZE, **SPARSE, attention_type=kind)).train(training)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    np.random.seed(seed)
    drawn = []
    for _ in range(STEPS):
        chosen = np.random.choice(SENTENCES, BATCH, replace=False)
        drawn.append(sorted(chosen.tolist()))
        optimizer.zero_grad()
        model(texts[chosen]).last_hidden_state.mean().backward()
        optimizer.step()
    others = norm.rvs(size=3).tolist(), rows.sample(3)["sentence"].tolist()
    return drawn, others


runs = {}
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    for name, options in {
        "sparse attention, seed 1": ("block_sparse", 1),
        "sparse attention, seed 2": ("block_sparse", 2),
        "full attention, seed 1": ("original_full", 1),
        "sparse attention, seed 1, evaluation mode": ("block_sparse", 1, False),
    }.items():
        runs[name] = train(*options)
seen = {}
for name, (drawn, others) in runs.items():
    seen[name] = len({sentence for step in drawn for sentence in step})
    print(f"{name}: sentences drawn at steps 0, 1, 2, {STEPS - 1}: {drawn[0]} {drawn[1]} {drawn[2]} {drawn[-1]}")
    print(f"  {seen[name]} of {SENTENCES} seen in {STEPS} steps; drawn afterwards by scipy {others[0]} and pandas {others[1]}")
print("warnings and lines in the log:", len(warned) + len(said))
(one, after_one), (two, after_two), (full, after_full), (evaluated, _) = runs.values()
assert one[0] != two[0] and one[0] == full[0] == evaluated[0]
assert one[1:] == [one[1]] * (STEPS - 1) == two[1:], "the behaviour has changed"
assert after_one == after_two != after_full, "the behaviour has changed"
assert evaluated == full and len({tuple(step) for step in full}) == STEPS, "the behaviour has changed"
assert list(seen.values()) == [7, 7, 49, 49], "the behaviour has changed"
assert not warned and not said, "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/draws.py" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}

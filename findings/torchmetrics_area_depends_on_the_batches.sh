#!/usr/bin/env bash
# What one would guess: the area under the ROC curve depends on the order of the scores alone, so torchmetrics gives the
# same for logits and for probabilities, and whether sentences come at once, in batches or one by one. Found in
# torchmetrics 1.9.0: each update looks at its own scores; if all lie between 0 and 1, they are kept, else the sigmoid
# of each is taken, and the area is computed from the mixture. If each "she" has a logit from 0.01 to 0.3 and each "he"
# one from -0.3 to -0.01, the area is 1. If the sentences come one by one, or sorted by pronoun in batches of 10, it is
# 0, for each "she" lies below each "he". Average precision and accuracy are wrong too, and a last batch of one sentence
# is enough to move all three. With the sigmoid taken before, nothing depends on the batches. No warning says so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 torchmetrics==1.9.0 numpy==2.4.6 \
  2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/area.py" <<'PYTHON'
import warnings

import torch
import torchmetrics
from torchmetrics.classification import BinaryAccuracy, BinaryAUROC, BinaryAveragePrecision

SENTENCES = 60
METRICS = (BinaryAUROC, BinaryAveragePrecision, BinaryAccuracy)
she, he = torch.linspace(0.01, 0.3, SENTENCES // 2), torch.linspace(-0.3, -0.01, SENTENCES // 2)
logits, answers = torch.cat([she, he]), torch.cat([torch.ones(SENTENCES // 2), torch.zeros(SENTENCES // 2)]).long()
by_pronoun = torch.arange(SENTENCES)
in_turn = by_pronoun.view(2, -1).T.flatten()
orders = {
    "at once": [in_turn],
    "in turn, batches of 10": in_turn.split(10),
    "in turn, batches of 59 and 1": in_turn.roll(1).split(SENTENCES - 1),
    "by pronoun, batches of 10": by_pronoun.split(10),
    "one by one": by_pronoun.split(1),
}


def measured(scores, batches):
    found = []
    for kind in METRICS:
        metric = kind()
        for batch in batches:
            metric.update(scores[batch], answers[batch])
        found.append(round(float(metric.compute()), 3))
    return found


print("torchmetrics", torchmetrics.__version__, "torch", torch.__version__)
print("values of", [kind.__name__ for kind in METRICS])
found = {}
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    for name, batches in orders.items():
        found[name] = measured(logits, batches)
        probabilities = measured(logits.sigmoid(), batches)
        print(f"{name}: of logits {found[name]}, of their sigmoid {probabilities}")
        assert probabilities == [1, 1, 1], "the behaviour has changed"
print("warnings:", len(warned))
assert found["at once"] == found["in turn, batches of 10"] == [1, 1, 1], "the behaviour has changed"
assert found["by pronoun, batches of 10"] == found["one by one"], "the behaviour has changed"
assert found["one by one"][0] == 0 and found["one by one"][2] == 0.5 and not warned, "the behaviour has changed"
for name in ("one by one", "in turn, batches of 59 and 1"):
    assert all(value < 1 for value in found[name]), "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/area.py" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}

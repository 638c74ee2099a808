#!/usr/bin/env bash
# What one would guess: a MetricCollection computes once what its metrics have in common, which it can see by their
# class and settings, so each metric is what it is alone, in whatever order the sentences come. Found in torchmetrics
# 1.9.0: after the first "update", metrics whose counts are equal are joined for good, whatever their settings, and from
# then on all but one of them are copies. If the corpus begins with pronouns that have an antecedent, the accuracy of
# all answers and the one with ignore_index=0, which leaves out "none of them", have equal counts after the first batch.
# Both are then 0.944, where the accuracy of all answers is 0.781. Precisions at thresholds of 0.5 and 0.9 are joined
# too if the first batch has clear answers alone: both are 0.742, where the second is 0.861. In mixed order, with
# "forward" instead of "update", or with compute_groups=False, all are right. No warning says so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 torchmetrics==1.9.0 \
  numpy==2.4.6 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/collection.py" <<'PYTHON'
import warnings

import torch
import torchmetrics
from torchmetrics import MetricCollection
from torchmetrics.classification import BinaryPrecision, MulticlassAccuracy

CLASSES, BATCH = 4, 8  # "none of them" is class 0, the others are candidates


def accuracies():
    every = MulticlassAccuracy(CLASSES, average="micro")
    return {"every answer": every, "antecedents": MulticlassAccuracy(CLASSES, average="micro", ignore_index=0)}


def precisions():
    return {"from half": BinaryPrecision(threshold=0.5), "from nine tenths": BinaryPrecision(threshold=0.9)}


def measure(build, answers, gold, order, way):
    """Return the collection's results in one of three ways, and the number of its groups."""
    collection = MetricCollection(build(), compute_groups=way != "without groups")
    for batch in order.split(BATCH):
        (collection if way == "forward" else collection.update)(answers[batch], gold[batch])
    results = {name: round(float(value), 3) for name, value in collection.compute().items()}
    return results, len(collection.compute_groups)


def alone(build, answers, gold):
    return {name: round(float(metric(answers, gold)), 3) for name, metric in build().items()}


print("torchmetrics", torchmetrics.__version__, "torch", torch.__version__)
torch.manual_seed(0)
gold = torch.randint(0, CLASSES, (96,))
right = torch.rand(96) < torch.where(gold == 0, 0.3, 0.9)
answers = torch.where(right, gold, (gold + 1) % CLASSES)
resolved_first = torch.argsort((gold == 0).int(), stable=True)
torch.manual_seed(0)
she = torch.randint(0, 2, (200,))
scores = torch.sigmoid(2 * torch.randn(200) + 1.5 * (2 * she - 1))
clear_first = torch.argsort((scores - 0.5).abs(), descending=True)
cases = {
    "accuracy": (accuracies, answers, gold, resolved_first, {"every answer": 0.944, "antecedents": 0.944}),
    "precision": (precisions, scores, she, clear_first, {"from half": 0.742, "from nine tenths": 0.742}),
}
with warnings.catch_warnings():
    warnings.simplefilter("error")
    for name, (build, given, truth, sorted_order, expected) in cases.items():
        single, mixed = alone(build, given, truth), torch.arange(len(truth))
        print(f"{name}, each metric alone: {single}")
        for order_name, order in (("mixed", mixed), ("sorted", sorted_order)):
            for way in ("update", "forward", "without groups"):
                results, groups = measure(build, given, truth, order, way)
                print(f"  {order_name}, {way}: {results}, groups {groups}")
                wrong = order_name == "sorted" and way == "update"
                assert results == (expected if wrong else single), "the behaviour has changed"
        assert len(set(single.values())) == 2, "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/collection.py" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}

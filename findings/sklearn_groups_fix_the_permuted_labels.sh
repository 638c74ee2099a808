#!/usr/bin/env bash
# What one would guess: permutation_test_score uses "groups" to divide the data into folds, as cross_val_score does, and
# shuffles the labels of all sentences. So a probe that is right about every sentence is significant, and naming the
# documents as groups, as GroupKFold requires, is the careful way. Found in scikit-learn 1.9.1: labels are shuffled
# within each group only. If all sentences of a document have one label, or each sentence is a group of its own, nothing
# moves: the 200 shuffled accuracies are 1, as the probe's is, and p is 1. If 3 of 30 documents have both labels, the
# shuffled accuracies have a mean of 0.95, as if a probe could learn from noise. Without groups, with the same features
# and folds, their mean is 0.47 and p is 0.005. The docstring speaks of it; no warning does.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check scikit-learn==1.9.1 scipy==1.17.1 \
  numpy==2.4.6 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/probe.py" <<'PYTHON'
import warnings

import numpy as np
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, permutation_test_score

DOCUMENTS, SENTENCES = 30, 4
documents = np.repeat(np.arange(DOCUMENTS), SENTENCES)
by_document = documents % 2
mixed = by_document.copy()
mixed[: 3 * SENTENCES] = np.tile([0, 1], 3 * SENTENCES // 2)
folds = list(GroupKFold(5).split(documents, groups=documents))
cases = {
    "a label for each document, groups documents": (by_document, documents),
    "a label for each document, groups sentences": (by_document, np.arange(DOCUMENTS * SENTENCES)),
    "three documents with both labels, groups documents": (mixed, documents),
    "a label for each document, no groups": (by_document, None),
}
print("scikit-learn", sklearn.__version__)
results = {}
with warnings.catch_warnings():
    warnings.simplefilter("error")
    for name, (labels, groups) in cases.items():
        features = (labels + 0.1 * np.random.default_rng(0).normal(size=len(labels)))[:, None]
        score, shuffled, p = permutation_test_score(
            LogisticRegression(), features, labels, groups=groups, cv=folds, n_permutations=200, random_state=0
        )
        results[name] = (float(score), round(float(shuffled.mean()), 3), round(float(p), 3))
        print(f"{name}: accuracy {score}, mean accuracy of shuffled labels {shuffled.mean():.3f}, p {p:.3f}")
first, second, third, free = results.values()
assert first == second == (1, 1, 1), "the behaviour has changed"
assert third[1] > 0.9 and free[0] == 1 and 0.4 < free[1] < 0.6 and free[2] < 0.01, "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}

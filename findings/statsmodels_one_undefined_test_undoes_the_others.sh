#!/usr/bin/env bash
# What one would guess: if one of several tests has no p value, such as the correlation of a head that never attends to
# the antecedent, statsmodels' "multipletests" refuses it or corrects the others and leaves this one NaN; and its first
# result, which tests are rejected, agrees with its second, the corrected p values. Found in statsmodels 0.15.0: that
# holds for "holm" and "bonferroni". With "fdr_bh", "fdr_by" and "simes-hochberg", a single NaN makes all corrected p
# values NaN while the three clear heads are still marked as rejected; with "hommel" and "fdr_gbs", no head is rejected
# any more. No warning says so, and comparing the corrected p values with 0.05 finds no head at all.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check statsmodels==0.15.0 scipy==1.17.1 \
  numpy==2.4.6 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/heads.py" <<'PYTHON'
import warnings

import numpy as np
import scipy
import statsmodels
from scipy.stats import spearmanr
from statsmodels.stats.multitest import multipletests

HEADS, CLEAR, SENTENCES = 11, 3, 80
random = np.random.default_rng(0)
margin = random.normal(size=SENTENCES)  # how clearly the model answers each sentence
weights = random.normal(size=(HEADS, SENTENCES))
weights[:CLEAR] += margin
with warnings.catch_warnings(record=True):  # scipy does warn of the head whose weight is constant
    warnings.simplefilter("always")
    defined = np.array([spearmanr(weight, margin).pvalue for weight in weights])
    undefined = spearmanr(np.zeros(SENTENCES), margin).pvalue
assert np.isnan(undefined)
print("statsmodels", statsmodels.__version__, "scipy", scipy.__version__)
counts = {}
for method in ("bonferroni", "holm", "fdr_bh", "fdr_by", "simes-hochberg", "hommel", "fdr_gbs"):
    for name, values in (("defined", defined), ("one NaN", np.append(defined, undefined))):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            rejected, corrected, *_ = multipletests(values, alpha=0.05, method=method)
        counts[method, name] = (int(rejected.sum()), int((corrected < 0.05).sum()))
        print(f"{method}, {name}: {rejected.sum()} rejected, {(corrected < 0.05).sum()} corrected p values below 0.05,", end=" ")
        print(f"{np.isnan(corrected).sum()} of {len(corrected)} NaN")
expected = {method: (CLEAR, CLEAR) for method in ("bonferroni", "holm")}
expected |= {method: (CLEAR, 0) for method in ("fdr_bh", "fdr_by", "simes-hochberg")}
expected |= {method: (0, 0) for method in ("hommel", "fdr_gbs")}
for method, found in expected.items():
    assert counts[method, "defined"] == (CLEAR, CLEAR), "the behaviour has changed"
    assert counts[method, "one NaN"] == found, "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/heads.py" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}

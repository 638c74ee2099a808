#!/usr/bin/env bash
# What one would guess: a column of a JSON file with numbers and strings gives an error, as in earlier versions, or
# strings throughout, or keeps each value as it is. Found in datasets 5.2.0: the column becomes a feature called Json,
# and each string in it is read as JSON once more. One number among the answers of a file makes 7 of "07", True of
# "true", None of "null" and "NaN", a list of "[1]", and a name without quotation marks of '"Nan"'. So a line gives
# other values if another line changes. Lists that mix both are read so too, strings inside dictionaries are not. With
# features that make the column one of strings, the numbers become strings, and "she" gets quotation marks: '"she"', as
# does every string that is no JSON, the empty one too, while "07" has none. No warning is given.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check datasets==5.2.0 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/answers.py" <<'PYTHON'
import json
import sys
import tempfile
import warnings
from pathlib import Path

import datasets
from datasets import Features, Value, load_dataset

STRINGS = ["07", "true", "null", "[1]", '"Nan"', "NaN", "1e3", "she", ""]
READ = [7, True, None, [1], "Nan", None, 1000.0, "she", ""]
folder = Path(sys.argv[1])
datasets.disable_progress_bars()
print("datasets", datasets.__version__)


def loaded(values, features=None):
    path = folder / "answers.jsonl"
    path.write_text("".join(json.dumps({"answer": value}) + "\n" for value in values), encoding="utf-8")
    cache = tempfile.mkdtemp(dir=folder)
    table = load_dataset("json", data_files=str(path), split="train", cache_dir=cache, features=features)
    print(f"{table.features['answer']}: {json.dumps(values)} are read as {json.dumps(list(table['answer']))}")
    return list(table["answer"])


def same(read, expected):
    assert json.dumps(read) == json.dumps(expected), "the behaviour has changed"  # True and 1 are different


with warnings.catch_warnings():
    warnings.simplefilter("error")
    same(loaded(STRINGS), STRINGS)
    same(loaded([*STRINGS, 5]), [*READ, 5])
    same(loaded([["Anna", "07"], ["Emma", 5]]), [["Anna", 7], ["Emma", 5]])
    same(loaded([{"she": "07"}, {"he": 5}]), [{"she": "07"}, {"he": 5}])
    same(loaded([*STRINGS, 5], Features({"answer": Value("string")})), [*STRINGS[:-2], '"she"', '""', "5"])
PYTHON
HF_HUB_OFFLINE=1 HF_HOME="$folder" "$folder/venv/bin/python" "$folder/answers.py" "$folder" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}

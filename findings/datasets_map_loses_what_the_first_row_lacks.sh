#!/usr/bin/env bash
# What one would guess: a function that adds "antecedents" only to sentences with a pronoun gives a column with None for
# the others, as reading the same rows from JSON does, and surely so if "features" names that column. Found in datasets
# 5.2.0: "map" keeps only the keys that the first row has. If the first sentence has no pronoun, the answers of all
# other sentences are dropped; with "features", the column is there and is None in every row, so that a corpus loses all
# its labels without a warning. "from_list" and "from_generator" drop the key too; "map" of an iterable dataset keeps
# it, and so does "from_generator" with "features". With the rows in another order, "from_list" keeps the answers and
# "map" raises a KeyError.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check datasets==5.2.0 pyarrow==26.0.1 \
  pandas==3.1.1 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/rows.py" <<'PYTHON'
import json
import pathlib
import sys

import datasets
from datasets import Dataset, Features, List, Value

ROWS = [
    {"text": "Who won?"},
    {"text": "Anna said she won.", "antecedents": [0]},
    {"text": "小明说他赢了。", "antecedents": [0]},
]
FEATURES = Features({"text": Value("string"), "antecedents": List(Value("int64"))})
folder = pathlib.Path(sys.argv[1])
datasets.disable_progress_bars()
lines = folder / "rows.jsonl"
lines.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
texts = Dataset.from_dict({"text": [row["text"] for row in ROWS]})
row_of = {row["text"]: row for row in ROWS}


def annotate(row):
    return row_of[row["text"]]


def generated(**options):
    return Dataset.from_generator(lambda: iter(ROWS), cache_dir=str(folder), **options)


tables = {
    "JSON": datasets.load_dataset("json", data_files=str(lines), split="train", cache_dir=str(folder)),
    "iterable map": texts.to_iterable_dataset().map(annotate),
    "from_generator with features": generated(features=FEATURES),
    "from_list, other order": Dataset.from_list(ROWS[::-1]),
    "from_list": Dataset.from_list(ROWS),
    "from_generator": generated(),
    "map": texts.map(annotate),
    "map with features": texts.map(annotate, features=FEATURES),
}
print("datasets", datasets.__version__)
kept = {}
for name, table in tables.items():
    found = [row.get("antecedents", "no key") for row in table]
    kept[name] = sum(isinstance(answer, list) for answer in found)
    print(f"{name}: {found}")
try:
    texts.select([2, 1, 0]).map(annotate)
    error = None
except KeyError as raised:
    error = raised
print("map, other order:", repr(error))
assert [kept[name] for name in list(tables)[:4]] == [2, 2, 2, 2], "the behaviour has changed"
assert [kept[name] for name in list(tables)[4:]] == [0, 0, 0, 0] and error is not None, "the behaviour has changed"
assert tables["map with features"][:]["antecedents"] == [None, None, None], "the behaviour has changed"
PYTHON
HF_HUB_OFFLINE=1 HF_HOME="$folder/home" "$folder/venv/bin/python" "$folder/rows.py" "$folder" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}

#!/usr/bin/env bash
# What one would guess: "map" of a stored dataset is computed anew if the function that it is given has changed, for it
# finds earlier results by a hash of the function; with a function of the script itself, it is. Found in datasets 5.2.0:
# of a function that is imported from a module, only the name goes into the hash. A function that finds pronouns,
# corrected to find "they" and "it", finds 4 in 4 sentences if it is called, and 2 as before in "map" and "filter"; so
# does an object of an imported class, and a function of the script that calls the imported one. No warning or line in
# the log says so. load_from_cache_file=False gives the right ones.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check datasets==5.2.0 pyarrow==26.0.1 \
  pandas==3.1.1 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/again.py" <<'PYTHON'
import json
import pathlib
import subprocess
import sys

TEXTS = ("Anna said she won", "Tom thinks he lost", "The girls say they left", "The cup fell and it broke")
BEFORE, CORRECTED = ("he", "she"), ("he", "she", "it", "they")
FUNCTION = """
def marked(row):
    return {{"pronouns": [place for place, word in enumerate(row["text"].split()) if word in {words}]}}


def has_one(row):
    return bool(marked(row)["pronouns"])
"""
MODULE = """
class Marker:
    def __call__(self, row):
        return marked(row)
"""
SCRIPT = """
import json
import logging
import warnings

import datasets
import marking

said = []
handler = logging.Handler(logging.WARNING)
handler.emit = said.append
logging.getLogger("datasets").addHandler(handler)
datasets.disable_progress_bars()
table = datasets.load_dataset("json", data_files="rows.jsonl", split="train", cache_dir="cache")


def calling(row):
    return marking.marked(row)


def number(mapped):
    return sum(len(places) for places in mapped["pronouns"])


with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    found = {
        "function of the script": number(table.map(marked)),
        "filter, function of the script": len(table.filter(has_one)),
        "imported, called": sum(len(marking.marked(row)["pronouns"]) for row in table),
        "imported": number(table.map(marking.marked)),
        "filter, imported": len(table.filter(marking.has_one)),
        "object of an imported class": number(table.map(marking.Marker())),
        "function of the script that calls the imported one": number(table.map(calling)),
        "imported, load_from_cache_file=False": number(table.map(marking.marked, load_from_cache_file=False)),
    }
print(json.dumps([datasets.__version__, found, len(warned) + len(said)]))
"""
folder = pathlib.Path(sys.argv[1])
folder.mkdir()
(folder / "rows.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS), encoding="utf-8")


def run(words):
    function = FUNCTION.format(words=words)
    (folder / "marking.py").write_text(function + "\n" + MODULE, encoding="utf-8")
    (folder / "script.py").write_text(function + SCRIPT, encoding="utf-8")
    answer = subprocess.run([sys.executable, "-B", "script.py"], cwd=folder, check=True, capture_output=True, text=True)
    return json.loads(answer.stdout)


version, before, _ = run(BEFORE)
_, after, messages = run(CORRECTED)
print("datasets", version)
for name, number in before.items():
    print(f"{name}: {number} pronouns at first, {after[name]} after the correction")
print("warnings and lines in the log:", messages)
assert set(before.values()) == {2} and messages == 0, "the behaviour has changed"
assert list(after.values()) == [4, 4, 4, 2, 2, 2, 2, 4], "the behaviour has changed"
PYTHON
HF_HUB_OFFLINE=1 HF_HOME="$folder/home" "$folder/venv/bin/python" "$folder/again.py" "$folder/work" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}

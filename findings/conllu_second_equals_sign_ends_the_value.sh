#!/usr/bin/env bash
# What one would guess: the package conllu splits each item of the column MISC at its first "=", since values hold what
# annotators like, as do the values of comments, and serialize() writes back what was read. Found in conllu 6.0.0: a
# value ends before its second "=", and the rest is lost, while "=" is also the sign with which glosses join their
# parts: of "Gloss=3SG=PST", "3SG" remains, and of a link into a dictionary all but the word. An empty value comes back
# as "_". Neither an error nor a warning says so, and the file that is written is valid. A comment keeps all its signs.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check conllu==6.0.0 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/misc.py" <<'PYTHON'
import warnings
from importlib.metadata import version

import conllu

MISC = {  # column as written: what is read
    "Gloss=3SG=PST": {"Gloss": "3SG"},
    "Link=example.org/?word=she|SpaceAfter=No": {"Link": "example.org/?word", "SpaceAfter": "No"},
    "Entity=(e1-person-1)": {"Entity": "(e1-person-1)"},
    "Note=": {"Note": None},
}
lines = ["# source = a = b"]
lines += [f"{number}\tshe\tshe\tPRON\t_\t_\t0\troot\t_\t{misc}" for number, misc in enumerate(MISC, start=1)]
with warnings.catch_warnings():
    warnings.simplefilter("error")
    (sentence,) = conllu.parse("\n".join(lines) + "\n\n")
    written = [line.rsplit("\t", 1)[-1] for line in sentence.serialize().splitlines() if "\t" in line]
print("conllu", version("conllu"), "comment:", sentence.metadata)
for token, (misc, expected), again in zip(sentence, MISC.items(), written, strict=True):
    print(f"{misc!r} is read as {token['misc']} and written as {again!r}")
    assert dict(token["misc"]) == expected, "the behaviour has changed"
assert sentence.metadata == {"source": "a = b"}, "the behaviour has changed"
assert written == ["Gloss=3SG", "Link=example.org/?word|SpaceAfter=No", "Entity=(e1-person-1)", "Note=_"], (
    "the behaviour has changed"
)
PYTHON
"$folder/venv/bin/python" "$folder/misc.py"
